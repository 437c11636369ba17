package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

var update = flag.Bool("update", false, "write the golden files anew")

// memoryLive is a live session whose disk is a counter.
type memoryLive struct {
	s *outcrop.Session

	mu      sync.Mutex
	durable int
	fail    func(durable int) error   // asked at each flush, nil: all is well
	hang    bool                      // flushes wait until their context ends
	foreign bool                      // others wrote the log, by rules of their own
	during  func(ctx context.Context) // runs inside each flush, and may call the agent
}

func (l *memoryLive) Session() *outcrop.Session { return l.s }

func (l *memoryLive) Flush(ctx context.Context) error {
	if l.during != nil {
		l.during(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.hang {
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		return ctx.Err()
	}
	n := l.s.Len()
	if l.fail != nil {
		if err := l.fail(n); err != nil {
			return err
		}
	}
	l.durable = max(l.durable, n)
	return nil
}

func (l *memoryLive) Durable() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

func ownHeader() outcrop.Header {
	h := outcrop.NewHeader("s1", 1000, "/srv/demo")
	h.Outcrop = 1
	return h
}

// compatibleHeader is that of a session that dsh can read.
func compatibleHeader() outcrop.Header {
	h := ownHeader()
	h.Outcrop = 0
	return h
}

func newLive(t testing.TB, h outcrop.Header, o outcrop.Options) *memoryLive {
	t.Helper()
	s, err := outcrop.New(h, o)
	if err != nil {
		t.Fatal(err)
	}
	return &memoryLive{s: s}
}

// reopened is what a store makes of the first n events of a log.
func reopened(t testing.TB, h outcrop.Header, log outcrop.Log, n int) *memoryLive {
	t.Helper()
	s, err := outcrop.Restore(h, records(outcrop.Prefix(log, n)), outcrop.Options{})
	if err != nil {
		t.Fatalf("restore after %d events: %v", n, err)
	}
	return &memoryLive{s: s}
}

func records(log outcrop.Log) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r := range log.Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// scripted is a model that plays the lines of a script.
func scripted(t testing.TB, lines ...string) *script.Model {
	t.Helper()
	s, err := script.Parse("test.jsonl", []byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return &script.Model{Script: s}
}

func start(t testing.TB, live *memoryLive, p llm.Provider, change ...func(*agent.Options)) *agent.Agent {
	t.Helper()
	o := agent.Options{Live: live, Provider: p, Config: llm.Config{Model: "m1"}, System: "You work here."}
	for _, f := range change {
		f(&o)
	}
	a, err := agent.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop(t, a)
		checkLive(t, live)
	})
	return a
}

// checkLive is check for a session at rest: its surface is the one that a
// detached fold of its log gives, message for message, and unless it failed
// nothing is open.
func checkLive(t testing.TB, live *memoryLive) {
	t.Helper()
	log := live.s.Log()
	if err := checked(log); err != nil && !live.foreign {
		t.Errorf("%v\n%s", err, text(log))
	}
	if err := sameAsFold(live.s); err != nil {
		t.Error(err)
	}
	if turn, step, open := outcrop.OpenTurn(log); open && live.s.Err() == nil {
		t.Errorf("turn %d step %d is open when the agent has ended\n%s", turn, step, text(log))
	}
}

func sameAsFold(s *outcrop.Session) error {
	log := s.Log()
	fold, err := outcrop.FoldSurface(log.Records(0))
	if err != nil {
		return err
	}
	if diff := cmp.Diff(fold.Nodes, s.Surface().Nodes()); diff != "" && len(fold.Nodes) > 0 {
		return fmt.Errorf("the live surface is not that of the log (-log +live): %s", diff)
	}
	if diff := cmp.Diff(outcrop.DeriveMessages(log, fold.Nodes), s.Messages(), cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("the live messages are not those of the log (-log +live): %s", diff)
	}
	return nil
}

func stop(t testing.TB, a *agent.Agent) {
	t.Helper()
	if err := a.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func send(t testing.TB, a *agent.Agent, text string) {
	t.Helper()
	if _, err := a.Send(context.Background(), said(text)); err != nil {
		t.Fatalf("send %q: %v", text, err)
	}
}

func said(text string) message.Message {
	return message.Message{Content: []message.Block{message.Text(text)}}
}

func wait(t testing.TB, a *agent.Agent) agent.Outcome {
	t.Helper()
	out, err := a.Wait(context.Background())
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	return out
}

// ask sends a prompt and waits for its turn to end.
func ask(t testing.TB, a *agent.Agent, text string) agent.Outcome {
	t.Helper()
	send(t, a, text)
	return wait(t, a)
}

// golden compares a whole log with testdata/NAME.jsonl.
func golden(t *testing.T, name string, log outcrop.Log) {
	t.Helper()
	check(t, log)
	var b strings.Builder
	for ev := range outcrop.Events(log, 0) {
		b.Write(ev.AppendJSON(nil))
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", name+".jsonl")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update to make it)", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("log differs from %s (-want +got):\n%s", path, diff)
	}
}

// check holds a log against what must be true of every log that an agent
// wrote: the invariants, the surface, one result a call, and a request that a
// provider would take.
func check(t testing.TB, log outcrop.Log) {
	t.Helper()
	if err := checked(log); err != nil {
		t.Error(err)
	}
}

func checked(log outcrop.Log) error {
	var inv outcrop.Invariants
	for ev := range outcrop.Events(log, 0) {
		if v := inv.Check(ev); len(v) > 0 {
			return fmt.Errorf("event %d %s: %v", ev.Seq, ev.Type, v)
		}
	}
	fold, err := outcrop.FoldSurface(log.Records(0))
	if err != nil {
		return err
	}
	var nodes []llm.Node
	for _, m := range outcrop.DeriveMessages(log, fold.Nodes) {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			return err
		}
		nodes = append(nodes, llm.Node{Seq: int64(m.Seq), Message: parsed})
	}
	err = llm.Check(llm.Request{Config: llm.Config{Provider: "p", Model: "m"}, Messages: llm.Build(nodes)})
	if err != nil {
		return err
	}
	return errors.Join(pairedCalls(log), citedChunks(log))
}

type logged struct {
	Turn, Step int
	Message    struct {
		Content []struct {
			Type, ID, ToolCallID string
		}
	}
	Interrupted bool
	Chunk       struct{ Type string }
}

// pairedCalls checks that each call of an assistant message has exactly one
// result before its step ends.
func pairedCalls(log outcrop.Log) error {
	open := map[string]int{}
	for ev := range outcrop.Events(log, 0) {
		var d logged
		if err := json.Unmarshal(ev.Data, &d); err != nil {
			return err
		}
		switch ev.Type {
		case outcrop.TypeAssistantMessage:
			for _, b := range d.Message.Content {
				if b.Type == "tool-call" {
					if _, twice := open[b.ID]; twice || b.ID == "" {
						return fmt.Errorf("event %d: call id %q is empty or used twice in its step", ev.Seq, b.ID)
					}
					open[b.ID] = 0
				}
			}
		case outcrop.TypeToolResult:
			id := d.Message.Content[0].ToolCallID
			if ev.Op.IsAppend() {
				if n, ok := open[id]; !ok || n > 0 {
					return fmt.Errorf("event %d: result for %q, which is no open call", ev.Seq, id)
				}
				open[id]++
			}
		case outcrop.TypeStepEnd:
			for id, n := range open {
				if n != 1 {
					return fmt.Errorf("event %d: call %q has %d results when its step ends", ev.Seq, id, n)
				}
			}
			clear(open)
		}
	}
	return nil
}

// citedChunks checks that each assistant message cites chunks of its own step,
// from the last finish of another attempt on.
func citedChunks(log outcrop.Log) error {
	var attempt []outcrop.Seq
	for ev := range outcrop.Events(log, 0) {
		switch ev.Type {
		case outcrop.TypeStepStart, outcrop.TypeOutcropRequest:
			attempt = nil
		case outcrop.TypeAssistantChunk:
			attempt = append(attempt, ev.Seq)
		case outcrop.TypeAssistantMessage:
			if !ev.Sources.Known() {
				return fmt.Errorf("event %d: no sources", ev.Seq)
			}
			if diff := cmp.Diff(append([]outcrop.Seq{}, attempt...), ev.Sources.Seqs()); diff != "" {
				return fmt.Errorf("event %d: sources are not the attempt's chunks: %s", ev.Seq, diff)
			}
		}
	}
	return nil
}

// eventsOf returns the data of all events of a type.
func eventsOf(log outcrop.Log, typ outcrop.Type) []string {
	var out []string
	for ev := range outcrop.Events(log, 0) {
		if ev.Type == typ {
			out = append(out, string(ev.Data))
		}
	}
	return out
}

// fakeTool is a tool that a test holds the strings of.
type fakeTool struct {
	name     string
	class    tool.Class
	parallel bool
	run      func(ctx context.Context, call tool.Call) (tool.Result, error)
}

func (f *fakeTool) Name() string        { return f.name }
func (f *fakeTool) Description() string { return "A tool of the tests." }
func (f *fakeTool) Schema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}`)
}
func (f *fakeTool) Class() tool.Class { return f.class }
func (f *fakeTool) Parallel() bool    { return f.parallel }
func (f *fakeTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	if f.run == nil {
		return tool.Text("done"), nil
	}
	return f.run(ctx, call)
}

func withTools(t testing.TB, tools ...tool.Tool) func(*agent.Options) {
	t.Helper()
	r, err := tool.NewRegistry(tool.Options{}, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *agent.Options) { o.Tools = r }
}

// streamFunc is a provider made of a function.
type streamFunc func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool)

func (streamFunc) Name() string { return "fake" }
func (f streamFunc) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	return func(yield func(message.Chunk, error) bool) { f(ctx, req, yield) }
}
