package history_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/history/dsh"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

var background = context.Background()

func TestOptionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		o    history.Options
	}{
		{"a policy that there is not", history.Options{Policy: "lru"}},
		{"a ratio over one", history.Options{Ratio: 1.1}},
		{"a negative ratio", history.Options{Ratio: -1}},
		{"a tail as large as the limit", history.Options{Ratio: 0.5, Keep: 0.5}},
		{"a negative window", history.Options{Window: -1}},
		{"a pruner that keeps more than its threshold", history.Options{Pruner: dsh.Pruner{Threshold: 10, Head: 10}}},
	} {
		if _, err := history.NewManager(c.o); err == nil {
			t.Errorf("%s is accepted", c.name)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		o           history.Options
		limit, left int64 // for an answer, at 1,000 tokens used
	}{
		{history.Options{}, 0, 0},
		{history.Options{Window: 128_000, MaxOutput: 8000}, 102_400, 8000},
		{history.Options{Window: 80_000, MaxOutput: 32_000}, 80_000 - 32_000 - 1600, 32_000},
		{history.Options{Window: 8000, MaxOutput: 4096}, 8000 - 4096 - 1024, 4096},
		{history.Options{Window: 4000, MaxOutput: 8000}, 1000, 1976}, // what is asked for does not fit
		{history.Options{Window: 2000}, 976, 256},
		{history.Options{Window: 100_000, Ratio: 0.5}, 50_000, 97_000},
	} {
		if got := c.o.Limit(); got != c.limit {
			t.Errorf("%d of %d: limit %d, want %d", c.o.MaxOutput, c.o.Window, got, c.limit)
		}
		if got := c.o.OutputFor(1000); got != c.left {
			t.Errorf("%d of %d: left %d, want %d", c.o.MaxOutput, c.o.Window, got, c.left)
		}
	}
}

func TestOffOnlyWarns(t *testing.T) {
	for _, policy := range []history.Policy{history.Layers, history.DSH} {
		s := draw(t, "prompt:a=100 step:b=5000 step:c=5000 step:d=100")
		var told []string
		m := manager(t, history.Options{Policy: policy, Off: true, Window: 10_000, Provider: summariser(func() { t.Error("a model was asked") }),
			Notify: func(n history.Notice) { told = append(told, n.Text) }})
		n := s.s.Len()
		for range 3 {
			rep, err := m.PreStep(background, history.Direct(s.s), history.Input{})
			if err != nil || rep.Err != nil || rep.Notice == "" {
				t.Errorf("%s: %v, %+v", policy, err, rep)
			}
			if retry, _, err := m.Overflow(background, history.Direct(s.s)); retry || err != nil {
				t.Errorf("%s: overflow: %v, %v", policy, retry, err)
			}
		}
		if s.s.Len() != n || len(told) != 1 || !strings.Contains(told[0], "of 10,000: compaction is off") {
			t.Errorf("%s: %d events were added, told %q", policy, s.s.Len()-n, told)
		}
		s.end()
		if rep, err := m.Compact(background, history.Direct(s.s), history.Request{Start: -1, End: -1, ModelFree: true}); err != nil || len(rep.Edits) != 1 {
			t.Errorf("%s: by hand: %v, %+v", policy, err, rep)
		}
	}
}

func TestDryRunsChangeNothing(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=5000 step:c=5000 step:d=100 end")
	m := manager(t, history.Options{Window: 10_000, Provider: summariser(func() { t.Error("a model was asked") })})
	ed := history.Direct(s.s)
	n := s.s.Len()
	nodes := s.s.Surface().Nodes()
	for _, f := range []func() (history.Report, error){
		func() (history.Report, error) {
			return m.Compact(background, ed, history.Request{Start: -1, End: -1, DryRun: true})
		},
		func() (history.Report, error) {
			return m.Compact(background, ed, history.Request{Start: nodes[1], End: nodes[4], DryRun: true})
		},
		func() (history.Report, error) { return m.Prune(background, ed, nil, true) },
		func() (history.Report, error) { return m.Prune(background, ed, []outcrop.Seq{nodes[2]}, true) },
	} {
		rep, err := f()
		if err != nil || len(rep.Edits) > 0 || len(rep.Planned) == 0 || rep.Planned[0].Tokens < 4000 {
			t.Errorf("%v, %+v", err, rep)
		}
	}
	if s.s.Len() != n {
		t.Errorf("%d events were added", s.s.Len()-n)
	}
}

