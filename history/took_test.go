package history_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Whatever a call took is in the log once: in the summary that it made, or
// beside it.
func TestWhatEachCallTookIsInTheLog(t *testing.T) {
	five := &message.Usage{InputTokens: 5, OutputTokens: 1}
	nine := &message.Usage{InputTokens: 9, OutputTokens: 2}
	type yield = func(message.Chunk, error) bool
	good := func(u *message.Usage) func(yield) {
		return func(y yield) { say(y, message.Stop, u, message.Text("Short.")) }
	}
	empty := func(u *message.Usage) func(yield) { return func(y yield) { say(y, message.Stop, u) } }
	down := func(y yield) { y(message.Chunk{}, &message.Failure{Code: message.CodeServer, Message: "down"}) }
	tooLong := func(y yield) {
		y(message.Chunk{}, &message.Failure{Code: message.CodeContextWindow, Message: "too long"})
	}
	cut := func(y yield) { // the figures came before the end did
		y(message.Chunk{Type: message.UsageChunk, Usage: five}, nil)
		down(y)
	}
	event := func(call, rest string) string {
		return `{"purpose":"compaction","call":` + call + `,"model":"p:m","outcome":` + rest + `}`
	}
	const u5 = `,"usage":{"inputTokens":5,"outputTokens":1}`
	for _, c := range []struct {
		name    string
		policy  history.Policy
		answers []func(yield)
		want    []string // outcrop/summarizer-usage
		summary string   // its usage
	}{
		{"an answer", history.Layers, []func(yield){good(nine)}, nil, `{"inputTokens":9,"outputTokens":2}`},
		{"an empty answer, then one", history.Layers, []func(yield){empty(five), good(nine)}, []string{event("1", `"unused"`+u5)}, `{"inputTokens":9,"outputTokens":2}`},
		{"empty answers, then the digest", history.Layers, []func(yield){empty(five), empty(nil)},
			[]string{event("1", `"unused"`+u5), event("2", `"unused"`)}, ""},
		{"figures below 0 are none", history.Layers, []func(yield){empty(&message.Usage{InputTokens: -1}), good(nine)},
			[]string{event("1", `"unused"`)}, `{"inputTokens":9,"outputTokens":2}`},
		{"a refusal, then an answer", history.Layers, []func(yield){tooLong, good(nine)}, []string{event("1", `"nothing"`)}, `{"inputTokens":9,"outputTokens":2}`},
		{"an answer that broke off", history.Layers, []func(yield){cut}, []string{event("1", `"unused"`+u5)}, ""},
		{"nobody says what it took", history.Layers, []func(yield){good(nil)}, nil, ""},
		{"dsh, which has no digest", history.DSH, []func(yield){empty(five), down}, []string{event("1", `"unused"`+u5), event("2", `"nothing"`)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := draw(t, "prompt:a=100 step:b=2000 step:c=2000 step:d=500 end")
			n := 0
			m := manager(t, history.Options{Policy: c.policy, Window: 40_000, Provider: provider(func(_ context.Context, _ llm.Request, y func(message.Chunk, error) bool) {
				n++
				c.answers[n-1](y)
			})})
			rep, err := m.Compact(background, history.Direct(s.s), history.Request{Start: -1, End: -1})
			if (err != nil) != (c.policy == history.DSH) || n != len(c.answers) {
				t.Fatalf("%d calls, %v, %+v", n, err, rep)
			}
			var got []string
			sum, inside := "", false
			for ev := range outcrop.Events(s.s.Log(), 0) {
				switch ev.Type {
				case outcrop.TypeCompactionStart:
					inside = true
				case outcrop.TypeCompactionEnd:
					inside = false
				case history.TypeSummarizerUsage:
					if !inside || !ev.Ignorable {
						t.Errorf("event %d stands outside of a bracket, or is not ignorable", ev.Seq)
					}
					got = append(got, string(ev.Data))
				case outcrop.TypeCompactionSummary:
					if _, rest, ok := strings.Cut(string(ev.Data), `"usage":`); ok {
						sum = rest[:strings.Index(rest, "}")+1]
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || sum != c.summary {
				t.Errorf("the summary has %s, (-want +got): %s", sum, diff)
			}
			check(t, s.s)
		})
	}
}

// Of parts that were summarised nothing is lost when they cannot be joined.
func TestWhatPartsTookIsInTheLogWhenTheJoinFails(t *testing.T) {
	usage := &message.Usage{InputTokens: 7, OutputTokens: 2}
	modes, rep, s := asked(t, "prompt:a=100 say:b=4000 say:c=4000 say:d=4000 say:e=4000 say:f=4000 say:g=100 end", 12_000, func(n int, req llm.Request, y func(message.Chunk, error) bool) {
		if n == 6 {
			y(message.Chunk{}, &message.Failure{Code: message.CodeServer, Message: "down"})
			return
		}
		u := usage
		if n == 2 {
			u = nil
		}
		say(y, message.Stop, u, message.Text("Short."))
	})
	var got []string
	for ev := range outcrop.Events(s.s.Log(), 0) {
		if ev.Type == history.TypeSummarizerUsage {
			_, rest, _ := strings.Cut(string(ev.Data), `"outcome":`)
			got = append(got, strings.TrimSuffix(rest, "}"))
		}
	}
	with := `"unused","usage":{"inputTokens":7,"outputTokens":2}`
	if diff := cmp.Diff([]string{with, `"unused"`, with, with, with, `"nothing"`}, got); diff != "" || len(modes) != 6 || !rep.Edits[0].ModelFree {
		t.Errorf("modes %v, (-want +got): %s", modes, diff)
	}
}

// When the sum of a summary lacks a call, the log says which.
func TestACallWithoutFiguresAmongOthersIsNamed(t *testing.T) {
	_, _, s := asked(t, "prompt:a=100 say:b=4000 say:c=4000 say:d=4000 say:e=4000 say:f=4000 say:g=100 end", 12_000, func(n int, req llm.Request, y func(message.Chunk, error) bool) {
		var u *message.Usage
		if n != 2 {
			u = &message.Usage{InputTokens: 7, OutputTokens: 2}
		}
		say(y, message.Stop, u, message.Text("Short."))
	})
	named := 0
	for ev := range outcrop.Events(s.s.Log(), 0) {
		switch {
		case ev.Type == history.TypeSummarizerUsage:
			named++
			if want := `{"purpose":"compaction","call":2,"model":"p:small","outcome":"used"}`; string(ev.Data) != want {
				t.Errorf("got %s, want %s", ev.Data, want)
			}
		case ev.Type == outcrop.TypeCompactionSummary && !strings.Contains(string(ev.Data), `"usage":{"inputTokens":35,"outputTokens":10}`):
			t.Errorf("the sum of the others: %s", ev.Data)
		}
	}
	if named != 1 {
		t.Errorf("%d are named", named)
	}
}
