package demo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
	recall "github.com/outcrop-dev/outcrop/tool/history"
	"github.com/outcrop-dev/outcrop/tool/shell"
)

// session plays the three turns and the two edits.
func (d *demo) session(ctx context.Context) (err error) {
	st, err := jsonl.New(d.dir("store"), d.files())
	if err != nil {
		return err
	}
	d.header = outcrop.NewHeader(sessionID, d.o.Now(), d.dir("work"))
	live, err := store.Create(ctx, st, d.header, store.Options{Session: outcrop.Options{Now: d.o.Now, Logger: d.o.Logger}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close(context.WithoutCancel(ctx))) }()
	text, err := data.ReadFile("data/script.jsonl")
	if err != nil {
		return err
	}
	sc, err := script.Parse("demo.jsonl", text)
	if err != nil {
		return err
	}
	model := &listening{Model: script.Model{Script: sc}, d: d}
	m, err := history.NewManager(history.Options{Provider: model, Window: sc.Header.Window, MaxOutput: sc.Header.MaxOutput, Flush: live.Flush, Logger: d.o.Logger})
	if err != nil {
		return err
	}
	tools, closeTools, err := d.tools(live.Session())
	if err != nil {
		return err
	}
	defer closeTools()
	ag, err := agent.New(agent.Options{
		Live: live, Provider: model,
		Config: llm.Config{Provider: script.Provider, Model: sc.Header.Model}, Window: sc.Header.Window,
		System: strings.TrimSpace(agent.DefaultSystem), Tools: tools, Approver: d, Logger: d.o.Logger,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ag.Close(context.WithoutCancel(ctx))) }()
	for i, prompt := range prompts {
		if err := d.turn(ctx, ag, prompt); err != nil {
			return err
		}
		if i == 1 {
			edits := func(ctx context.Context, op agent.Operation) error { return d.edit(ctx, m, op, live.Session()) }
			if err := ag.Operate(ctx, edits); err != nil {
				return err
			}
		}
	}
	d.Log, d.Nodes = live.Session().Log(), live.Session().Surface().Nodes()
	return nil
}

func (d *demo) turn(ctx context.Context, ag *agent.Agent, prompt string) error {
	if _, err := ag.Send(ctx, message.Message{Content: []message.Block{message.Text(prompt)}}); err != nil {
		return err
	}
	end, err := ag.Wait(ctx)
	switch {
	case err != nil:
		return err
	case end.Err != nil:
		return end.Err
	case end.Reason.Error != nil:
		return end.Reason.Error
	case end.Reason.Kind != outcrop.Completed:
		return fmt.Errorf("turn %d ended as %s", end.Turn, end.Reason.Kind)
	}
	return nil
}

func (d *demo) tools(s *outcrop.Session) (*tool.Registry, func(), error) {
	ws, err := files.Open(d.dir("work"))
	if err != nil {
		return nil, nil, err
	}
	closeAll := func() { _ = ws.Close() } // only folders that were read are open
	all, err := ws.Tools()
	if err != nil {
		return nil, closeAll, err
	}
	sh, err := shell.New(shell.Options{Dir: d.dir("work")})
	if err != nil {
		return nil, closeAll, err
	}
	past, err := recall.Tools(recall.Options{Session: s})
	if err != nil {
		return nil, closeAll, err
	}
	reg, err := tool.NewRegistry(tool.Options{Logger: d.o.Logger}, append(append(all, sh), past...)...)
	return reg, closeAll, err
}

// Approve allows the script's own two calls that ask, and nothing else.
func (d *demo) Approve(_ context.Context, q agent.Question) (agent.Answer, error) {
	d.asked++
	args := []byte(q.Arguments)
	ok := q.Tool == "write" && jsonwire.TextIs(jsonwire.Get(args, "path"), "report.md") ||
		q.Tool == "shell" && jsonwire.TextIs(jsonwire.Get(args, "command"), "wc -l report.md")
	if !ok {
		return agent.Answer{Verdict: agent.Reject, Reason: "the demo allows its own calls only"}, nil
	}
	return agent.Answer{Verdict: agent.AllowOnce}, nil
}

// listening is the scripted model; it keeps what it was given, so that it can be
// compared with what is rebuilt from the log.
type listening struct {
	script.Model
	mu sync.Mutex
	d  *demo
}

// Stream implements llm.Provider.
func (l *listening) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	l.mu.Lock()
	l.d.sent = append(l.d.sent, req)
	l.mu.Unlock()
	return l.Model.Stream(ctx, req)
}

// edit prunes the big result and compacts the first two turns, with the same
// model as summariser.
func (d *demo) edit(ctx context.Context, m *history.Manager, op agent.Operation, s *outcrop.Session) error {
	d.Pruned = -1
	for _, n := range s.Surface().Nodes() {
		if s.Log().At(n).Type == outcrop.TypeToolResult {
			d.Pruned = n
			break
		}
	}
	if d.Pruned < 0 {
		return errors.New("no tool result is on the surface")
	}
	pruned, err := m.Prune(ctx, op, []outcrop.Seq{d.Pruned}, false)
	if err != nil {
		return err
	}
	nodes := s.Surface().Nodes()
	compacted, err := m.Compact(ctx, op, history.Request{Start: nodes[0], End: nodes[len(nodes)-1]})
	switch {
	case err != nil:
		return err
	case compacted.Err != nil:
		return compacted.Err
	case len(pruned.Edits) != 1 || len(compacted.Edits) != 1:
		return fmt.Errorf("%d results were pruned and %d ranges compacted, it should be one each", len(pruned.Edits), len(compacted.Edits))
	}
	d.Prune, d.Compaction = pruned.Edits[0], compacted.Edits[0]
	return nil
}

// resultText is the text of a tool/result.
func resultText(ev outcrop.Event) string {
	m, err := message.Parse(jsonwire.Get(ev.Data, "message"))
	if err != nil || len(m.Content) == 0 {
		return ""
	}
	return message.PlainText(m.Content[0].Content)
}
