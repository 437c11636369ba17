package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/worker"
)

// The model of these tests answers each input once: inputs are "input ID", and a
// reply "answered ID ID ... ." names all that no earlier reply has named. Before
// it answers it calls a tool.

func inputOf(id string) message.Message {
	return message.Message{ID: id, Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text("input " + id)}}
}

// owed are the inputs of a conversation that are not answered yet.
func owed(messages []message.Message) (ids []string) {
	for _, m := range messages {
		for _, b := range m.Content {
			if b.Type != message.TextBlock {
				continue
			}
			if id, ok := strings.CutPrefix(b.Text, "input "); ok && m.Role == message.User {
				ids = append(ids, id)
			}
			if m.Role == message.Assistant {
				for _, id := range answered(b.Text) {
					ids = slices.DeleteFunc(ids, func(o string) bool { return o == id })
				}
			}
		}
	}
	return ids
}

// answered are the inputs that a reply answers; one that was cut off answers none.
func answered(text string) []string {
	list, ok := strings.CutPrefix(text, "answered ")
	if !ok || !strings.HasSuffix(list, ".") {
		return nil
	}
	return strings.Fields(strings.TrimSuffix(list, "."))
}

// answering is the model. delay is how long a reply takes.
func answering(delay time.Duration) *script.Model {
	return &script.Model{Reply: func(r llm.Request) script.Reply {
		last := r.Messages[len(r.Messages)-1]
		if len(last.Content) > 0 && last.Content[0].Type == message.ToolResultBlock {
			return script.Reply{Text: "answered " + strings.Join(owed(r.Messages), " ") + " .", Delay: delay}
		}
		return script.Reply{Tools: []script.Call{{Name: "work", Arguments: "{}"}}, Delay: delay}
	}}
}

// workTool is what the model calls: it takes a while, and counts.
type workTool struct {
	takes time.Duration
	note  io.Writer // gets the key of each call before it works, nil: nobody
	mu    sync.Mutex
	ran   map[string]int // by key
}

func (w *workTool) make() (tool.Tool, error) {
	return tool.Define(tool.Spec[struct{}]{
		Name: "work", Description: "Works.", Class: tool.Exec,
		Run: func(ctx context.Context, c tool.Call, _ struct{}) (tool.Result, error) {
			w.mu.Lock()
			if w.ran == nil {
				w.ran = map[string]int{}
			}
			w.ran[c.Key]++
			w.mu.Unlock()
			if w.note != nil {
				if _, err := io.WriteString(w.note, c.Key+"\n"); err != nil {
					return tool.Result{}, err
				}
			}
			timer := time.NewTimer(w.takes)
			defer timer.Stop()
			select {
			case <-timer.C:
				return tool.Text("done"), nil
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
		},
	})
}

// opener makes agents on the sessions of a store.
type opener struct {
	st     store.Store
	bus    worker.Bus
	model  llm.Provider
	tool   *workTool
	policy agent.Policy
	fail   func(id string) error
}

type held struct {
	*store.Live
	ag *agent.Agent
}

func (h held) Agent() *agent.Agent { return h.ag }

func (h held) Close(ctx context.Context) error {
	return errors.Join(h.ag.Close(ctx), h.Live.Close(ctx))
}

func (o *opener) Open(ctx context.Context, id string, force bool, ask agent.Approver) (worker.Session, error) {
	if o.fail != nil {
		if err := o.fail(id); err != nil {
			return nil, err
		}
	}
	open := store.Open
	if force {
		open = func(ctx context.Context, st store.Store, id string, so store.Options) (*store.Live, error) {
			return worker.TakeOver(ctx, st, o.bus, id, "w", so)
		}
	}
	live, err := open(ctx, o.st, id, store.Options{})
	if err != nil {
		return nil, err
	}
	t, err := o.tool.make()
	if err != nil {
		return nil, err
	}
	reg, err := tool.NewRegistry(tool.Options{}, t)
	if err != nil {
		return nil, err
	}
	policy := o.policy
	if policy == "" {
		policy = agent.AllowAll
	}
	ag, err := agent.New(agent.Options{Live: live, Provider: o.model, Config: llm.Config{Model: "m"}, Tools: reg,
		Policy: policy, Approver: ask, Guard: live.Held, Epoch: live.Epoch()})
	if err != nil {
		return nil, errors.Join(err, live.Close(ctx))
	}
	return held{live, ag}, nil
}

// read is a stored log.
func read(st store.Store, id string) (outcrop.Header, outcrop.Log, error) {
	s, _, err := store.Inspect(context.Background(), st, id, outcrop.Options{})
	if err != nil {
		return outcrop.Header{}, nil, err
	}
	return s.Header(), s.Log(), nil
}

// judge looks at a log that is done with: it breaks no rule, nothing is left to be
// done, and each acknowledged input entered once and was answered once.
func judge(h outcrop.Header, log outcrop.Log, acknowledged []string) error {
	var inv outcrop.Invariants
	entered, answers := map[string]int{}, map[string]int{}
	due := store.NewDue(h)
	for r := range log.Records(0) {
		due.Add(r)
	}
	for ev := range outcrop.Events(log, 0) {
		if v := inv.Check(ev); len(v) > 0 {
			return fmt.Errorf("event %d %s: %v", ev.Seq, ev.Type, v)
		}
		switch ev.Type {
		case outcrop.TypeUserMessage:
			id, _ := jsonwire.Text(jsonwire.Get(ev.Data, "id"))
			entered[id]++
		case outcrop.TypeAssistantMessage:
			m, err := message.Parse(jsonwire.Get(ev.Data, "message"))
			if err != nil {
				return err
			}
			if jsonwire.Get(ev.Data, "interrupted") != nil {
				continue
			}
			for _, id := range answered(message.PlainText(m.Content)) {
				answers[id]++
			}
		}
	}
	if _, err := outcrop.FoldSurface(log.Records(0)); err != nil {
		return err
	}
	if due.Pending() > 0 || due.Open || due.Cut {
		return fmt.Errorf("something is left to be done: %+v", *due)
	}
	for _, id := range acknowledged {
		if entered[id] != 1 || answers[id] != 1 {
			return fmt.Errorf("input %s entered %d times and was answered %d times", id, entered[id], answers[id])
		}
	}
	return nil
}

// text is a log for people.
func text(log outcrop.Log) string {
	var b strings.Builder
	for ev := range outcrop.Events(log, 0) {
		if ev.Type != outcrop.TypeAssistantChunk {
			fmt.Fprintf(&b, "%s\n", ev.AppendJSON(nil))
		}
	}
	return b.String()
}
