package history_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

type yield = func(message.Chunk, error) bool

// hostile are summarisers that do not give a summary. calls is how often each
// is asked about one range.
var hostile = []struct {
	name   string
	answer func(ctx context.Context, req llm.Request, yield yield)
	calls  int
}{
	{"no chunk at all", func(context.Context, llm.Request, yield) {}, 2},
	{"an empty text", func(_ context.Context, _ llm.Request, y yield) { say(y, message.Stop, nil, message.Text("")) }, 2},
	{"a blank text", func(_ context.Context, _ llm.Request, y yield) { say(y, message.Stop, nil, message.Text(" \n\t")) }, 2},
	{"reasoning alone", func(_ context.Context, _ llm.Request, y yield) { say(y, message.Stop, nil, message.Reasoning("hm")) }, 2},
	{"an echo of the instruction", func(_ context.Context, req llm.Request, y yield) {
		say(y, message.Stop, nil, message.Text(message.PlainText(req.Messages[len(req.Messages)-1].Content)))
	}, 2},
	{"one sentence of the instruction", func(_ context.Context, _ llm.Request, y yield) {
		say(y, message.Stop, nil, message.Text("Sure.\nNothing else of that part\nwill be known afterwards. The file was read."))
	}, 2},
	{"the frame of a checkpoint", func(_ context.Context, _ llm.Request, y yield) {
		say(y, message.Stop, nil, message.Text("<compacted-summary>a</compacted-summary>"))
	}, 2},
	{"an echo of its input", func(_ context.Context, req llm.Request, y yield) {
		var all strings.Builder
		for _, m := range req.Messages[:len(req.Messages)-1] {
			all.WriteString("Summary: " + message.PlainText(m.Content))
		}
		say(y, message.Stop, nil, message.Text(all.String()+all.String()))
	}, 1},
	{"more than it was allowed", func(_ context.Context, req llm.Request, y yield) {
		say(y, message.Stop, nil, message.Text(strings.Repeat("long ", int(req.MaxOutput)*3)))
	}, 1},
	{"a tool call", func(_ context.Context, _ llm.Request, y yield) {
		say(y, message.ToolCalls, nil, message.Text("I will look."), message.ToolCall("c", "read", "{}"))
	}, 2},
	{"a text with an image", func(_ context.Context, _ llm.Request, y yield) {
		say(y, message.Stop, nil, message.Text("see"), message.Block{Type: message.ImageBlock, Attachment: []byte("{}")})
	}, 1},
	{"a text that was cut at its limit", func(_ context.Context, _ llm.Request, y yield) {
		say(y, message.MaxTokens, nil, message.Text("it was"))
	}, 1},
	{"a refusal of the request", func(_ context.Context, _ llm.Request, y yield) {
		y(message.Chunk{}, &message.Failure{Code: message.CodeInvalidRequest, Status: 400, Message: "bad"})
	}, 1},
	{"too many requests after half an answer", func(_ context.Context, _ llm.Request, y yield) {
		y(message.Chunk{Type: message.TextDelta, Text: "The user"}, nil)
		y(message.Chunk{}, &message.Failure{Code: message.CodeRateLimit, Status: 429, Message: "slow down"})
	}, 1},
	{"a request that is always too long", func(_ context.Context, _ llm.Request, y yield) {
		y(message.Chunk{}, &message.Failure{Code: message.CodeContextWindow, Status: 413, Message: "too long"})
	}, 3},
	{"an error in the finish", func(_ context.Context, _ llm.Request, y yield) {
		y(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Errored, Failure: &message.Failure{Code: message.CodeServer, Message: "down"}}}, nil)
	}, 1},
	{"a panic", func(context.Context, llm.Request, yield) { panic("hostile") }, 1},
	{"an answer without an end", func(_ context.Context, _ llm.Request, y yield) {
		for y(message.Chunk{Type: message.TextDelta, Text: strings.Repeat("more ", 1000)}, nil) {
		}
	}, 1},
	{"a usage of nonsense", func(_ context.Context, _ llm.Request, y yield) {
		n := int64(-1 << 62)
		say(y, message.Stop, &message.Usage{InputTokens: 1 << 62, OutputTokens: -7, CacheReadTokens: &n}, message.Text("<compacted-summary"))
	}, 2},
	{"nothing in time", func(ctx context.Context, _ llm.Request, _ yield) { <-ctx.Done() }, 1},
	{"nothing in time, deaf to its cancel", func(context.Context, llm.Request, yield) { select {} }, 1},
}