// A summariser that never helps is not asked at each step.
func TestTheBreaker(t *testing.T) {
	asked := 0
	s := draw(t, "prompt:a=100 step:b=1900 step:c=1900 step:h=1900 step:i=1900 step:j=500 step:d=100")
	m := manager(t, history.Options{Policy: history.DSH, Window: 10_000, MaxOutput: 1000, Provider: provider(func(_ context.Context, _ llm.Request, y func(message.Chunk, error) bool) {
		asked++
		y(message.Chunk{}, &message.Failure{Code: message.CodeServer, Message: "down"})
	})})
	step := func(in history.Input) {
		t.Helper()
		rep, err := m.PreStep(background, history.Direct(s.s), in)
		if err != nil {
			t.Fatal(err, rep)
		}
	}
	want := func(n int, when string) {
		t.Helper()
		if asked != n {
			t.Errorf("%s: asked %d times, want %d", when, asked, n)
		}
	}
	step(history.Input{})
	want(1, "the first time")
	step(history.Input{})
	step(history.Input{})
	want(1, "with nothing new")
	s.add("step:e=100")
	step(history.Input{})
	want(1, "after a little growth")
	s.add("step:f=1000")
	step(history.Input{})
	want(2, "after growth by a tenth of the limit")
	step(history.Input{Claimed: []message.Message{{Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text("go on")}}}})
	want(3, "when a prompt comes")
	s.add("prompt:g=10")
	step(history.Input{})
	want(4, "when a prompt came")
	check(t, s.s)
}

