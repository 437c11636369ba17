package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/message"
)

// What the deed refuses, the dry run refuses in the same words.
func TestADryRunRefusesWhatTheDeedRefuses(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=5000 step:c=5000 say:d=40 say:e=40 end")
	n := s.s.Surface().Nodes()
	ed := history.Direct(s.s)
	covered := n[1]
	if _, err := history.CommitCompaction(s.s, history.Compaction{Start: n[1], End: n[2], Summary: summary("s"), Provider: "p", Model: "m"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		start, end outcrop.Seq
		code       outcrop.Code
	}{
		{"an end that is no node", n[0], 9999, history.CodeNotOnSurface},
		{"a start that is no node", 0, n[4], history.CodeNotOnSurface},
		{"a start alone", n[0], -1, history.CodeNotOnSurface},
		{"a node that is covered", covered, n[4], history.CodeNotOnSurface},
		{"a range the wrong way round", n[6], n[0], history.CodeReversed},
		{"a call without its result", n[0], n[3], history.CodeSplitsPair},
		{"a range that no checkpoint is smaller than", n[5], n[5], history.CodeNotSmaller},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			m := manager(t, history.Options{Window: 40_000, Provider: summariser(func() { asked++ })})
			before := s.s.Len()
			_, dry := m.Compact(background, ed, history.Request{Start: c.start, End: c.end, DryRun: true})
			_, real := m.Compact(background, ed, history.Request{Start: c.start, End: c.end})
			if outcrop.CodeOf(dry) != c.code || real == nil || dry.Error() != real.Error() {
				t.Errorf("the dry run: %v\nthe deed: %v\nwant %s", dry, real, c.code)
			}
			if asked != 0 || s.s.Len() != before {
				t.Errorf("a model was asked %d times, %d events were added", asked, s.s.Len()-before)
			}
		})
	}
}