// In the policy layers a digest takes the place of a bad answer; in the policy
// dsh the surface stays as it is. Either way calls are few, the bracket ends,
// and the session goes on.
func TestAHostileSummariserDoesNoHarm(t *testing.T) {
	for _, policy := range []history.Policy{history.Layers, history.DSH} {
		for _, c := range hostile {
			t.Run(string(policy)+"/"+c.name, func(t *testing.T) {
				s := draw(t, "prompt:a=100 step:b=2000 step:c=2000 step:d=500 end")
				timeout := make(chan time.Time)
				if strings.Contains(c.name, "in time") {
					close(timeout)
				}
				calls := 0
				o := history.Options{Policy: policy, Window: 40_000, MaxOutput: 1000,
					After: func(time.Duration) <-chan time.Time { return timeout },
					Provider: provider(func(ctx context.Context, req llm.Request, y func(message.Chunk, error) bool) {
						if err := llm.Check(req); err != nil {
							t.Error(err)
						}
						c.answer(ctx, req, y)
					})}
				m := manager(t, o)
				before := append([]outcrop.Seq(nil), s.s.Surface().Nodes()...)
				n := s.s.Len()
				rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1})
				for ev := range outcrop.Events(s.s.Log(), outcrop.Seq(n)) {
					if ev.Type == outcrop.TypeOutcropSummarizer {
						calls++
					}
				}
				if calls != c.calls || rep.Calls != calls {
					t.Errorf("%d calls are logged, %d reported, want %d", calls, rep.Calls, c.calls)
				}
				if policy == history.DSH {
					if err == nil {
						t.Error("no error")
					}
					if !cmp.Equal(before, append([]outcrop.Seq(nil), s.s.Surface().Nodes()...)) {
						t.Error("the surface changed")
					}
				} else if err != nil || rep.Err == nil || len(rep.Edits) != 1 || !rep.Edits[0].ModelFree || rep.Edits[0].TokensAfter >= rep.Edits[0].TokensBefore {
					t.Errorf("no digest: %v, %+v", err, rep)
				}
				last := s.s.Log().At(outcrop.Seq(s.s.Len() - 1))
				if last.Type != outcrop.TypeCompactionEnd && last.Type != outcrop.TypeOutcropEdit {
					t.Errorf("the log ends with %s", last.Type)
				}
				check(t, s.s)
				for _, word := range strings.Fields("prompt:e=100 step:f=500 step:g=500 step:h=100 end") {
					s.add(word)
				}
				if rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1, ModelFree: true}); err != nil || len(rep.Edits) == 0 {
					t.Errorf("afterwards: %v, %+v", err, rep)
				}
				check(t, s.s)
			})
		}
	}
}

// counting cancels a context, or fails, at one of the calls of an Editor.
type counting struct {
	history.Editor
	n             int
	before, after int
	cancel        func()
	refuse        int // from this call on nothing runs
}

func (c *counting) Edit(ctx context.Context, f func(*outcrop.Session) error) error {
	c.n++
	if c.n == c.before {
		c.cancel()
	}
	if c.refuse > 0 && c.n >= c.refuse {
		return errors.New("the owner is gone")
	}
	err := c.Editor.Edit(ctx, f)
	if c.n == c.after {
		c.cancel()
	}
	return err
}

func summariser(onCall func()) provider {
	return func(_ context.Context, _ llm.Request, y func(message.Chunk, error) bool) {
		if onCall != nil {
			onCall()
		}
		say(y, message.Stop, &message.Usage{InputTokens: 9, OutputTokens: 3}, message.Text("The user asked, and it was done."))
	}
}

func TestACancelAtAnyMomentLeavesAllOrNothing(t *testing.T) {
	for _, policy := range []history.Policy{history.Layers, history.DSH} {
		for moment := range 20 {
			s := draw(t, "prompt:a=100 step:b=2000 step:c=2000 step:d=500 end")
			before := append([]outcrop.Seq(nil), s.s.Surface().Nodes()...)
			ctx, cancel := context.WithCancel(context.Background())
			ed := &counting{Editor: history.Direct(s.s), cancel: cancel}
			o := history.Options{Policy: policy, Window: 10_000, MaxOutput: 1000}
			what := ""
			switch {
			case moment < 8:
				ed.before = moment + 1
				what = fmt.Sprintf("before edit %d", ed.before)
				o.Provider = summariser(nil)
			case moment < 16:
				ed.after = moment - 7
				what = fmt.Sprintf("after edit %d", ed.after)
				o.Provider = summariser(nil)
			case moment == 16:
				what = "while the model answers, which answers all the same"
				o.Provider = summariser(cancel)
			case moment == 17:
				what = "while the model answers, which hangs"
				o.Provider = provider(func(ctx context.Context, _ llm.Request, _ func(message.Chunk, error) bool) { cancel(); select {} })
			case moment == 18:
				what = "while the call is made durable"
				o.Provider = summariser(nil)
				o.Flush = func(ctx context.Context) error { cancel(); return ctx.Err() }
			case moment == 19:
				what = "before anything"
				cancel()
				o.Provider = summariser(nil)
			}
			rep, err := manager(t, o).Compact(ctx, ed, history.Request{Start: -1, End: -1})
			cancelled := ctx.Err() != nil
			cancel()
			if cancelled && !errors.Is(err, context.Canceled) && (err != nil || len(rep.Edits) == 0) {
				t.Errorf("%s, %s: error %v", policy, what, err)
			}
			now := append([]outcrop.Seq(nil), s.s.Surface().Nodes()...)
			if changed := !cmp.Equal(before, now); changed != (len(rep.Edits) > 0) {
				t.Errorf("%s, %s: the surface changed %v, %d edits are reported", policy, what, changed, len(rep.Edits))
			}
			check(t, s.s)
			if bracketsOpen(s.s) {
				t.Errorf("%s, %s: a bracket stays open", policy, what)
			}
			if moment >= 16 && len(rep.Edits) > 0 {
				t.Errorf("%s, %s: it committed", policy, what)
			}
		}
	}
}

