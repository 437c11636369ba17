package meter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// writer writes sessions by hand.
type writer struct {
	t fataler
	s *outcrop.Session
}

type fataler interface{ Fatal(...any) }

func write(t fataler) *writer {
	s, err := outcrop.New(outcrop.NewHeader("s1", 1000, "/srv/demo"), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &writer{t, s}
}

func (w *writer) must(ev outcrop.Event, err error) outcrop.Seq {
	if err != nil {
		w.t.Fatal(err)
	}
	return ev.Seq
}

func (w *writer) log(p outcrop.LogPayload) outcrop.Seq { return w.must(w.s.Append(p)) }

func (w *writer) user(text string) outcrop.Seq {
	return w.must(w.s.AppendSurface(outcrop.UserMessage{Message: message.Message{
		Content: []message.Block{message.Text(text)}, Source: message.FromUser}}, outcrop.Tail, outcrop.NoSources))
}

func (w *writer) reply(u *message.Usage, blocks ...message.Block) outcrop.Seq {
	return w.must(w.s.AppendSurface(outcrop.AssistantMessage{Turn: 1, Step: 1, Usage: u,
		Message: message.Message{Content: blocks, Source: message.FromModel("p", "m")}}, outcrop.Tail, outcrop.EmptySources))
}

func (w *writer) result(id, text string) outcrop.Seq {
	return w.must(w.s.AppendSurface(outcrop.NewToolResult(1, 1, id, false, message.Text(text)), outcrop.Tail,
		outcrop.SourcesOf(w.log(outcrop.ToolCall{Turn: 1, Step: 1, CallID: id, Name: "read", Arguments: "{}"}))))
}

func (w *writer) header(model, system string) {
	w.log(outcrop.RequestHeader{Reason: "change", Header: llm.HeaderJSON(llm.Config{Provider: "p", Model: model}, system,
		[]llm.Tool{{Name: "read", Description: "reads a file"}})})
}

func (w *writer) request() {
	w.log(outcrop.OutcropRequest{Turn: 1, Step: 1, Attempt: 1, Purpose: "turn", Prefix: outcrop.Seq(w.s.Len() - 1), Digest: "v1:x", Encoder: "e/1"})
}

// replace puts a message in the place of a range of positions.
func (w *writer) replace(from, to int, text string) outcrop.Seq {
	nodes := w.s.Surface().Nodes()
	covered := append([]outcrop.Seq(nil), nodes[from:to]...)
	return w.must(w.s.AppendSurface(outcrop.UserMessage{Message: message.Message{
		Content: []message.Block{message.Text(text)}, Source: message.Source{Kind: "plugin", Plugin: "compact"}}},
		outcrop.Replace(covered[0], covered[len(covered)-1]), outcrop.SourcesOf(covered...)))
}

func update(m *meter.Meter, s *outcrop.Session) {
	v := s.Surface().View()
	m.Update(s.Log(), v.Nodes(), v.Generation())
}

func tokens(prompt int64) *message.Usage {
	read := prompt / 2
	return &message.Usage{InputTokens: prompt - read, CacheReadTokens: &read, OutputTokens: 10}
}

// estimate is the price of everything, by the rule of package llm.
func estimate(s *outcrop.Session) (n int64) {
	if h, ok := s.RequestHeader(); ok {
		_, system, tools, err := llm.ParseHeader(h.Raw)
		if err == nil {
			n += llm.EstimateHeader(system, tools)
		}
	}
	for _, m := range s.Messages() {
		parsed, err := message.Parse(m.Raw)
		if err == nil {
			n += llm.EstimateTokens(parsed)
		}
	}
	return n
}

func TestWhatAFigureStandsOn(t *testing.T) {
	text := strings.Repeat("word ", 200)
	for _, c := range []struct {
		name  string
		write func(w *writer) (want func() int64)
		basis meter.Basis
	}{
		{"nothing was reported", func(w *writer) func() int64 {
			w.header("m", "s")
			w.user(text)
			w.reply(nil, message.Text("ok"))
			return func() int64 { return estimate(w.s) }
		}, meter.Estimate},
		{"a reply's usage, and prices of what came after its request", func(w *writer) func() int64 {
			w.header("m", "s")
			w.user(text)
			w.request()
			before := estimate(w.s)
			w.reply(tokens(2*before), message.Text("ok"))
			w.user("more")
			return func() int64 { return 2*before + 2*(estimate(w.s)-before) }
		}, meter.Usage},
		{"a step that enters its prompt after step/start does not count it twice", func(w *writer) func() int64 {
			w.header("m", "s")
			w.log(outcrop.TurnStart{Turn: 1})
			w.log(outcrop.StepStart{Turn: 1, Step: 1})
			w.user(strings.Repeat(text, 20))
			w.request()
			before := estimate(w.s)
			w.reply(tokens(before), message.Text("ok"))
			return func() int64 { return estimate(w.s) }
		}, meter.Usage},
		{"a log without announced requests is anchored at the reply", func(w *writer) func() int64 {
			w.header("m", "s")
			w.user(text)
			before := estimate(w.s)
			w.reply(tokens(3*before), message.Text("ok"))
			return func() int64 { return 3*before + 3*(estimate(w.s)-before) }
		}, meter.Usage},
		{"a usage of nothing", func(w *writer) func() int64 {
			w.user(text)
			w.reply(&message.Usage{}, message.Text("ok"))
			return func() int64 { return estimate(w.s) }
		}, meter.Estimate},
		{"a usage below a quarter of the prices", func(w *writer) func() int64 {
			w.user(text)
			w.reply(tokens(20), message.Text("ok"))
			return func() int64 { return estimate(w.s) }
		}, meter.Estimate},
		{"a usage beyond the window", func(w *writer) func() int64 {
			w.user(text)
			w.reply(tokens(100_001), message.Text("ok"))
			return func() int64 { return estimate(w.s) }
		}, meter.Estimate},
		{"a negative usage", func(w *writer) func() int64 {
			w.user(text)
			w.reply(&message.Usage{InputTokens: -5}, message.Text("ok"))
			return func() int64 { return estimate(w.s) }
		}, meter.Estimate},
		{"a bad usage does not undo a good one", func(w *writer) func() int64 {
			w.user(text)
			before := estimate(w.s)
			w.reply(tokens(2*before), message.Text("ok"))
			w.user("more")
			w.reply(&message.Usage{InputTokens: 1}, message.Text("ok"))
			return func() int64 { return 2*before + 2*(estimate(w.s)-before) }
		}, meter.Usage},
		{"a message outside a step does no harm", func(w *writer) func() int64 {
			w.reply(nil, message.Text("ok"))
			w.user(text)
			before := estimate(w.s)
			w.reply(tokens(before), message.Text("ok"))
			return func() int64 { return estimate(w.s) }
		}, meter.Usage},
		{"an edit behind the request leaves the anchor", func(w *writer) func() int64 {
			w.user(text)
			before := estimate(w.s)
			w.reply(tokens(2*before), message.Text("ok"))
			w.user("a")
			w.user("b")
			w.replace(2, 4, "c")
			return func() int64 { return 2*before + 2*(estimate(w.s)-before) }
		}, meter.Usage},
		{"another system prompt ends the anchor, not the ratio", func(w *writer) func() int64 {
			w.header("m", "s")
			w.user(text)
			before := estimate(w.s)
			w.reply(tokens(2*before), message.Text("ok"))
			w.header("m", text)
			return func() int64 { return 2 * estimate(w.s) }
		}, meter.Calibrated},
		{"another model ends both", func(w *writer) func() int64 {
			w.header("m", "s")
			w.user(text)
			w.reply(tokens(2*estimate(w.s)), message.Text("ok"))
			w.header("other", "s")
			return func() int64 { return estimate(w.s) }
		}, meter.Estimate},
		{"the same header again changes nothing", func(w *writer) func() int64 {
			w.header("m", "s")
			w.user(text)
			before := estimate(w.s)
			w.reply(tokens(2*before), message.Text("ok"))
			w.header("m", "s")
			return func() int64 { return 2*before + 2*(estimate(w.s)-before) }
		}, meter.Usage},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := write(t)
			want := c.write(w)
			m := meter.New(nil, 100_000)
			update(m, w.s)
			p := m.Parts()
			if p.Basis != c.basis {
				t.Errorf("basis %s, want %s", p.Basis, c.basis)
			}
			if diff := p.Used - want(); diff < 0 || diff > 2 { // rounded up once
				t.Errorf("used %d, want %d", p.Used, want())
			}
			if sum := p.System + p.Tools + p.Messages + p.Results + p.Media; sum != p.Used {
				t.Errorf("the parts are %d, all is %d", sum, p.Used)
			}
		})
	}
}