// When a pass leaves the context over its limit, no other one follows until
// something changed.
func TestAPassThatDoesNotHelpIsNotRepeated(t *testing.T) {
	asked := 0
	var told []string
	s := draw(t, "prompt:a=100 step:b=400 step:c=400 step:p=8000 pin:p step:d=100")
	m := manager(t, history.Options{Window: 10_000, MaxOutput: 1000, Provider: summariser(func() { asked++ }),
		Notify: func(n history.Notice) {
			if n.Kind == history.Full {
				told = append(told, n.Text)
			}
		}})
	for range 20 {
		s.add("step:e=10")
		if _, err := m.PreStep(background, history.Direct(s.s), history.Input{}); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 || len(told) != 1 || !strings.Contains(told[0], "cannot be reduced further") {
		t.Errorf("asked %d times, told %q", asked, told)
	}
}

func TestOverflow(t *testing.T) {
	answer := func(s *scene) {
		s.step++
		s.openStep(s.turn, s.step)
	}
	s := draw(t, "prompt:a=100 step:b=2000 step:c=2000 step:d=2000")
	asked := 0
	m := manager(t, history.Options{Provider: summariser(func() { asked++ })}) // the window is not known
	ed := history.Direct(s.s)
	over := func(want bool, when string) {
		t.Helper()
		retry, rep, err := m.Overflow(background, ed)
		if err != nil || retry != want {
			t.Errorf("%s: retry %v, %v, %+v", when, retry, err, rep)
		}
	}
	answer(s)
	over(true, "the first time")
	over(false, "again in the step")
	s.closeStep(s.turn, s.step)
	answer(s)
	over(false, "in the next step, when no reply came")
	s.assistant(s.turn, s.step, message.Text("ok"))
	s.closeStep(s.turn, s.step)
	s.add("step:e=2000")
	s.add("step:f=2000")
	s.add("step:g=2000")
	answer(s)
	over(true, "after a reply")
	s.closeStep(s.turn, s.step)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	s.end()
	check(t, s.s)
}

// One result that fills the window is shortened after an overflow, because
// nothing else can be done, and only then.
func TestOverflowShortensTheNewestResultLast(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=60000")
	m := manager(t, history.Options{Window: 20_000})
	ed := history.Direct(s.s)
	if rep, err := m.PreStep(background, ed, history.Input{}); err != nil || len(rep.Edits) > 0 || rep.Notice == "" {
		t.Fatalf("%v, %+v", err, rep)
	}
	s.openStep(1, s.step+1)
	retry, rep, err := m.Overflow(background, ed)
	if err != nil || !retry || len(rep.Edits) != 1 || rep.After > 2000 {
		t.Errorf("retry %v, %v, %+v", retry, err, rep)
	}
	s.closeStep(1, s.step+1)
	s.end()
	check(t, s.s)
}

func TestByHandOnlyBetweenTurns(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=500 step:c=500 step:d=500")
	m := manager(t, history.Options{})
	ed := history.Direct(s.s)
	if _, err := m.Compact(background, ed, history.Request{Start: -1, End: -1}); outcrop.CodeOf(err) != history.CodeBusy {
		t.Errorf("in a turn: %v", err)
	}
	if rep, err := m.CompactRange(background, ed, s.s.Surface().Nodes()[1], s.s.Surface().Nodes()[4]); err != nil || len(rep.Edits) != 1 || !rep.Edits[0].ModelFree {
		t.Errorf("a range in a turn: %v, %+v", err, rep)
	}
	s.end()
	if _, err := m.CompactRange(background, ed, 0, 0); outcrop.CodeOf(err) != history.CodeNoTurn {
		t.Errorf("a range between turns: %v", err)
	}
	if rep, err := m.Compact(background, ed, history.Request{Start: -1, End: -1}); err != nil || len(rep.Edits) != 0 {
		t.Errorf("with nothing to do: %v, %+v", err, rep)
	}
	check(t, s.s)
}

func TestAPinnedRangeIsRefused(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=9000 step:c=500 pin:b' end")
	nodes := s.s.Surface().Nodes()
	m := manager(t, history.Options{})
	ed := history.Direct(s.s)
	n := s.s.Len()
	if _, err := m.Compact(background, ed, history.Request{Start: nodes[0], End: nodes[4]}); outcrop.CodeOf(err) != history.CodeProtected {
		t.Errorf("compacted: %v", err)
	}
	if _, err := m.Prune(background, ed, nodes[2:3], false); outcrop.CodeOf(err) != history.CodeProtected {
		t.Errorf("pruned: %v", err)
	}
	if s.s.Len() != n {
		t.Error("it left a trace")
	}
}

// In a session that dsh reads, a result is shortened only inside a turn.
func TestPruningWaitsForATurnInSessionsOfDSH(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=9000 step:c=500 end")
	node := s.s.Surface().Nodes()[2]
	h := s.s.Header()
	if h.Compatible() {
		t.Fatal("the session is dsh's")
	}
	theirs := outcrop.NewHeader("s1", 1000, "/srv/demo")
	theirs.Outcrop = 0
	back, err := outcrop.Seed(theirs, s.s.Log(), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s      *outcrop.Session
		queued int
	}{{s.s, 0}, {back, 1}} {
		m := manager(t, history.Options{})
		ed := history.Direct(c.s)
		rep, err := m.Prune(background, ed, []outcrop.Seq{node}, false)
		if err != nil || len(rep.Queued) != c.queued || len(rep.Edits) != 1-c.queued {
			t.Fatalf("%v, %+v", err, rep)
		}
		if c.queued == 0 {
			continue
		}
		b := &builder{c.s, t}
		b.openTurn(2)
		rep, err = m.PreStep(background, ed, history.Input{})
		if err != nil || len(rep.Edits) != 1 || rep.Edits[0].Shadowed[0] != node {
			t.Errorf("before the next step: %v, %+v", err, rep)
		}
		if rep, err = m.PreStep(background, ed, history.Input{}); err != nil || len(rep.Edits) != 0 {
			t.Errorf("before the step after it: %v, %+v", err, rep)
		}
	}
}

func TestTheCheckpointSaysWhereTheOriginalsAreWhenTheyCanBeRead(t *testing.T) {
	for _, offered := range []bool{false, true} {
		s := draw(t, "prompt:a=100 step:b=500 step:c=500 step:d=500")
		tools := []llm.Tool{{Name: "read"}}
		if offered {
			tools = append(tools, llm.Tool{Name: "history_read"})
		}
		s.openStep(1, s.step+1)
		s.log(outcrop.RequestHeader{Reason: "change", Header: llm.HeaderJSON(llm.Config{Provider: "p", Model: "m"}, "", tools)})
		s.closeStep(1, s.step+1)
		s.end()
		rep, err := manager(t, history.Options{Provider: summariser(nil)}).Compact(background, history.Direct(s.s), history.Request{Start: -1, End: -1})
		if err != nil || len(rep.Edits) != 1 {
			t.Fatal(err, rep)
		}
		covered := rep.Edits[0].Shadowed
		want := fmt.Sprintf("The originals are the events %d to %d: history_read shows them.", covered[0], covered[len(covered)-1])
		if got := strings.Contains(string(s.s.Log().At(rep.Edits[0].Replacement).Data), want); got != offered {
			t.Errorf("offered %v, said %v", offered, got)
		}
	}
}

func TestTheCacheAccount(t *testing.T) {
	b := build(t, outcrop.Options{})
	usage := func(input, read int64) *message.Usage {
		return &message.Usage{InputTokens: input, CacheReadTokens: &read, OutputTokens: 1}
	}
	reply := func(u *message.Usage) outcrop.Seq {
		return b.must(b.s.AppendSurface(outcrop.AssistantMessage{Turn: 1, Step: 1, Usage: u,
			Message: message.Message{Content: []message.Block{message.Text("ok")}, Source: message.FromModel("p", "m")}}, outcrop.Tail, outcrop.EmptySources))
	}
	b.user(strings.Repeat("word ", 1000))
	first := b.user(strings.Repeat("word ", 1000))
	second := b.user(strings.Repeat("word ", 1000))
	b.request(1, 1)
	reply(usage(1000, 3000))
	for _, node := range []outcrop.Seq{second, first} {
		if _, err := history.CommitCompaction(b.s, history.Compaction{Start: node, End: node, Summary: summary("s"), Provider: "p", Model: "m"}); err != nil {
			t.Fatal(err)
		}
	}
	next := reply(usage(1500, 1400))
	last, err := history.CommitCompaction(b.s, history.Compaction{Start: 0, End: 0, Summary: summary("s"), Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	got := history.CacheAccount(b.s.Log())
	// The second edit stands before the first one on the surface: what it put
	// out of the cache is what counts. Of what it covers in front of the
	// checkpoint that was made since, only the originals were held.
	read := int64(1400)
	one := llm.EstimateText(strings.Repeat("word ", 1000)) + 4
	want := []history.CacheEdit{
		{Edits: []outcrop.Seq{got[0].Edits[0], got[0].Edits[1]}, Invalidated: one, Held: 4000, Next: next, Read: &read},
		{Edits: []outcrop.Seq{last.Last}, Invalidated: last.CacheInvalidated, Held: 2900, Next: -1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
	if lost, ok := got[0].Lost(); !ok || lost != 2600 {
		t.Errorf("lost %d, %v", lost, ok)
	}
	if _, ok := got[1].Lost(); ok {
		t.Error("something is known about a reply that did not come")
	}
}

func TestDigest(t *testing.T) {
	user := func(text string) message.Message {
		return message.Message{Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text(text)}}
	}
	msgs := []message.Message{
		user("Fix the test\nin a.go."),
		{Role: message.Assistant, Content: []message.Block{message.Reasoning("hm"), message.Text("I look."), message.ToolCall("c1", "read", `{"path":"a.go"}`), message.ToolCall("c2", "shell", `{"command":"go test"}`)}},
		{Role: message.User, Content: []message.Block{message.ToolResult("c1", false, message.Text("package a\n\nfunc A() {}"))}},
		{Role: message.User, Content: []message.Block{message.ToolResult("c2", true, message.Text("exit 1"))}},
		{Role: message.Assistant, Content: []message.Block{message.Text("It is fixed.")}},
		{Role: message.User, Source: message.Source{Kind: "plugin", Plugin: "compact"}, Content: []message.Block{
			message.Text("An earlier part of this conversation was condensed\n\n<compacted-summary>"), message.Text("Before all this."), message.Text("</compacted-summary>")}},
	}
	var nodes []llm.Node
	for i, m := range msgs {
		nodes = append(nodes, llm.Node{Seq: int64(i), Message: m})
	}
	want := strings.Join([]string{
		"Condensed without a model: what was said and done, in order.",
		"user: Fix the test in a.go.",
		"assistant: I look.",
		`ran read {"path":"a.go"} -> 22 characters: package a func A() {}`,
		`ran shell {"command":"go test"} -> failed: exit 1`,
		"assistant: It is fixed.",
		"before: Before all this.",
	}, "\n")
	if diff := cmp.Diff(want, history.Digest(nodes, 10_000)); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
	for most := int64(0); most < 400; most += 7 {
		got := history.Digest(nodes, most)
		if n := int64(len([]rune(got))); n > max(most, 96) {
			t.Errorf("%d code points, %d were allowed: %s", n, most, got)
		}
		if got != history.Digest(nodes, most) {
			t.Error("made again, it differs")
		}
	}
	if got := history.Digest(nodes, 220); !strings.Contains(got, "Fix the test") || !strings.Contains(got, "Before all this") || !strings.Contains(got, "lines left out]") {
		t.Errorf("a short one: %s", got)
	}
}

func TestAnotherModelHasAnotherWindow(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=3000 step:c=3000 step:d=3000")
	m := manager(t, history.Options{Window: 100_000})
	if rep, err := m.PreStep(background, history.Direct(s.s), history.Input{}); err != nil || len(rep.Edits) != 0 {
		t.Fatalf("%v, %+v", err, rep)
	}
	asked := 0
	m.SetModel(summariser(func() { asked++ }), 8000, 1000, false)
	rep, err := m.PreStep(background, history.Direct(s.s), history.Input{})
	if err != nil || len(rep.Edits) != 1 || asked != 1 || rep.After >= rep.Before {
		t.Errorf("asked %d times, %v, %+v", asked, err, rep)
	}
}