func TestACoveredNodeIsRefusedByTheNameOfItsCover(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=5000 step:c=5000 say:d=100 end")
	n := s.s.Surface().Nodes()
	e, err := history.CommitCompaction(s.s, history.Compaction{Start: n[1], End: n[2], Summary: summary("s"), Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = manager(t, history.Options{}).Prune(background, history.Direct(s.s), []outcrop.Seq{n[2]}, false)
	if want := fmt.Sprintf("it is covered by %d", e.Replacement); outcrop.CodeOf(err) != history.CodeNotOnSurface || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A dry run says no less than the deed leaves, and of results the very figures.
func TestADryRunSaysWhatIsLeft(t *testing.T) {
	answer := &message.Usage{InputTokens: 12_000, OutputTokens: 5}
	for _, c := range []struct {
		name    string
		surface string
		run     func(m *history.Manager, ed history.Editor, dry bool) (history.Report, error)
		exact   bool
	}{
		{"results", "prompt:a=100 step:b=5000 step:c=5000 step:d=100 end", func(m *history.Manager, ed history.Editor, dry bool) (history.Report, error) {
			return m.Prune(background, ed, nil, dry)
		}, true},
		{"a head", "prompt:a=100 step:b=5000 step:c=5000 step:d=100 end", func(m *history.Manager, ed history.Editor, dry bool) (history.Report, error) {
			return m.Compact(background, ed, history.Request{Start: -1, End: -1, DryRun: dry})
		}, false},
		{"without a model", "prompt:a=100 step:b=5000 step:c=5000 step:d=100 end", func(m *history.Manager, ed history.Editor, dry bool) (history.Report, error) {
			return m.Compact(background, ed, history.Request{Start: -1, End: -1, DryRun: dry, ModelFree: true})
		}, false},
	} {
		for _, measured := range []bool{false, true} {
			s := draw(t, c.surface)
			if measured {
				b := s.builder
				b.openTurn(9)
				b.openStep(9, 1)
				b.user("more")
				b.request(9, 1)
				b.must(b.s.AppendSurface(outcrop.AssistantMessage{Turn: 9, Step: 1, Usage: answer, Message: message.Message{
					Content: []message.Block{message.Text("ok")}, Source: message.FromModel("p", "m")}}, outcrop.Tail, outcrop.EmptySources))
				b.closeStep(9, 1)
				b.closeTurn(9)
			}
			ed := history.Direct(s.s)
			m := manager(t, history.Options{Window: 20_000, Provider: summariser(nil)})
			dry, err := c.run(m, ed, true)
			if err != nil || len(dry.Planned) == 0 {
				t.Fatalf("%s: %v, %+v", c.name, err, dry)
			}
			did, err := c.run(m, ed, false)
			if err != nil || len(did.Edits) != len(dry.Planned) {
				t.Fatalf("%s: %v, %+v", c.name, err, did)
			}
			if did.After > dry.After || dry.After >= dry.Before || c.exact && did.After != dry.After {
				t.Errorf("%s: from %d to %d was said, to %d it went", c.name, dry.Before, dry.After, did.After)
			}
			for i, p := range dry.Planned {
				e := did.Edits[i]
				if p.Tokens != e.TokensBefore || e.TokensAfter > p.AtMost || p.AtMost >= p.Tokens || c.exact && e.TokensAfter != p.AtMost {
					t.Errorf("%s: %+v was said, %+v was done", c.name, p, e)
				}
			}
		}
	}
}

// What a crash left open is closed for a dry run, as opening closes it.
func TestADryRunOnAnInterruptedTurn(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=5000 step:c=5000 prompt:f=100 waits:d")
	back, err := outcrop.Inspect(s.s.Header(), func(yield func(outcrop.Record, error) bool) {
		for r := range s.s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := manager(t, history.Options{Window: 20_000})
	r := history.Request{Start: -1, End: -1, DryRun: true}
	if _, err := m.Compact(background, history.Direct(back), r); outcrop.CodeOf(err) != history.CodeBusy {
		t.Fatalf("as it is stored: %v", err)
	}
	n := back.Len()
	opened, err := history.AsOpened(back)
	if err != nil {
		t.Fatal(err)
	}
	m = manager(t, history.Options{Window: 20_000})
	if rep, err := m.Compact(background, history.Direct(opened), r); err != nil || len(rep.Planned) != 1 {
		t.Errorf("as it is opened: %v, %+v", err, rep)
	}
	if back.Len() != n {
		t.Error("what was read changed")
	}
}

// The dry run of a session for dsh says too that the results wait for a turn.
func TestADryRunSaysThatResultsWaitForATurn(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=9000 step:c=500 end")
	theirs := outcrop.NewHeader("s1", 1000, "/srv/demo")
	theirs.Outcrop = 0
	back, err := outcrop.Seed(theirs, s.s.Log(), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []history.Policy{history.Layers, history.DSH} {
		m := manager(t, history.Options{Policy: policy})
		rep, err := m.Prune(background, history.Direct(back), nil, true)
		if err != nil || len(rep.Queued) != 1 || len(rep.Planned) != 1 {
			t.Errorf("%s: %v, %+v", policy, err, rep)
		}
		b := &builder{back, t}
		b.openTurn(2)
		if rep, err := m.PreStep(background, history.Direct(back), history.Input{}); err != nil || len(rep.Edits) != 0 {
			t.Errorf("%s: the dry run left something to do: %v, %+v", policy, err, rep)
		}
		b.closeTurn(2)
	}
}

// A run that no checkpoint can be smaller than stays raw, and is no failure.
func TestATinyConversationIsLeftAlone(t *testing.T) {
	s := draw(t, "prompt:a=10 say:b=10 say:c=10 say:d=10 end")
	m := manager(t, history.Options{Window: 20_000, Provider: summariser(func() { t.Error("a model was asked") })})
	n := s.s.Len()
	if rep, err := m.Compact(background, history.Direct(s.s), history.Request{Start: -1, End: -1}); err != nil || len(rep.Edits) != 0 || s.s.Len() != n {
		t.Errorf("%v, %+v", err, rep)
	}
}

func TestAnOverflowIsTold(t *testing.T) {
	for _, c := range []struct {
		window int64
		want   string
	}{
		{0, "p: context too long: compacting once, then trying again"},
		{90_000, "p: context too long: compacting once, then trying again"},
		{5_000, "p: context too long (6,106 of 5,000): compacting once, then trying again"},
	} {
		s := draw(t, "prompt:a=100 step:b=2000 step:c=2000 step:d=2000")
		s.openStep(1, s.step+1)
		var told []history.Notice
		m := manager(t, history.Options{Window: c.window, Provider: summariser(nil), Notify: func(n history.Notice) { told = append(told, n) }})
		for range 2 { // the second one is not answered, and not told
			if _, _, err := m.Overflow(background, history.Direct(s.s)); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for i, n := range told {
			if n.Kind == history.Overflowed {
				got = append(got, n.Text)
				if i > 0 {
					t.Error("something was told before it")
				}
			}
		}
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("told %q, want %q", got, c.want)
		}
	}
}