func TestAnEditInsideTheRequestLeavesTheRatio(t *testing.T) {
	w := write(t)
	w.user(strings.Repeat("word ", 500))
	w.user("b")
	before := estimate(w.s)
	w.reply(tokens(3*before), message.Text("ok"))
	m := meter.New(nil, 0)
	update(m, w.s)
	w.replace(0, 2, "short")
	update(m, w.s)
	p := m.Parts()
	if want := 3 * estimate(w.s); p.Basis != meter.Calibrated || p.Used < want || p.Used > want+2 {
		t.Errorf("%s %d, want about %d", p.Basis, p.Used, want)
	}
	w.reply(tokens(2*estimate(w.s)), message.Text("ok"))
	if update(m, w.s); m.Parts().Basis != meter.Usage {
		t.Error("the next reply did not anchor it again")
	}
}

func TestPartsByKind(t *testing.T) {
	w := write(t)
	w.header("m", "You are.")
	w.user("Look at this.")
	w.must(w.s.AppendSurface(outcrop.UserMessage{Message: message.Message{Source: message.FromUser, Content: []message.Block{
		{Type: message.ImageBlock, Attachment: []byte(`{"kind":"sha256","id":"abc","mediaType":"image/png","size":123456}`)}}}}, outcrop.Tail, outcrop.NoSources))
	w.reply(nil, message.ToolCall("c1", "read", "{}"))
	w.result("c1", strings.Repeat("line\n", 50))
	m := meter.New(nil, 0)
	update(m, w.s)
	p := m.Parts()
	if p.System == 0 || p.Tools == 0 || p.Messages == 0 || p.Results < 60 || p.Media == 0 || p.Used != estimate(w.s) || p.Counter != "heuristic" {
		t.Errorf("%+v", p)
	}
}

