package history_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// builder writes a conversation by hand.
type builder struct {
	s *outcrop.Session
	t interface{ Fatal(...any) }
}

func build(t interface{ Fatal(...any) }, o outcrop.Options) *builder {
	s, err := outcrop.New(outcrop.NewHeader("s1", 1000, "/srv/demo"), o)
	if err != nil {
		t.Fatal(err)
	}
	return &builder{s, t}
}

func (b *builder) log(p outcrop.LogPayload) outcrop.Seq { return b.must(b.s.Append(p)) }

func (b *builder) must(ev outcrop.Event, err error) outcrop.Seq {
	if err != nil {
		b.t.Fatal(err)
	}
	return ev.Seq
}

func (b *builder) user(text string) outcrop.Seq {
	return b.must(b.s.AppendSurface(outcrop.UserMessage{Message: message.Message{
		Content: []message.Block{message.Text(text)}, Source: message.FromUser}}, outcrop.Tail, outcrop.NoSources))
}

func (b *builder) assistant(turn, step int, blocks ...message.Block) outcrop.Seq {
	return b.must(b.s.AppendSurface(outcrop.AssistantMessage{Turn: turn, Step: step, Message: message.Message{
		Content: blocks, Source: message.FromModel("p", "m")}}, outcrop.Tail, outcrop.EmptySources))
}

func (b *builder) result(turn, step int, id, text string) outcrop.Seq {
	call := b.log(outcrop.ToolCall{Turn: turn, Step: step, CallID: id, Name: "read", Arguments: "{}"})
	p := outcrop.NewToolResult(turn, step, id, false, message.Text(text))
	p.Meta = json.RawMessage(`{"n": 1}`)
	return b.must(b.s.AppendSurface(p, outcrop.Tail, outcrop.SourcesOf(call)))
}

func (b *builder) call(id string) message.Block { return message.ToolCall(id, "read", "{}") }

func (b *builder) request(turn, step int) {
	b.log(outcrop.OutcropRequest{Turn: turn, Step: step, Attempt: 1, Purpose: "turn", Prefix: outcrop.Seq(b.s.Len() - 1), Digest: "v1:x", Encoder: "e/1"})
}

