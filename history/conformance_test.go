package history_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/history/dsh"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// live makes a session that holds a log and can be appended to.
func live(t *testing.T, events []json.RawMessage) *outcrop.Session {
	t.Helper()
	h := outcrop.NewHeader("s1", 1000, "/srv/demo")
	h.Outcrop = 0
	seed := func(yield func(outcrop.Record, error) bool) {
		for _, raw := range events {
			ev, err := outcrop.DecodeEvent(raw)
			if !yield(outcrop.Record{Event: ev}, err) {
				return
			}
		}
	}
	if strings.Contains(string(events[len(events)-1]), `"session/end-seed"`) {
		s, err := outcrop.SeedRecords(h, seed, outcrop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, err := outcrop.New(h, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for r := range seed {
		if _, err := s.AppendRaw(r.Event); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// without is what was added to a log and its surface as the vectors write them:
// without time and our own types, numbered as if those were not there.
func without(t *testing.T, s *outcrop.Session, from int, replace *strings.Replacer) (events []any, nodes []outcrop.Seq) {
	t.Helper()
	events = []any{}
	renumber := map[float64]float64{}
	ours := 0
	for ev := range outcrop.Events(s.Log(), outcrop.Seq(from)) {
		if strings.HasPrefix(string(ev.Type), "outcrop/") {
			ours++
			continue
		}
		renumber[float64(ev.Seq)] = float64(int(ev.Seq) - ours)
		var v map[string]any
		if err := json.Unmarshal([]byte(replace.Replace(string(ev.AppendJSON(nil)))), &v); err != nil {
			t.Fatal(err)
		}
		delete(v, "time")
		v["seq"] = renumber[float64(ev.Seq)]
		if sources, ok := v["sourceEventSeqs"].([]any); ok {
			for i, src := range sources {
				if now, ok := renumber[src.(float64)]; ok {
					sources[i] = now
				}
			}
		}
		events = append(events, v)
	}
	nodes = []outcrop.Seq{}
	for _, n := range s.Surface().Nodes() {
		if now, ok := renumber[float64(n)]; ok {
			n = outcrop.Seq(now)
		}
		nodes = append(nodes, n)
	}
	return events, nodes
}

// provider answers every call with a function.
type provider func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool)

func (provider) Name() string { return "p" }
func (p provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	return func(yield func(message.Chunk, error) bool) { p(ctx, req, yield) }
}

// say yields blocks as an answer.
func say(yield func(message.Chunk, error) bool, finish message.FinishKind, usage *message.Usage, blocks ...message.Block) {
	for i := range blocks {
		if !yield(message.Chunk{Type: message.BlockEnd, Index: i, Block: &blocks[i]}, nil) {
			return
		}
	}
	if usage != nil && !yield(message.Chunk{Type: message.UsageChunk, Usage: usage}, nil) {
		return
	}
	yield(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: finish}}, nil)
}

func manager(t interface {
	Helper()
	Fatal(...any)
}, o history.Options) *history.Manager {
	t.Helper()
	m, err := history.NewManager(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The policy dsh makes the transactions of dsh. What differs is text: that of
// the checkpoint's frame and of errors, which are ours.
func TestCompactionVectors(t *testing.T) {
	type vector struct {
		Name, Kind string
		Events     []json.RawMessage
		Request    struct {
			Start, End      outcrop.Seq
			Owner           *string
			SourceCommandID string
			Fail, Grow      bool
		}
		Summarizer struct {
			RawOutput []message.Block
			MaxTokens int64
			Usage     *message.Usage
		}
		Expect struct {
			OK       bool
			Code     string
			Appended []any
			Nodes    json.RawMessage // another shape in other kinds
		}
	}
	codes := map[string]outcrop.Code{"busy": history.CodeBusy}
	ran := 0
	conformance.Cases(t, "compaction", func(c *vector) string { return c.Name }, func(t *testing.T, c *vector) {
		if c.Kind != "region" {
			return
		}
		ran++
		s := live(t, c.Events)
		n := s.Len()
		m := manager(t, history.Options{
			Policy: history.DSH, Model: llm.Config{Provider: "p", Model: "m"}, NewID: func() string { return "ID-C" },
			Provider: provider(func(_ context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
				if c.Request.Grow {
					grown := message.Message{ID: "u-new", Content: []message.Block{message.Text("text NEW")}, Source: message.FromUser}
					if _, err := s.AppendSurface(outcrop.UserMessage{Message: grown}, outcrop.Tail, outcrop.NoSources); err != nil {
						t.Error(err)
					}
				}
				if c.Request.Fail {
					yield(message.Chunk{}, &message.Failure{Code: message.CodeServer, Message: "summarizer failed"})
					return
				}
				say(yield, message.Stop, c.Summarizer.Usage, c.Summarizer.RawOutput...)
			}),
		})
		var err error
		if c.Request.Owner == nil {
			_, err = m.Compact(context.Background(), history.Direct(s), history.Request{
				CommandID: c.Request.SourceCommandID, Start: c.Request.Start, End: c.Request.End})
		} else {
			_, err = m.CompactRange(context.Background(), history.Direct(s), c.Request.Start, c.Request.End)
		}
		if (err == nil) != c.Expect.OK {
			t.Fatalf("error %v, want ok %v", err, c.Expect.OK)
		}
		if want := codes[c.Expect.Code]; want != "" && outcrop.CodeOf(err) != want {
			t.Errorf("code %s, want %s", outcrop.CodeOf(err), want)
		}
		var want []outcrop.Seq
		if err := json.Unmarshal(c.Expect.Nodes, &want); err != nil {
			t.Fatal(err)
		}
		got, nodes := without(t, s, n, strings.NewReplacer("ID-C", "<compactionId>", "m-14", "<messageId>", "m-15", "<messageId>", "m-16", "<messageId>", "m-17", "<messageId>",
			"An earlier part of this conversation was condensed to make room. The summary below stands for it: "+
				"take it as what happened, do not answer it, and go on with the messages that follow.", "<preamble>"))
		if diff := cmp.Diff(want, nodes); diff != "" {
			t.Errorf("nodes (-want +got): %s", diff)
		}
		for _, list := range [][]any{c.Expect.Appended, got} {
			for _, ev := range list {
				data := ev.(map[string]any)["data"].(map[string]any)
				if data["error"] != nil {
					data["error"] = "<text>"
				}
				if c.Summarizer.MaxTokens == 0 {
					delete(data, "maxTokens")
				}
				if text, ok := data["id"].(string); ok && strings.HasPrefix(text, "u") { // what grew has the seq in its text
					ev.(map[string]any)["data"] = "grown"
				}
			}
		}
		if diff := cmp.Diff(c.Expect.Appended, got); diff != "" {
			t.Errorf("events (-want +got): %s", diff)
		}
		checkSession(t, s, c.Name == "region/locked")
	})
	if ran != 17 {
		t.Errorf("%d cases ran", ran)
	}
}

func TestPruneVectors(t *testing.T) {
	type vector struct {
		Name, Kind string
		Events     []json.RawMessage
		Config     struct{ ThresholdChars, HeadChars, TailChars float64 }
		Expect     struct {
			Appended []any
			Nodes    []outcrop.Seq
		}
	}
	ran := 0
	conformance.Cases(t, "prune", func(c *vector) string { return c.Name }, func(t *testing.T, c *vector) {
		if c.Kind != "session" {
			return
		}
		ran++
		s := live(t, c.Events)
		n := s.Len()
		m := manager(t, history.Options{Policy: history.DSH, Pruner: dsh.Pruner{Threshold: int(c.Config.ThresholdChars), Head: int(c.Config.HeadChars), Tail: int(c.Config.TailChars)}})
		ed := history.Direct(s)
		r, err := m.Prune(context.Background(), ed, nil, false)
		if err == nil && len(r.Queued) > 0 { // between turns
			_, err = m.PreStep(context.Background(), ed, history.Input{})
		}
		if err != nil {
			t.Fatal(err)
		}
		got, nodes := without(t, s, n, strings.NewReplacer())
		if diff := cmp.Diff(c.Expect.Appended, got); diff != "" {
			t.Errorf("events (-want +got): %s", diff)
		}
		if c.Expect.Nodes != nil {
			if diff := cmp.Diff(c.Expect.Nodes, nodes); diff != "" {
				t.Errorf("nodes (-want +got): %s", diff)
			}
		}
	})
	if ran != 5 {
		t.Errorf("%d cases ran", ran)
	}
}
