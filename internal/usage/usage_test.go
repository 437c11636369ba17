package usage_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// book writes a log by hand.
type book struct {
	t          testing.TB
	s          *outcrop.Session
	turn, step int
	chunks     outcrop.Seq // the first one of the attempt
}

func newBook(t testing.TB, s *outcrop.Session) *book { return &book{t: t, s: s} }

func open(t testing.TB) *book {
	var now int64
	s, err := outcrop.New(outcrop.NewHeader("s", 1, ""), outcrop.Options{
		Now: func() int64 { now++; return now }, NewID: func() string { return fmt.Sprint("m", now) }})
	if err != nil {
		t.Fatal(err)
	}
	return newBook(t, s)
}

func (b *book) log(p outcrop.LogPayload) *book {
	b.t.Helper()
	if _, err := b.s.Append(p); err != nil {
		b.t.Fatal(err)
	}
	return b
}

func (b *book) header(model, reason string) *book {
	return b.log(outcrop.RequestHeader{Header: []byte(`{"config":{"provider":"p","model":"` + model + `"}}`), Reason: reason})
}

func (b *book) begin() *book {
	b.turn, b.step = b.turn+1, 1
	return b.log(outcrop.TurnStart{Turn: b.turn}).log(outcrop.StepStart{Turn: b.turn, Step: 1})
}

func (b *book) end(kind outcrop.ReasonKind) *book {
	return b.log(outcrop.StepEnd{Turn: b.turn, Step: b.step}).log(outcrop.TurnEnd{Turn: b.turn, Reason: outcrop.TurnReason{Kind: kind}})
}

func (b *book) request(attempt int) *book {
	b.chunks = -1
	return b.log(outcrop.OutcropRequest{Turn: b.turn, Step: b.step, Attempt: attempt, Purpose: "turn", Digest: "v1:x"})
}

func (b *book) chunk(c message.Chunk) *book {
	if b.chunks < 0 {
		b.chunks = outcrop.Seq(b.s.Len())
	}
	return b.log(outcrop.AssistantChunk{Turn: b.turn, Step: b.step, Chunk: c})
}

func (b *book) text() *book { return b.chunk(message.Chunk{Type: message.TextDelta, Text: "x"}) }

func (b *book) reports(u *message.Usage) *book {
	return b.chunk(message.Chunk{Type: message.UsageChunk, Usage: u})
}

func (b *book) finish(kind message.FinishKind) *book {
	f := &message.Finish{Kind: kind}
	if kind == message.Errored || kind == message.Aborted {
		f.Failure = &message.Failure{Message: "no", Code: message.CodeServer}
	}
	return b.chunk(message.Chunk{Type: message.FinishChunk, Reason: f})
}

func (b *book) retry() *book {
	return b.log(outcrop.LLMRetry{RetryID: "r", Turn: b.turn, Step: b.step, Provider: "p", PolicyKey: "k", Retry: 1, MaxRetries: 5,
		Failure: &message.Failure{Message: "no", Code: message.CodeServer}})
}

func (b *book) answers(u *message.Usage, interrupted bool) *book {
	b.t.Helper()
	src := outcrop.SourcesOf()
	if b.chunks >= 0 {
		src = outcrop.SourceRange(b.chunks, outcrop.Seq(b.s.Len()-1))
	}
	b.chunks = -1
	_, err := b.s.AppendSurface(outcrop.AssistantMessage{Turn: b.turn, Step: b.step, Usage: u, Interrupted: interrupted,
		Message: message.Message{Content: []message.Block{message.Text("x")}, Source: message.FromModel("p", "m")}}, outcrop.Tail, src)
	if err != nil {
		b.t.Fatal(err)
	}
	return b
}

// took is what a call took that no summary counts; usage is a member, or "".
func (b *book) took(call int, outcome history.Outcome, usage string) *book {
	b.t.Helper()
	if _, err := b.s.AppendRaw(outcrop.Event{Type: history.TypeSummarizerUsage, Ignorable: true,
		Data: fmt.Appendf(nil, `{"purpose":"compaction","call":%d,"model":"p:m","outcome":%q%s}`, call, outcome, usage)}); err != nil {
		b.t.Fatal(err)
	}
	return b
}