func (b *builder) openTurn(turn int) { b.log(outcrop.TurnStart{Turn: turn}) }
func (b *builder) closeTurn(turn int) {
	b.log(outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
}
func (b *builder) openStep(turn, step int)  { b.log(outcrop.StepStart{Turn: turn, Step: step}) }
func (b *builder) closeStep(turn, step int) { b.log(outcrop.StepEnd{Turn: turn, Step: step}) }

// conversation is one turn with a tool and one without. Nodes: 2 user,
// 4 assistant with a call, 6 its result, 10 assistant, 15 user, 17 assistant.
func conversation(t interface{ Fatal(...any) }, o outcrop.Options) *outcrop.Session {
	b := build(t, o)
	b.openTurn(1)
	b.openStep(1, 1)
	b.user("Read the file, please. " + strings.Repeat("It matters. ", 100))
	b.request(1, 1)
	b.assistant(1, 1, b.call("c1"))
	b.result(1, 1, "c1", strings.Repeat("line\n", 400))
	b.closeStep(1, 1)
	b.openStep(1, 2)
	b.request(1, 2)
	b.assistant(1, 2, message.Text("It is a file."))
	b.closeStep(1, 2)
	b.closeTurn(1)
	b.openTurn(2)
	b.openStep(2, 1)
	b.user("And what else?")
	b.request(2, 1)
	b.assistant(2, 1, message.Text("Nothing."))
	b.closeStep(2, 1)
	b.closeTurn(2)
	return b.s
}

func summary(text string) []message.Block { return []message.Block{message.Text(text)} }

func logText(log outcrop.Log, from int) string {
	var b strings.Builder
	for ev := range outcrop.Events(log, outcrop.Seq(from)) {
		b.Write(ev.AppendJSON(nil))
		b.WriteByte('\n')
	}
	return b.String()
}

func TestCompactionIsOneBracketWithNothingInside(t *testing.T) {
	s := conversation(t, outcrop.Options{})
	n := s.Len()
	e, err := history.CommitCompaction(s, history.Compaction{
		ID: "cmp-1", Start: 2, End: 10, Summary: summary("The user asked for a file."), Provider: "p", Model: "m", MaxTokens: 8192, Level: 1, MessageID: "cp1",
	})
	if err != nil {
		t.Fatal(err)
	}
	if e.First != 20 || e.Last != 24 || e.Replacement != 22 || !cmp.Equal(e.Shadowed, []outcrop.Seq{2, 4, 6, 10}) {
		t.Errorf("edit %+v", e)
	}
	if got := s.Surface().Nodes(); !cmp.Equal(got, []outcrop.Seq{22, 15, 17}) {
		t.Errorf("surface %v", got)
	}
	got := logText(s.Log(), n)
	got = strings.Replace(got, "An earlier part of this conversation was condensed to make room. The summary below stands for it: take it as what happened, do not answer it, and go on with the messages that follow.", "PREAMBLE", 1)
	want := strings.Join([]string{
		`{"type":"compaction/start","seq":20,"time":1000,"data":{"compactionId":"cmp-1","turn":null}}`,
		fmt.Sprintf(`{"type":"compaction/summary","seq":21,"time":1000,"data":{"compactionId":"cmp-1","summary":[{"type":"text","text":"The user asked for a file."}],"shadowedRange":{"start":2,"end":10},"shadowedSeqs":[2,4,6,10],"shadowedTokenCount":%d,"provider":"p","model":"m","maxTokens":8192,"level":1}}`, e.TokensBefore),
		`{"type":"user/message","seq":22,"time":1000,"data":{"content":[{"type":"text","text":"PREAMBLE\n\n<compacted-summary>"},{"type":"text","text":"The user asked for a file."},{"type":"text","text":"</compacted-summary>"}],"source":{"kind":"plugin","plugin":"compact","compactionId":"cmp-1"},"role":"user","id":"cp1"},"sourceEventSeqs":[20,21,2,4,6,10],"surfaceOp":{"op":"replace","start":2,"end":10}}`,
		`{"type":"compaction/end","seq":23,"time":1000,"data":{"compactionId":"cmp-1","turn":null}}`,
		fmt.Sprintf(`{"type":"outcrop/edit","seq":24,"time":1000,"data":{"replaceSeq":22,"kind":"compaction","tokensBefore":%d,"tokensAfter":%d,"cacheInvalidated":%d},"ignorable":true}`, e.TokensBefore, e.TokensAfter, e.CacheInvalidated),
		"",
	}, "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The last request (prefix 15) held the range and the prompt behind it,
	// not the reply.
	prompt := llm.EstimateTokens(message.Message{Content: summary("And what else?")})
	if e.CacheInvalidated != e.TokensBefore+prompt || e.TokensAfter >= e.TokensBefore {
		t.Errorf("tokens %+v, prompt %d", e, prompt)
	}
	check(t, s)
}

func TestCompactionInsideAnOpenTurnNamesIt(t *testing.T) {
	b := &builder{conversation(t, outcrop.Options{}), t}
	b.openTurn(3)
	e, err := history.CommitCompaction(b.s, history.Compaction{Start: 2, End: 15, Summary: summary("S"), CommandID: "cmd-1", Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b.s.Log().At(e.First).Data); got != fmt.Sprintf(`{"compactionId":"cmp-%d","sourceCommandId":"cmd-1","turn":3}`, e.First) {
		t.Errorf("start %s", got)
	}
	b.closeTurn(3)
	check(t, b.s)
}

func TestCompactionRefusesAndLeavesNoTrace(t *testing.T) {
	good := history.Compaction{Start: 2, End: 10, Summary: summary("S"), Provider: "p", Model: "m"}
	with := func(f func(*history.Compaction)) history.Compaction {
		c := good
		f(&c)
		return c
	}
	for _, c := range []struct {
		name string
		c    history.Compaction
		code outcrop.Code
	}{
		{"a start that is no node", with(func(c *history.Compaction) { c.Start = 3 }), history.CodeNotOnSurface},
		{"an end that does not exist", with(func(c *history.Compaction) { c.End = 99 }), history.CodeNotOnSurface},
		{"reversed", with(func(c *history.Compaction) { c.Start, c.End = 10, 2 }), history.CodeReversed},
		{"a result without its call", with(func(c *history.Compaction) { c.Start = 6 }), history.CodeSplitsPair},
		{"a call without its result", with(func(c *history.Compaction) { c.End = 4 }), history.CodeSplitsPair},
		{"no summary", with(func(c *history.Compaction) { c.Summary = nil }), history.CodeNoSummary},
		{"a blank summary", with(func(c *history.Compaction) { c.Summary = summary(" \n") }), history.CodeNoSummary},
		{"a summary that is no text", with(func(c *history.Compaction) { c.Summary = []message.Block{message.ToolCall("a", "b", "{}")} }), history.CodeNoSummary},
		{"no gain", with(func(c *history.Compaction) { c.Start, c.End = 10, 10 }), history.CodeNotSmaller},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := conversation(t, outcrop.Options{})
			n, nodes := s.Len(), s.Surface().View()
			_, err := history.CommitCompaction(s, c.c)
			if outcrop.CodeOf(err) != c.code || !errors.Is(err, outcrop.ErrRefused) {
				t.Errorf("error %v, want code %s", err, c.code)
			}
			if s.Len() != n || !cmp.Equal(s.Surface().Nodes(), nodes.Nodes()) || s.Surface().Generation() != nodes.Generation() {
				t.Error("it left a trace")
			}
		})
	}
}

func TestAVetoOfAnyPartLeavesNoTrace(t *testing.T) {
	compact := func(s *outcrop.Session) error {
		_, err := history.CommitCompaction(s, history.Compaction{Start: 2, End: 10, Summary: summary("S"), Provider: "p", Model: "m"})
		return err
	}
	prune := func(s *outcrop.Session) error {
		_, err := history.CommitPrune(s, 6, summary("short"))
		return err
	}
	for _, c := range []struct {
		name string
		part outcrop.Type
		run  func(*outcrop.Session) error
	}{
		{"start", outcrop.TypeCompactionStart, compact},
		{"summary", outcrop.TypeCompactionSummary, compact},
		{"checkpoint", outcrop.TypeUserMessage, compact},
		{"edit of a compaction", outcrop.TypeOutcropEdit, compact},
		{"prune", outcrop.TypeCompactionPrune, prune},
		{"shorter result", outcrop.TypeToolResult, prune},
		{"edit of a prune", outcrop.TypeOutcropEdit, prune},
	} {
		t.Run(c.name, func(t *testing.T) {
			armed := false
			s := conversation(t, outcrop.Options{Vetoes: []func(outcrop.Event) error{func(ev outcrop.Event) error {
				if armed && ev.Type == c.part {
					return errors.New("no")
				}
				return nil
			}}})
			armed = true
			n, view := s.Len(), s.Surface().View()
			if err := c.run(s); !errors.Is(err, outcrop.ErrVetoed) {
				t.Errorf("error %v", err)
			}
			if s.Len() != n || !cmp.Equal(s.Surface().Nodes(), view.Nodes()) || s.Surface().Generation() != view.Generation() {
				t.Error("it left a trace")
			}
			armed = false
			if err := c.run(s); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			check(t, s)
		})
	}
}

func TestPruneKeepsEverythingButTheContent(t *testing.T) {
	b := build(t, outcrop.Options{})
	b.openTurn(1)
	b.openStep(1, 1)
	b.user("Read.")
	b.assistant(1, 1, b.call("c1"))
	call := b.log(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "c1", Name: "read", Arguments: "{}"})
	data := `{"turn":1,"step":1,"message":{"x":1e2,"source":{"kind":"tool","callId":"c1","y":[]},"content":[{"type":"tool-result","z":"\ud83d","toolCallId":"c1","content":[{"type":"text","text":"` +
		strings.Repeat("long ", 100) + `"}],"isError":true}],"role":"user","id":"r1"},"error":{"name":"E","code":"C"},"meta":{"big":9007199254740993},"more":null}`
	node := b.must(b.s.AppendRaw(outcrop.Event{Type: outcrop.TypeToolResult, Data: json.RawMessage(data), Op: outcrop.Tail, Sources: outcrop.SourcesOf(call)}))
	b.closeStep(1, 1)
	e, err := history.CommitPrune(b.s, node, summary("long ... long"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(data, strings.Repeat("long ", 100), "long ... long", 1)
	if got := string(b.s.Log().At(e.Replacement).Data); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	tail := logText(b.s.Log(), int(e.First))
	for _, part := range []string{
		fmt.Sprintf(`{"type":"compaction/prune","seq":%d,"time":1000,"data":{"shadowedRange":{"start":%d,"end":%d},"shadowedSeqs":[%d],"shadowedTokenCount":%d}}`, e.First, node, node, node, e.TokensBefore),
		fmt.Sprintf(`"sourceEventSeqs":[%d],"surfaceOp":{"op":"replace","start":%d,"end":%d}}`, node, node, node),
		fmt.Sprintf(`{"replaceSeq":%d,"kind":"prune","tokensBefore":%d,"tokensAfter":%d,"cacheInvalidated":`, e.Replacement, e.TokensBefore, e.TokensAfter),
	} {
		if !strings.Contains(tail, part) {
			t.Errorf("no %s in\n%s", part, tail)
		}
	}
	// A pruned result can be pruned again, not the one it covers.
	if _, err := history.CommitPrune(b.s, node, summary("x")); outcrop.CodeOf(err) != history.CodeNotOnSurface {
		t.Errorf("the covered one: %v", err)
	}
	if _, err := history.CommitPrune(b.s, e.Replacement, summary("x")); err != nil {
		t.Errorf("again: %v", err)
	}
	b.closeTurn(1)
	check(t, b.s)
}

func TestPruneRefusesAndLeavesNoTrace(t *testing.T) {
	for _, c := range []struct {
		name    string
		node    outcrop.Seq
		content []message.Block
		code    outcrop.Code
	}{
		{"no node", 5, summary("x"), history.CodeNotOnSurface},
		{"not a result", 4, summary("x"), history.CodeNotResult},
		{"no gain", 6, summary(strings.Repeat("line\n", 400)), history.CodeNotSmaller},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := conversation(t, outcrop.Options{})
			n := s.Len()
			if _, err := history.CommitPrune(s, c.node, c.content); outcrop.CodeOf(err) != c.code {
				t.Errorf("error %v", err)
			}
			if s.Len() != n {
				t.Error("it left a trace")
			}
		})
	}
}

