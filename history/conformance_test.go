package history_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/conformance"
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

// appended is what was added to a log, as the vectors write it: without time,
// with ids and our own text replaced, without our own types.
func appended(t *testing.T, s *outcrop.Session, from int, ids *strings.Replacer) []any {
	t.Helper()
	out := []any{}
	for ev := range outcrop.Events(s.Log(), outcrop.Seq(from)) {
		if strings.HasPrefix(string(ev.Type), "outcrop/") {
			continue
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(ids.Replace(string(ev.AppendJSON(nil)))), &v); err != nil {
			t.Fatal(err)
		}
		delete(v, "time")
		out = append(out, v)
	}
	return out
}

// notOurs are the cases of a transaction that ours does not have.
var notOurs = map[string]string{
	"region/manual-in-open-turn":    "an open turn owns the bracket; who may begin one is the caller's business",
	"region/auto-without-turn":      "without a turn the bracket stands between turns",
	"region/not-smaller":            "a bracket is committed whole or not at all, so a failure leaves no start and end",
	"region/not-smaller-auto":       "as above",
	"region/summarizer-fails":       "the summary is there before the bracket begins",
	"region/summarizer-fails-auto":  "as above",
	"region/surface-grew-whole":     "nothing can come between the events of a group",
	"region/surface-grew-span":      "as above",
	"region/span-rewritten":         "as above",
	"region/surface-rewritten-span": "as above",
}

func TestCompactionVectors(t *testing.T) {
	type vector struct {
		Name, Kind string
		Events     []json.RawMessage
		Request    struct {
			Start, End      outcrop.Seq
			SourceCommandID string
		}
		Summarizer struct {
			Summary, RawOutput []message.Block
			Provider, Model    string
			MaxTokens          int64
			Usage              *message.Usage
		}
		Expect struct {
			OK       bool
			Appended []any
			Nodes    json.RawMessage // another shape in other kinds
		}
	}
	ran := 0
	conformance.Cases(t, "compaction", func(c *vector) string { return c.Name }, func(t *testing.T, c *vector) {
		if c.Kind != "region" || notOurs[c.Name] != "" {
			return
		}
		ran++
		s := live(t, c.Events)
		n := s.Len()
		_, err := history.CommitCompaction(s, history.Compaction{
			ID: "ID-C", MessageID: "ID-M", CommandID: c.Request.SourceCommandID, Start: c.Request.Start, End: c.Request.End,
			Summary: c.Summarizer.Summary, RawOutput: c.Summarizer.RawOutput,
			Provider: c.Summarizer.Provider, Model: c.Summarizer.Model, MaxTokens: c.Summarizer.MaxTokens, Usage: c.Summarizer.Usage,
		})
		if (err == nil) != c.Expect.OK || err != nil && !errors.Is(err, outcrop.ErrRefused) {
			t.Fatalf("error %v, want ok %v", err, c.Expect.OK)
		}
		var nodes []outcrop.Seq
		if err := json.Unmarshal(c.Expect.Nodes, &nodes); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(nodes, append([]outcrop.Seq{}, s.Surface().Nodes()...)); diff != "" {
			t.Errorf("nodes (-want +got): %s", diff)
		}
		got := appended(t, s, n, strings.NewReplacer("ID-C", "<compactionId>", "ID-M", "<messageId>",
			"An earlier part of this conversation was condensed to make room. The summary below stands for it: "+
				"take it as what happened, do not answer it, and go on with the messages that follow.", "<preamble>"))
		if diff := cmp.Diff(c.Expect.Appended, got); diff != "" {
			t.Errorf("events (-want +got): %s", diff)
		}
	})
	if ran < 9 {
		t.Errorf("only %d cases ran", ran)
	}
}

func TestPruneVectors(t *testing.T) {
	type vector struct {
		Name, Kind string
		Events     []json.RawMessage
		Expect     struct {
			Result struct {
				Pruned []struct{ OriginalSeq, ReplacementSeq outcrop.Seq }
			}
			Appended []json.RawMessage
		}
	}
	ran := 0
	conformance.Cases(t, "prune", func(c *vector) string { return c.Name }, func(t *testing.T, c *vector) {
		if c.Kind != "session" {
			return
		}
		s := live(t, c.Events)
		// What to cut is a policy's choice: take its content, compare the rest.
		for i := 0; i+1 < len(c.Expect.Appended); i += 2 {
			var want struct {
				Data struct {
					Message struct{ Content []message.Block }
				}
				SourceEventSeqs []outcrop.Seq
			}
			if err := json.Unmarshal(c.Expect.Appended[i+1], &want); err != nil {
				t.Fatal(err)
			}
			ran++
			n := s.Len()
			e, err := history.CommitPrune(s, want.SourceEventSeqs[0], want.Data.Message.Content[0].Content)
			if err != nil {
				t.Fatal(err)
			}
			got := appended(t, s, n, strings.NewReplacer())
			for j, raw := range c.Expect.Appended[i : i+2] {
				var w map[string]any
				if err := json.Unmarshal(raw, &w); err != nil {
					t.Fatal(err)
				}
				// Our outcrop/edit stands between two prunes of theirs.
				w["seq"] = float64(e.First) + float64(j)
				if diff := cmp.Diff(any(w), got[j]); diff != "" {
					t.Errorf("event %d (-want +got): %s", j, diff)
				}
			}
		}
	})
	if ran < 5 {
		t.Errorf("only %d prunes ran", ran)
	}
}