// took is a usage of n tokens of input and 10n of output.
func took(n int64) *message.Usage { return &message.Usage{InputTokens: n, OutputTokens: 10 * n} }

func scan(h outcrop.Header, log outcrop.Log, price usage.Price) (calls []usage.Call) {
	s := usage.NewScan(h, price, func(c usage.Call) { calls = append(calls, c) })
	for r := range log.Records(0) {
		s.Add(r)
	}
	s.End()
	return calls
}

// brief is a call as "turn.step#attempt outcome input".
func brief(calls []usage.Call) (out []string) {
	for _, c := range calls {
		what := fmt.Sprintf("%d.%d#%d", c.Turn, c.Step, c.Attempt)
		if c.Purpose != "turn" {
			what = fmt.Sprintf("%s*%d", c.Purpose, c.Calls)
		}
		what += " " + string(c.Outcome)
		if c.Usage == nil {
			what += " ?"
		} else {
			what += fmt.Sprintf(" %d", c.Usage.InputTokens)
		}
		if c.Unpriced {
			what += " unpriced"
		}
		if c.CacheBreak != "" {
			what += " new " + c.CacheBreak
		}
		if c.Inherited {
			what += " inherited"
		}
		out = append(out, what)
	}
	return out
}

func TestWhatCountsAsACall(t *testing.T) {
	free := func(string, string) *llm.Price { return &llm.Price{} }
	for _, c := range []struct {
		name  string
		write func(b *book)
		want  []string
	}{
		{"an answer", func(b *book) {
			b.begin().request(1).text().reports(took(7)).finish(message.Stop).answers(took(7), false).end(outcrop.Completed)
		}, []string{"1.1#1 answered 7"}},
		{"of growing figures the last one counts", func(b *book) {
			b.begin().request(1).reports(took(1)).text().reports(took(5)).answers(nil, false).end(outcrop.Completed)
		}, []string{"1.1#1 answered 5"}},
		{"the figure of the message counts most", func(b *book) {
			b.begin().request(1).reports(took(1)).text().reports(took(4)).answers(took(5), false).end(outcrop.Completed)
		}, []string{"1.1#1 answered 5"}},
		{"no figure at all is not nothing", func(b *book) {
			b.begin().request(1).text().finish(message.Stop).answers(nil, false).end(outcrop.Completed)
		}, []string{"1.1#1 answered ? unpriced"}},
		{"figures below zero are none", func(b *book) {
			b.begin().request(1).text().answers(took(-1), false).end(outcrop.Completed)
		}, []string{"1.1#1 answered ? unpriced"}},
		{"a refused attempt and its repetition", func(b *book) {
			b.begin().request(1).finish(message.Errored).retry().request(2).text().answers(took(7), false).end(outcrop.Completed)
		}, []string{"1.1#1 failed ?", "1.1#2 answered 7"}},
		{"a failed attempt counts what was reported", func(b *book) {
			b.begin().request(1).text().reports(took(3)).finish(message.Errored).retry().request(2).text().answers(took(7), false).end(outcrop.Completed)
		}, []string{"1.1#1 failed 3", "1.1#2 answered 7"}},
		{"a failed attempt that began to answer had a cost", func(b *book) {
			b.begin().request(1).text().finish(message.Errored).end(outcrop.TurnError)
		}, []string{"1.1#1 failed ? unpriced"}},
		{"an attempt that was replaced without a word failed", func(b *book) {
			b.begin().request(1).request(2).text().answers(took(7), false).end(outcrop.Completed)
		}, []string{"1.1#1 failed ?", "1.1#2 answered 7"}},
		{"a cancelled answer", func(b *book) {
			b.begin().request(1).text().finish(message.Aborted).answers(took(2), true).end(outcrop.TurnAborted)
		}, []string{"1.1#1 interrupted 2"}},
		{"a cancelled attempt of which nothing is left", func(b *book) {
			b.begin().request(1).finish(message.Aborted).end(outcrop.TurnAborted)
		}, []string{"1.1#1 interrupted ?"}},
		{"an attempt that a crash cut", func(b *book) {
			b.begin().request(1).text().end(outcrop.TurnInterrupted)
		}, []string{"1.1#1 interrupted ? unpriced"}},
		{"an attempt that is under way", func(b *book) {
			b.begin().request(1).text().reports(took(4))
		}, []string{"1.1#1 open 4"}},
		{"without outcrop/request attempts end at their finish", func(b *book) {
			b.chunks = -1
			b.begin().text().reports(took(3)).finish(message.Errored).retry()
			b.chunks = -1
			b.text().reports(took(4)).finish(message.Errored)
			b.chunks = -1
			b.text().reports(took(5)).finish(message.Stop).answers(nil, false).end(outcrop.Completed)
		}, []string{"1.1#1 failed 3", "1.1#2 failed 4", "1.1#3 answered 5"}},
		{"without chunks there is still an answer", func(b *book) {
			b.chunks = -1
			b.begin().answers(took(5), false).end(outcrop.Completed)
		}, []string{"1.1#1 answered 5"}},
		{"a step without any model call", func(b *book) { b.begin().end(outcrop.Blocked) }, nil},
		{"the header changes the prefix", func(b *book) {
			b.header("m", "initial").begin().request(1).answers(took(1), false).end(outcrop.Completed)
			b.header("n", "change").begin().request(1).answers(took(2), false).end(outcrop.Completed)
			b.begin().request(1).answers(took(3), false).end(outcrop.Completed)
		}, []string{"1.1#1 answered 1", "2.1#1 answered 2 new header", "3.1#1 answered 3"}},
		{"calls for a compaction are one entry", func(b *book) {
			b.begin().request(1).answers(took(1), false).end(outcrop.Completed)
			b.log(outcrop.CompactionStart{CompactionID: "c"})
			for n := range 2 {
				b.log(outcrop.OutcropSummarizerCall{Purpose: "compaction", Call: n + 1, Model: "p:m", Mode: "part", Digest: "v1:x"})
			}
			nodes := b.s.Surface().Nodes()
			b.log(outcrop.CompactionSummary{CompactionID: "c", Summary: []message.Block{message.Text("x")}, Shadowed: nodes, Provider: "p", Model: "m", Usage: took(9)})
			if _, err := b.s.AppendSurface(outcrop.UserMessage{Message: message.Message{Content: []message.Block{message.Text("x")},
				Source: message.Source{Kind: "plugin", Plugin: "compact", CompactionID: "c"}}}, outcrop.Replace(nodes[0], nodes[0]), outcrop.SourcesOf(nodes...)); err != nil {
				b.t.Fatal(err)
			}
			b.log(outcrop.CompactionEnd{CompactionID: "c"})
			b.begin().request(1).answers(took(2), false).end(outcrop.Completed)
		}, []string{"1.1#1 answered 1", "compaction*2 answered 9", "2.1#1 answered 2 new edit"}},
		{"a compaction that failed", func(b *book) {
			b.log(outcrop.CompactionStart{CompactionID: "c"}).
				log(outcrop.OutcropSummarizerCall{Purpose: "compaction", Call: 1, Model: "p:m", Mode: "whole", Digest: "v1:x"}).
				log(outcrop.CompactionEnd{CompactionID: "c", Error: "no"})
		}, []string{"compaction*1 failed ? unpriced"}},
		{"a compaction that failed with what its calls took", func(b *book) {
			b.log(outcrop.CompactionStart{CompactionID: "c"})
			for n := range 3 {
				b.log(outcrop.OutcropSummarizerCall{Purpose: "compaction", Call: n + 1, Model: "p:m", Mode: "whole", Digest: "v1:x"})
			}
			b.took(1, history.OutcomeUnused, `,"usage":{"inputTokens":5,"outputTokens":50}`).took(2, history.OutcomeUnused, "").took(3, history.OutcomeNothing, "").
				log(outcrop.CompactionEnd{CompactionID: "c", Error: "no"})
		}, []string{"compaction*1 failed 5", "compaction*1 failed ? unpriced", "compaction*1 failed ?"}},
		{"a summary after a refused answer, of two of which one has no figures", func(b *book) {
			b.log(outcrop.CompactionStart{CompactionID: "c"})
			for n := range 3 {
				b.log(outcrop.OutcropSummarizerCall{Purpose: "compaction", Call: n + 1, Model: "p:m", Mode: "whole", Digest: "v1:x"})
			}
			b.took(1, history.OutcomeUnused, `,"usage":{"inputTokens":5,"outputTokens":50}`).took(2, history.OutcomeUsed, "").
				log(outcrop.CompactionSummary{CompactionID: "c", Summary: []message.Block{message.Text("x")}, Shadowed: []outcrop.Seq{0}, Provider: "p", Model: "m", Usage: took(9)}).
				log(outcrop.CompactionEnd{CompactionID: "c"})
		}, []string{"compaction*1 failed 5", "compaction*1 answered ? unpriced", "compaction*1 answered 9"}},
		{"a digest in the place of an answer of which nothing is known", func(b *book) {
			b.log(outcrop.CompactionStart{CompactionID: "c"}).
				log(outcrop.OutcropSummarizerCall{Purpose: "compaction", Call: 1, Model: "p:m", Mode: "whole", Digest: "v1:x"}).
				log(outcrop.CompactionSummary{CompactionID: "c", Summary: []message.Block{message.Text("x")}, Shadowed: []outcrop.Seq{0}, Provider: "outcrop", Model: "model-free"}).
				log(outcrop.CompactionEnd{CompactionID: "c"})
		}, []string{"compaction*1 failed ? unpriced"}},
		{"calls that a crash cut belong to no later compaction", func(b *book) {
			b.log(outcrop.CompactionStart{CompactionID: "c"}).
				log(outcrop.OutcropSummarizerCall{Purpose: "compaction", Call: 1, Model: "p:m", Mode: "whole", Digest: "v1:x"}).
				log(outcrop.CompactionStart{CompactionID: "d"}).
				log(outcrop.OutcropSummarizerCall{Purpose: "compaction", Call: 1, Model: "p:m", Mode: "whole", Digest: "v1:x"}).
				log(outcrop.CompactionSummary{CompactionID: "d", Summary: []message.Block{message.Text("x")}, Shadowed: []outcrop.Seq{0}, Provider: "p", Model: "m", Usage: took(9)}).
				log(outcrop.CompactionEnd{CompactionID: "d"})
		}, []string{"compaction*1 interrupted ? unpriced", "compaction*1 answered 9"}},
		{"a compaction of dsh", func(b *book) {
			b.log(outcrop.CompactionStart{CompactionID: "c"}).
				log(outcrop.CompactionSummary{CompactionID: "c", Summary: []message.Block{message.Text("x")}, RawOutput: []message.Block{message.Text("x")}, LLMStreamCall: true,
					Shadowed: []outcrop.Seq{0}, Provider: "p", Model: "m", Usage: took(9)}).
				log(outcrop.CompactionEnd{CompactionID: "c"})
		}, []string{"compaction*1 answered 9"}},
		{"a compaction that asked no model", func(b *book) {
			b.log(outcrop.CompactionStart{CompactionID: "c"}).
				log(outcrop.CompactionSummary{CompactionID: "c", Summary: []message.Block{message.Text("x")}, Shadowed: []outcrop.Seq{0}, Provider: "p", Model: "m"}).
				log(outcrop.CompactionEnd{CompactionID: "c"})
		}, nil},
		{"a title", func(b *book) {
			b.log(outcrop.OutcropSummarizerCall{Purpose: "title", Call: 1, Model: "q:big:7b", Mode: "cut", Digest: "v1:x"})
		}, []string{"title*1 answered ? unpriced"}},
		{"an overflow that is compacted away inside the step", func(b *book) {
			b.begin().request(1).finish(message.Errored)
			b.log(outcrop.CompactionStart{CompactionID: "c"}).
				log(outcrop.OutcropSummarizerCall{Purpose: "compaction", Call: 1, Model: "p:m", Mode: "whole", Digest: "v1:x"}).
				log(outcrop.CompactionSummary{CompactionID: "c", Summary: []message.Block{message.Text("x")}, Shadowed: []outcrop.Seq{0}, Provider: "p", Model: "m", Usage: took(9)}).
				log(outcrop.CompactionEnd{CompactionID: "c"})
			b.request(2).answers(took(2), false).end(outcrop.Completed)
		}, []string{"1.1#1 failed ?", "compaction*1 answered 9", "1.1#2 answered 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t)
			c.write(b)
			got := scan(b.s.Header(), b.s.Log(), free)
			if d := cmp.Diff(c.want, brief(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestTheModelOfACallIsTheOneThatAnswered(t *testing.T) {
	b := open(t)
	b.header("asked", "initial").begin().request(1).finish(message.Errored).retry()
	b.request(2).answers(took(1), false).end(outcrop.Completed)
	b.log(outcrop.OutcropSummarizerCall{Purpose: "title", Call: 1, Model: "q:big:7b", Mode: "cut", Digest: "v1:x"})
	var got []string
	for _, c := range scan(b.s.Header(), b.s.Log(), nil) {
		got = append(got, c.Provider+":"+c.Model)
	}
	if d := cmp.Diff([]string{"p:asked", "p:m", "q:big:7b"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Only what lies below the seed's length belongs to somebody else, wherever
// session/end-seed stands.
func TestTheSeedBelongsToTheParent(t *testing.T) {
	b := open(t)
	b.begin().request(1).answers(took(3), false).end(outcrop.Completed)
	seed := int64(b.s.Len())
	b.begin().request(1).answers(took(10), false).end(outcrop.Completed)
	b.begin().request(1).answers(took(70), false).end(outcrop.Completed)
	h := b.s.Header()
	h.SeedLength = &seed
	// The markers of resumes stand in the log.
	var recs []outcrop.Record
	for r := range b.s.Log().Records(0) {
		recs = append(recs, r)
		if int64(r.Seq) == seed-1 || r.Seq == outcrop.Seq(b.s.Len()-1) {
			recs = append(recs, outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeEndSeed, Seq: r.Seq, Data: []byte("{}")}})
		}
	}
	var calls []usage.Call
	s := usage.NewScan(h, nil, func(c usage.Call) { calls = append(calls, c) })
	for _, r := range recs {
		s.Add(r)
	}
	s.End()
	var a usage.Account
	for i := range calls {
		a.Add(&calls[i])
	}
	if a.Own.Input != 80 || a.Inherited.Input != 3 || a.Own.Calls != 2 || a.Inherited.Calls != 1 {
		t.Errorf("%+v", a)
	}
	h.SeedLength = nil
	if got := brief(scan(h, b.s.Log(), nil)); slices.ContainsFunc(got, func(s string) bool { return len(s) > 9 && s[len(s)-9:] == "inherited" }) {
		t.Errorf("without a seed: %v", got)
	}
}

func TestCostIsKnownOrItIsNot(t *testing.T) {
	price := func(provider, model string) *llm.Price {
		if provider == "p" && model == "m" {
			return &llm.Price{Input: 1_000_000, Output: 2_000_000}
		}
		return nil
	}
	sum := func(calls ...usage.Call) (s usage.Sum) {
		for i := range calls {
			s.Add(&calls[i])
		}
		return s
	}
	b := open(t)
	b.header("m", "initial").begin().request(1).finish(message.Errored).retry().request(2).answers(took(7), false).end(outcrop.Completed)
	s := sum(scan(b.s.Header(), b.s.Log(), price)...)
	if micro, ok := s.Total(); !ok || micro != 7+2*70 || s.Failed != 1 || s.Calls != 2 {
		t.Errorf("all is known: %+v", s)
	}
	b.begin().request(1).text().answers(nil, false).end(outcrop.Completed)
	s = sum(scan(b.s.Header(), b.s.Log(), price)...)
	if _, ok := s.Total(); ok || s.Cost != 147 || s.Unpriced != 1 {
		t.Errorf("a call without usage: %+v", s)
	}
	s = sum(scan(b.s.Header(), b.s.Log(), nil)...)
	if _, ok := s.Total(); ok || s.Cost != 0 || s.Unpriced != 2 {
		t.Errorf("no price: %+v", s)
	}
	b = open(t)
	b.header("m", "initial").begin().request(1).finish(message.Errored).end(outcrop.TurnError)
	s = sum(scan(b.s.Header(), b.s.Log(), nil)...)
	if _, ok := s.Total(); ok {
		t.Errorf("a first call that was refused, without a price: %+v", s)
	}
	s = sum(scan(b.s.Header(), b.s.Log(), price)...)
	if micro, ok := s.Total(); !ok || micro != 0 {
		t.Errorf("a first call that was refused, with a price: %+v", s)
	}
	huge := &message.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}
	s = sum(usage.Call{Calls: 1, Usage: huge, Unpriced: true}, usage.Call{Calls: 1, Usage: huge, Unpriced: true})
	s.AddSum(s)
	if s.Input != math.MaxInt64 || s.Calls != 4 {
		t.Errorf("sums that are too large: %+v", s)
	}
}

// Whatever is retried, cancelled, compacted and forked: the sum over all
// sessions is what the models charged, in any order, and also when those that
// others were forked from are gone.
func TestTheSumIsWhatWasCharged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		st := memory.New()
		var now, charged, n int64
		o := store.Options{Session: outcrop.Options{Now: func() int64 { now++; return now }, NewID: func() string { n++; return fmt.Sprint("m", n) }}}
		l, err := store.Create(ctx, st, outcrop.NewHeader("s0", 1, ""), o)
		if err != nil {
			rt.Fatal(err)
		}
		charge := func() *message.Usage { n++; charged += n; return took(n) }
		work := func(s *outcrop.Session) {
			b := newBook(t, s)
			b.turn = int(n)
			for range rapid.IntRange(1, 3).Draw(rt, "turns") {
				b.begin().request(1)
				for attempt := 2; rapid.Bool().Draw(rt, "fails"); attempt++ {
					if rapid.Bool().Draw(rt, "late") {
						b.text().reports(took(1)).reports(charge())
					}
					b.finish(message.Errored).retry().request(attempt)
				}
				switch rapid.IntRange(0, 2).Draw(rt, "end") {
				case 0:
					b.text().reports(charge()).end(outcrop.TurnInterrupted)
				default:
					u := charge()
					b.text().reports(took(1)).answers(u, false).end(outcrop.Completed)
				}
				if rapid.Bool().Draw(rt, "compact") {
					b.log(outcrop.CompactionStart{CompactionID: "c"}).
						log(outcrop.CompactionSummary{CompactionID: "c", Summary: []message.Block{message.Text("x")}, Shadowed: []outcrop.Seq{0}, Provider: "p", Model: "m", Usage: charge()}).
						log(outcrop.CompactionEnd{CompactionID: "c"})
				}
			}
		}
		work(l.Session())
		if err := l.Close(ctx); err != nil {
			rt.Fatal(err)
		}
		ids := []string{"s0"}
		forked := map[string]bool{} // everything of them is in another session
		for i := range rapid.IntRange(0, 5).Draw(rt, "more") {
			from := rapid.SampledFrom(ids).Draw(rt, "from")
			if rapid.Bool().Draw(rt, "resume") {
				forked[from] = false
			} else {
				id := fmt.Sprint("s", i+1)
				now++
				if _, err := store.Fork(ctx, st, from, -1, store.Child{ID: id, CreatedAt: now}); err != nil {
					rt.Fatal(err)
				}
				forked[from], from = true, id
				ids = append(ids, id)
			}
			l, err := store.Open(ctx, st, from, o)
			if err != nil {
				rt.Fatal(err)
			}
			work(l.Session())
			if err := l.Close(ctx); err != nil {
				rt.Fatal(err)
			}
		}
		total := func(ids []string) (sum, own int64) {
			var ledger usage.Ledger
			for _, id := range ids {
				s, _, err := store.Inspect(ctx, st, id, outcrop.Options{})
				if err != nil {
					rt.Fatal(err)
				}
				var a usage.Account
				for _, c := range scan(s.Header(), s.Log(), nil) {
					a.Add(&c)
					ledger.Add(&c)
				}
				own += a.Own.Input
			}
			return ledger.Sum().Input, own
		}
		if sum, own := total(ids); sum != charged || own != charged {
			rt.Fatalf("the sum is %d, of what is each session's own %d, charged were %d", sum, own, charged)
		}
		slices.Reverse(ids)
		left := slices.DeleteFunc(ids, func(id string) bool { return forked[id] && rapid.Bool().Draw(rt, "remove "+id) })
		if sum, _ := total(left); sum != charged {
			rt.Fatalf("of %v the sum is %d, charged were %d", left, sum, charged)
		}
	})
}

func TestALogOfAnySizeIsScannedInOnePass(t *testing.T) {
	s := usage.NewScan(genlog.Header(1), nil, func(c usage.Call) {
		if c.Outcome != usage.Answered {
			t.Errorf("%+v", c)
		}
	})
	for r := range genlog.Records(1, 20_000) {
		s.Add(r)
	}
	s.End()
}