func bracketsOpen(s *outcrop.Session) bool {
	open := false
	for ev := range outcrop.Events(s.Log(), s.FirstLive()) {
		switch ev.Type {
		case outcrop.TypeCompactionStart:
			open = true
		case outcrop.TypeCompactionEnd:
			open = false
		}
	}
	return open
}

// When the end of a bracket cannot be written because nobody runs it, the next
// operation of the same manager writes it.
func TestAnEndThatCouldNotBeWrittenIsWrittenLater(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=2000 step:c=2000 step:d=500 end")
	m := manager(t, history.Options{Window: 10_000, Provider: summariser(nil)})
	ed := &counting{Editor: history.Direct(s.s), refuse: 3}
	if _, err := m.Compact(context.Background(), ed, history.Request{Start: -1, End: -1}); err == nil {
		t.Fatal("no error")
	}
	if !bracketsOpen(s.s) {
		t.Fatal("the bracket is closed already")
	}
	if _, err := history.CommitCompaction(s.s, history.Compaction{Start: 1, End: 1, Summary: summary("s")}); err == nil {
		t.Error("somebody else's bracket was committed inside it")
	}
	rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1})
	if err != nil || len(rep.Edits) != 1 {
		t.Fatalf("%v, %+v", err, rep)
	}
	check(t, s.s)
}

// A crash behind any event of a bracket leaves a log that is restored, and
// compacted again.
func TestACrashAtAnyEventLeavesAUsableLog(t *testing.T) {
	for _, policy := range []history.Policy{history.Layers, history.DSH} {
		for _, open := range []bool{false, true} {
			s := draw(t, "prompt:a=100 step:b=2000 step:c=2000 step:d=5000")
			from := s.s.Len()
			ed := history.Direct(s.s)
			m := manager(t, history.Options{Policy: policy, Window: 10_000, MaxOutput: 1000, Provider: summariser(nil)})
			var rep history.Report
			var err error
			if open {
				rep, err = m.PreStep(context.Background(), ed, history.Input{})
			} else {
				s.end()
				from = s.s.Len()
				rep, err = m.Compact(context.Background(), ed, history.Request{Start: -1, End: -1})
			}
			if err != nil || rep.Err != nil || len(rep.Edits) == 0 {
				t.Fatalf("%s: %v, %+v", policy, err, rep)
			}
			before := s.s.Surface().Len()
			for n := from; n <= s.s.Len(); n++ {
				prefix := outcrop.Prefix(s.s.Log(), n)
				back, err := outcrop.Restore(s.s.Header(), func(yield func(outcrop.Record, error) bool) {
					for r := range prefix.Records(0) {
						if !yield(r, nil) {
							return
						}
					}
				}, outcrop.Options{})
				if err != nil {
					t.Fatalf("%s: cut behind event %d: %v", policy, n-1, err)
				}
				checkSession(t, back, true)
				again := manager(t, history.Options{Policy: policy, Window: 10_000, MaxOutput: 1000, Provider: summariser(nil)})
				if _, err := again.Compact(context.Background(), history.Direct(back), history.Request{Start: -1, End: -1}); err != nil && (policy == history.Layers || outcrop.CodeOf(err) != history.CodeNotSmaller) {
					// dsh condenses a checkpoint that stands alone again, to no gain.
					t.Errorf("%s: cut behind event %d: %v", policy, n-1, err)
				}
				if policy == history.Layers && back.Surface().Len() > before {
					t.Errorf("cut behind event %d: %d nodes are left", n-1, back.Surface().Len())
				}
			}
		}
	}
}

func TestABusyManagerRefuses(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=2000 step:c=2000 step:d=500 end")
	var m *history.Manager
	var inside error
	m = manager(t, history.Options{Window: 10_000, Provider: summariser(func() {
		_, inside = m.Measure(context.Background(), history.Direct(s.s))
	})})
	if _, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1}); err != nil {
		t.Fatal(err)
	}
	if outcrop.CodeOf(inside) != history.CodeBusy {
		t.Errorf("inside: %v", inside)
	}
}