func TestCutsNeverSplitAnExchange(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *builder)
		want  string // one character a cut: | may cut, - not
	}{
		{"nothing", func(*builder) {}, "|"},
		{"no calls", func(b *builder) { b.user("a"); b.assistant(1, 1, message.Text("b")); b.user("c") }, "||||"},
		{"a call and its result", func(b *builder) { b.user("a"); b.assistant(1, 1, b.call("c1")); b.result(1, 1, "c1", "r"); b.user("b") }, "||-||"},
		{"two calls, results the other way round", func(b *builder) {
			b.assistant(1, 1, b.call("c1"), b.call("c2"))
			b.result(1, 1, "c2", "r")
			b.result(1, 1, "c1", "r")
		}, "|--|"},
		{"steering between call and result", func(b *builder) { b.assistant(1, 1, b.call("c1")); b.user("x"); b.result(1, 1, "c1", "r") }, "|--|"},
		{"a call that was never answered, in a closed step", func(b *builder) {
			b.openTurn(1)
			b.openStep(1, 1)
			b.assistant(1, 1, b.call("c1"))
			b.closeStep(1, 1)
			b.closeTurn(1)
			b.user("x")
		}, "|||"},
		{"a call that waits in the open step", func(b *builder) {
			b.openTurn(1)
			b.openStep(1, 1)
			b.user("x")
			b.assistant(1, 1, b.call("c1"))
		}, "||-"},
		{"one of two calls waits", func(b *builder) {
			b.openTurn(1)
			b.openStep(1, 1)
			b.assistant(1, 1, b.call("c1"), b.call("c2"))
			b.result(1, 1, "c1", "r")
		}, "|--"},
		{"a result without a call", func(b *builder) { b.user("a"); b.result(1, 1, "c9", "r"); b.user("b") }, "||||"},
		{"an id that comes again belongs to the nearest call", func(b *builder) {
			b.assistant(1, 1, b.call("c1"))
			b.result(1, 1, "c1", "r")
			b.user("x")
			b.assistant(2, 1, b.call("c1"))
			b.result(2, 1, "c1", "r")
		}, "|-||-|"},
		{"an unanswered call of the same id does not take the later result", func(b *builder) {
			b.assistant(1, 1, b.call("c1"))
			b.user("x")
			b.assistant(2, 1, b.call("c1"))
			b.result(2, 1, "c1", "r")
		}, "|||-|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := build(t, outcrop.Options{})
			c.build(b)
			got := ""
			for _, ok := range history.BalancedCut(b.s) {
				if ok {
					got += "|"
				} else {
					got += "-"
				}
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Whatever is compacted and pruned in whatever order, the surface is that of
// the log, and no request is refused.
func TestAnyEditsKeepTheSessionGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := build(t, outcrop.Options{})
		for turn := 1; turn <= rapid.IntRange(1, 5).Draw(t, "turns"); turn++ {
			b.openTurn(turn)
			b.openStep(turn, 1)
			b.user(strings.Repeat("word ", rapid.IntRange(1, 60).Draw(t, "words")))
			b.request(turn, 1)
			var calls []message.Block
			n := rapid.IntRange(0, 3).Draw(t, "calls")
			for i := range n {
				calls = append(calls, b.call(fmt.Sprintf("c%d", i)))
			}
			b.assistant(turn, 1, append(calls, message.Text("So."))...)
			for i := range n {
				if rapid.IntRange(0, 5).Draw(t, "answered") > 0 {
					b.result(turn, 1, fmt.Sprintf("c%d", i), strings.Repeat("line\n", rapid.IntRange(1, 200).Draw(t, "lines")))
				}
			}
			b.closeStep(turn, 1)
			for range rapid.IntRange(0, 2).Draw(t, "edits") {
				nodes := b.s.Surface().Nodes()
				before := b.s.Len()
				i := rapid.IntRange(0, len(nodes)-1).Draw(t, "from")
				var err error
				if rapid.Bool().Draw(t, "compact") {
					j := rapid.IntRange(0, len(nodes)-1).Draw(t, "to")
					_, err = history.CommitCompaction(b.s, history.Compaction{Start: nodes[i], End: nodes[j], Summary: summary("Short."), Provider: "p", Model: "m"})
				} else {
					_, err = history.CommitPrune(b.s, nodes[i], summary("Cut."))
				}
				if err != nil && (!errors.Is(err, outcrop.ErrRefused) || b.s.Len() != before) {
					t.Fatalf("%v; %d events were added", err, b.s.Len()-before)
				}
				check(t, b.s)
			}
			b.closeTurn(turn)
		}
		check(t, b.s)
	})
}

// check holds the live session against the detached fold, the invariants and
// the rules of requests.
func check(t fataler, s *outcrop.Session) { checkSession(t, s, false) }

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// checkSession is check for a log that may break invariants by itself.
func checkSession(t fataler, s *outcrop.Session, loose bool) {
	log := s.Log()
	var inv outcrop.Invariants
	for ev := range outcrop.Events(log, 0) {
		// Own sessions may rewrite a result between turns.
		if v := inv.Check(ev); !loose && len(v) > 0 && v[0].Label != "tool-rewrite-outside-turn" {
			t.Fatalf("event %d %s: %v", ev.Seq, ev.Type, v)
		}
	}
	fold, err := outcrop.FoldSurface(log.Records(0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fold.Nodes, append([]outcrop.Seq(nil), s.Surface().Nodes()...)); diff != "" {
		t.Fatalf("live surface and fold differ: %s", diff)
	}
	var msgs []llm.Node
	for _, m := range s.Messages() {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, llm.Node{Seq: int64(m.Seq), Message: parsed})
	}
	if err := llm.Check(llm.Request{Config: llm.Config{Provider: "p", Model: "m"}, Messages: llm.Build(msgs)}); err != nil {
		t.Fatal(err)
	}
}