func TestWhatANodeIs(t *testing.T) {
	w := write(t)
	w.user("p")
	w.reply(nil, message.Text("x"), message.ToolCall("c1", "read", "{}"), message.ToolCall("c2", "read", "{}"))
	w.result("c1", "four")
	w.must(w.s.AppendSurface(outcrop.ContextMessage{Message: message.Message{
		Content: []message.Block{message.Text("day 1")}, Source: message.Source{Kind: "outcrop", Form: "runtime"}}}, outcrop.Tail, outcrop.NoSources))
	w.must(w.s.AppendSurface(outcrop.UserMessage{Message: message.Message{
		Content: []message.Block{message.Text("day 1")}, Source: message.Source{Kind: "plugin", Plugin: "time-context", Form: "snapshot"}}}, outcrop.Tail, outcrop.NoSources))
	w.must(w.s.AppendSurface(outcrop.ContextMessage{Message: message.Message{
		Content: []message.Block{}, Source: message.Source{Kind: "outcrop", Form: "rewind"}}}, outcrop.Tail, outcrop.NoSources))
	w.replace(0, 1, "summary")
	m := meter.New(nil, 0)
	update(m, w.s)
	var got []meter.Node
	for i := range m.Len() {
		n := *m.Node(i)
		n.Seq, n.Tokens = 0, 0
		got = append(got, n)
	}
	want := []meter.Node{
		{Kind: meter.Checkpoint, Level: 1},
		{Kind: meter.Reply, Calls: []string{"c1", "c2"}},
		{Kind: meter.Result, Answers: "c1", Points: 4},
		{Kind: meter.Context, Name: "runtime"},
		{Kind: meter.Context, Name: "time-context:"},
		{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
}

func TestWhatAnEditPutsOutOfTheCache(t *testing.T) {
	w := write(t)
	w.user("one")
	w.user("two")
	w.user("three")
	m := meter.New(nil, 0)
	update(m, w.s)
	if n := m.Cached(0); n != 0 {
		t.Errorf("%d tokens without a request", n)
	}
	w.request()
	w.user("four")
	update(m, w.s)
	if n := m.Cached(1); n != m.Sum(1, 3) {
		t.Errorf("%d tokens, want those of two and three", n)
	}
	w.replace(1, 2, "2")
	update(m, w.s)
	if n := m.Cached(1); n != m.Sum(2, 3) {
		t.Errorf("%d tokens, want those of three: what replaced two was not held", n)
	}
	if n := m.Cached(3); n != 0 {
		t.Errorf("%d tokens behind the request", n)
	}
}

// Whatever is appended and replaced, and however often the meter looks, it
// knows what a fresh one knows.
func TestAMeterThatGrewKnowsWhatAFreshOneKnows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := write(t)
		grown := meter.New(nil, 0)
		calls := 0
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch rapid.IntRange(0, 8).Draw(t, "event") {
			case 0, 1:
				w.user(strings.Repeat("a ", rapid.IntRange(1, 50).Draw(t, "words")))
			case 2, 3:
				calls++
				w.reply(nil, message.Text("x"), message.ToolCall(fmt.Sprintf("c%d", calls%5), "read", "{}"))
			case 4:
				w.result(fmt.Sprintf("c%d", rapid.IntRange(0, 5).Draw(t, "id")), "r")
			case 5:
				w.log(outcrop.StepStart{Turn: 1, Step: 1})
			case 6:
				w.log(outcrop.StepEnd{Turn: 1, Step: 1})
			case 7:
				if n := w.s.Surface().Len(); n > 0 {
					from := rapid.IntRange(0, n-1).Draw(t, "from")
					w.replace(from, rapid.IntRange(from+1, n).Draw(t, "to"), "s")
				}
			case 8:
				update(grown, w.s)
			}
		}
		update(grown, w.s)
		fresh := meter.New(nil, 0)
		update(fresh, w.s)
		if diff := cmp.Diff(fresh.Parts(), grown.Parts()); diff != "" {
			t.Fatalf("parts: %s", diff)
		}
		if grown.Used() != estimate(w.s) {
			t.Fatalf("used %d, priced anew %d", grown.Used(), estimate(w.s))
		}
		if diff := cmp.Diff(fresh.Exchanges(nil, 0), grown.Exchanges(nil, 0)); diff != "" {
			t.Fatalf("exchanges: %s", diff)
		}
		if diff := cmp.Diff(fresh.Cuts(), grown.Cuts()); diff != "" {
			t.Fatalf("cuts: %s", diff)
		}
		for i := range fresh.Len() {
			if diff := cmp.Diff(fresh.Node(i), grown.Node(i)); diff != "" {
				t.Fatalf("node %d: %s", i, diff)
			}
		}
	})
}

// counter counts how often it is asked.
type counter struct {
	meter.Heuristic
	asked int
}

func (c *counter) Text(s string) int64 {
	c.asked++
	return c.Heuristic.Text(s)
}

func TestOnlyNewNodesArePriced(t *testing.T) {
	w := write(t)
	for range 100 {
		w.user("text")
	}
	c := &counter{}
	m := meter.New(c, 0)
	update(m, w.s)
	c.asked = 0
	if update(m, w.s); c.asked != 0 {
		t.Errorf("with nothing new it priced %d texts", c.asked)
	}
	w.user("new")
	if update(m, w.s); c.asked != 1 {
		t.Errorf("with one new node it priced %d texts", c.asked)
	}
	c.asked = 0
	w.replace(10, 20, "s")
	w.replace(30, 40, "s")
	if update(m, w.s); c.asked != 2 {
		t.Errorf("after two replaces it priced %d texts", c.asked)
	}
}
