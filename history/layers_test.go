package history_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// scene writes surfaces with sizes in tokens and names nodes by letters.
type scene struct {
	*builder
	names map[outcrop.Seq]string
	turn  int
	step  int
	calls int
}

// draw makes a surface from words such as "prompt:a=300 step:b=500 ctx:c=50
// cp:d=400 say:e=10 pin:b". step is a call with its result. A prompt opens a
// turn; the last turn stays open.
func draw(t interface{ Fatal(...any) }, words string) *scene {
	s := &scene{builder: build(t, outcrop.Options{}), names: map[outcrop.Seq]string{}}
	for word := range strings.FieldsSeq(words) {
		s.add(word)
	}
	return s
}

func (s *scene) add(word string) {
	kind, rest, _ := strings.Cut(word, ":")
	name, number, _ := strings.Cut(rest, "=")
	size := 0
	fmt.Sscan(number, &size)
	text := func(overhead int) string { return name + strings.Repeat("x", max(4*(size-overhead)-len(name), 0)) }
	switch kind {
	case "prompt":
		s.end()
		s.turn++
		s.step = 0
		s.openTurn(s.turn)
		s.names[s.user(text(8))] = name
		if s.turn == 1 {
			s.log(outcrop.StepStart{Turn: 1, Step: 1})
			s.log(outcrop.RequestHeader{Reason: "initial", Header: llm.HeaderJSON(llm.Config{Provider: "p", Model: "m"}, "", nil)})
			s.closeStep(1, 1)
			s.step = 1
		}
	case "step":
		s.calls++
		s.step++
		s.openStep(s.turn, s.step)
		id := fmt.Sprintf("c%d", s.calls)
		s.names[s.assistant(s.turn, s.step, s.call(id))] = name
		s.names[s.result(s.turn, s.step, id, text(12+8))] = name + "'"
		s.closeStep(s.turn, s.step)
	case "err":
		s.calls++
		s.step++
		s.openStep(s.turn, s.step)
		id := fmt.Sprintf("c%d", s.calls)
		s.names[s.assistant(s.turn, s.step, s.call(id))] = name
		call := s.log(outcrop.ToolCall{Turn: s.turn, Step: s.step, CallID: id, Name: "read", Arguments: "{}"})
		s.names[s.must(s.s.AppendSurface(outcrop.NewToolResult(s.turn, s.step, id, true, message.Text(text(20))), outcrop.Tail, outcrop.SourcesOf(call)))] = name + "'"
		s.closeStep(s.turn, s.step)
	case "waits": // a call without a result in a step that stays open
		s.calls++
		s.step++
		s.openStep(s.turn, s.step)
		s.names[s.assistant(s.turn, s.step, s.call(fmt.Sprintf("c%d", s.calls)))] = name
	case "say":
		s.step++
		s.openStep(s.turn, s.step)
		s.names[s.assistant(s.turn, s.step, message.Text(text(8)))] = name
		s.closeStep(s.turn, s.step)
	case "ctx":
		ctxName, _, _ := strings.Cut(name, "-")
		s.names[s.must(s.s.AppendSurface(outcrop.ContextMessage{Message: message.Message{
			Content: []message.Block{message.Text(text(8))}, Source: message.Source{Kind: "outcrop", Form: ctxName}}}, outcrop.Tail, outcrop.NoSources))] = name
	case "cp1", "cp2", "cp3":
		level := int(kind[2] - '0')
		var node outcrop.Seq
		if s.turn > 0 {
			s.step++
			s.openStep(s.turn, s.step)
			node = s.assistant(s.turn, s.step, message.Text(strings.Repeat("y", 4*size+900)))
			s.closeStep(s.turn, s.step)
		} else {
			node = s.user(strings.Repeat("y", 4*size+900))
		}
		e, err := history.CommitCompaction(s.s, history.Compaction{Start: node, End: node, Level: level, Provider: "p", Model: "m",
			Summary: []message.Block{message.Text(name + strings.Repeat("z", max(4*(size-70)-len(name), 1)))}})
		if err != nil {
			s.t.Fatal(err)
		}
		s.names[e.Replacement] = name
	case "pin":
		for seq, n := range s.names {
			if n == name {
				s.log(outcrop.OutcropPin{Node: seq, Pinned: true})
			}
		}
	case "end":
		s.end()
	default:
		s.t.Fatal("no such word: " + word)
	}
}

func (s *scene) end() {
	if _, _, open := outcrop.OpenTurn(s.s.Log()); open {
		s.closeTurn(s.turn)
	}
}

func (s *scene) name(nodes []outcrop.Seq) string {
	var out []string
	for _, n := range nodes {
		name := s.names[n]
		if name == "" {
			name = "?"
		}
		if !strings.HasSuffix(name, "'") {
			out = append(out, name)
		}
	}
	return strings.Join(out, "")
}

// planned is what a compaction by hand would do: ranges, with the level of
// each checkpoint.
func planned(t *testing.T, s *scene, o history.Options) string {
	t.Helper()
	s.end()
	rep, err := manager(t, o).Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range rep.Planned {
		out = append(out, fmt.Sprintf("%s:%d", s.name(p.Nodes), p.Level))
	}
	return strings.Join(out, " ")
}

// The regions of the policy layers, on surfaces where the tail is the newest
// exchange alone.
func TestWhatLayersCondenses(t *testing.T) {
	for _, c := range []struct {
		name, surface, want string
	}{
		{"nothing on an empty surface", "", ""},
		{"nothing of one exchange", "prompt:a=100", ""},
		{"the newest prompt and the tail stay", "prompt:a=100 step:b=500 step:c=500 step:d=500", "bc:1"},
		{"an older prompt goes", "prompt:a=100 step:b=500 prompt:c=100 step:d=500 step:e=500 step:f=500", "ab:1 de:1"},
		{"one exchange alone stays raw", "prompt:a=100 step:b=500 step:c=500", ""},
		{"the newest copy of a context stays, the older goes", "prompt:a=100 ctx:r=50 step:b=500 step:c=500 ctx:r-2=50 step:d=500 step:e=500 step:f=500", "rbc:1 de:1"},
		{"copies of two contexts stay", "prompt:a=100 ctx:r=50 ctx:q=50 step:b=500 step:c=500 step:d=500", "bc:1"},
		{"a pinned result keeps its exchange and splits the run", "prompt:a=100 step:b=500 step:c=500 step:d=500 step:e=500 step:f=500 step:g=500 pin:d'", "bc:1 ef:1"},
		{"a run starts behind the newest checkpoint", "cp1:k=200 prompt:a=100 step:b=500 step:c=500 step:d=500", "bc:1"},
		{"a checkpoint is not condensed again", "prompt:a=100 cp1:k=200 step:c=500 step:d=500", ""},
		{"three runs at most, oldest first", "prompt:a=9 step:b=99 step:c=99 step:1=99 pin:1 step:d=99 step:e=99 step:2=99 pin:2 step:f=99 step:g=99 step:3=99 pin:3 step:h=99 step:i=99 step:j=99", "bc:1 de:1 fg:1"},
		{"four neighbours of a level are merged, before the run", "prompt:a=100 cp1:k=200 cp1:l=200 cp1:m=200 cp1:n=200 step:b=500 step:c=500 step:d=500", "klmn:2 bc:1"},
		{"three are not", "prompt:a=100 cp1:k=200 cp1:l=200 cp1:m=200 step:b=500 step:c=500 step:d=500", "bc:1"},
		{"the whole group is merged, so that levels never rise", "prompt:a=100 cp1:j=200 cp1:k=200 cp1:l=200 cp1:m=200 cp1:n=200 step:b=500", "jklmn:2"},
		{"the last of two groups", "prompt:a=100 cp2:f=200 cp2:g=200 cp2:h=200 cp2:i=200 cp1:k=200 cp1:l=200 cp1:m=200 cp1:n=200 step:b=500", "klmn:2"},
		{"a group of level two", "prompt:a=100 cp2:f=200 cp2:g=200 cp2:h=200 cp2:i=200 cp1:k=200 step:b=500", "fghi:3"},
		{"a pin between them parts a group", "prompt:a=100 cp1:k=200 cp1:l=200 step:p=100 pin:p cp1:m=200 cp1:n=200 step:b=500", ""},
		{"a pinned checkpoint is not merged", "prompt:a=100 cp1:k=200 cp1:l=200 cp1:m=200 cp1:n=200 pin:n step:b=500", ""},
		{"an old prompt between checkpoints goes with them", "prompt:a=9 cp1:k=200 cp1:l=200 prompt:b=100 cp1:m=200 cp1:n=200 prompt:c=100 step:d=500", "klbmn:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := planned(t, draw(t, c.surface), history.Options{}); got != c.want {
				t.Errorf("planned %q, want %q", got, c.want)
			}
		})
	}
}

// When the policy acts by itself: the window has 10,000 tokens, so it acts at
// 7,976, keeps 1,600 raw, and leaves runs under 398 alone.
func TestWhenLayersActs(t *testing.T) {
	fill := func(n int) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, " step:%c=1000", 'b'+i)
		}
		return s.String()
	}
	for _, c := range []struct {
		name    string
		surface string
		claimed string
		owed    string
		want    string // edits, as ranges
		notice  string
	}{
		{"room is left", "prompt:a=100" + fill(7), "", "", "", ""},
		{"the surface is too large", "prompt:a=100" + fill(8), "", "", "bcdefgh", ""},
		{"what was claimed counts", "prompt:a=100" + fill(7), strings.Repeat("x", 4000), "", "bcdefg", ""},
		{"what is owed counts", "prompt:a=100" + fill(7), "", strings.Repeat("x", 4000), "bcdefg", ""},
		{"a small run stays raw", "prompt:a=300 step:b=100 step:c=100 step:p=7000 pin:p step:d=900", "", "", "", "pinned 7,0"},
		{"the newest step fills the window", "prompt:a=100 step:b=9000", "", "", "", "newest step 9,0"},
		{"an error and a pin are not shortened", "prompt:a=100 err:b=8000 step:c=100", "", "", "", "cannot be reduced"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := draw(t, c.surface)
			o := history.Options{Window: 10_000, MaxOutput: 1000, Provider: provider(func(_ context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
				say(yield, message.Stop, nil, message.Text("short"))
			})}
			in := history.Input{}
			if c.claimed != "" {
				in.Claimed = []message.Message{{Role: message.User, Content: []message.Block{message.Text(c.claimed)}, Source: message.FromUser}}
			}
			if c.owed != "" {
				in.Owed = []message.Message{{Role: message.User, Content: []message.Block{message.Text(c.owed)}}}
			}
			rep, err := manager(t, o).PreStep(context.Background(), history.Direct(s.s), in)
			if err != nil || rep.Err != nil {
				t.Fatal(err, rep.Err)
			}
			got := ""
			for _, e := range rep.Edits {
				got += s.name(e.Shadowed)
			}
			if got != c.want {
				t.Errorf("condensed %q, want %q", got, c.want)
			}
			if !strings.Contains(rep.Notice, c.notice) || (rep.Notice == "") != (c.notice == "") {
				t.Errorf("notice %q, want %q in it", rep.Notice, c.notice)
			}
			s.end()
			check(t, s.s)
		})
	}
}

func TestCheckpointsStayUnderAQuarterOfTheLimit(t *testing.T) {
	// limit 7,976; a quarter is 1,994
	s := draw(t, "prompt:a=100 cp2:i=500 cp2:j=500 cp1:k=500 cp1:l=500 step:b=2500 step:c=2500 step:d=1500")
	rep, err := manager(t, history.Options{Window: 10_000, MaxOutput: 1000, Provider: provider(func(_ context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
		say(yield, message.Stop, nil, message.Text(strings.Repeat("s", 400)))
	})}).PreStep(context.Background(), history.Direct(s.s), history.Input{})
	if err != nil || rep.Err != nil {
		t.Fatal(err, rep.Err)
	}
	var got []string
	for _, e := range rep.Edits {
		got = append(got, fmt.Sprintf("%s:%d", s.name(e.Shadowed), e.Level))
	}
	if diff := cmp.Diff([]string{"bc:1", "ij:3"}, got); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
}

// Pruning acts before compaction when it gives enough room, from the newest
// result before the tail backwards.
func TestWhatLayersPrunes(t *testing.T) {
	for _, c := range []struct {
		name, surface, want string
	}{
		{"the newest that reaches the need", "prompt:a=100 step:b=5000 step:c=5000 step:d=9000 step:e=5000 step:f=1000 step:g=1000", "e'"},
		{"two when one is not enough", "prompt:a=100 step:b=5000 step:c=5000 step:d=5000 step:e=5000 step:f=3000 step:g=2600", "f' e'"},
		{"not what is pinned", "prompt:a=100 step:b=5000 step:c=9000 step:d=9000 pin:d step:f=1000 step:g=1500", "c'"},
		{"not what is under twice the kept size", "prompt:a=100 step:b=9000 step:c=9000 step:d=2400 step:e=2400 step:g=3000", "c'"},
		{"nothing when it does not reach the need", "prompt:a=100 step:b=2800 step:c=2500 step:d=2500 step:e=2500 step:f=2500 step:g=2500 step:h=2500 step:i=2500 step:j=2500 step:k=2500", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := draw(t, c.surface)
			// window 32,000: it acts at 25,600, keeps 3,200 raw
			rep, err := manager(t, history.Options{Window: 32_000, MaxOutput: 1000, Keep: 0.1}).PreStep(context.Background(), history.Direct(s.s), history.Input{})
			if err != nil || rep.Err != nil {
				t.Fatal(err, rep.Err)
			}
			var got []string
			for _, e := range rep.Edits {
				if e.ID == "" {
					got = append(got, s.names[e.Shadowed[0]])
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("pruned (-want +got): %s", diff)
			}
			s.end()
			check(t, s.s)
		})
	}
}

func TestThePrunedResultSaysWhereTheOriginalIs(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=9 step:c=9")
	id := "big"
	s.openStep(1, s.step+1)
	s.assistant(1, s.step+1, s.call(id))
	text := strings.Repeat("é", 20_480)
	node := s.result(1, s.step+1, id, text)
	s.closeStep(1, s.step+1)
	ed := history.Direct(s.s)
	m := manager(t, history.Options{})
	rep, err := m.Prune(context.Background(), ed, []outcrop.Seq{node}, false)
	if err != nil || len(rep.Edits) != 1 {
		t.Fatal(err, rep)
	}
	parsed, err := message.Parse(s.s.Messages()[s.s.Surface().Len()-1].Raw)
	if err != nil {
		t.Fatal(err)
	}
	want := text[:2*4096] + fmt.Sprintf("\n\n[... 15,360 of 20,480 characters cut; the original is event %d: history_read(%d, 4096, 19456) ...]\n\n", node, node) + text[:2*1024]
	if got := message.PlainText(parsed.Content); got != want {
		t.Errorf("got  %.60s ... %s", got, got[2*4096:len(got)-2*1024])
	}
	if history.Original(s.s.Log(), rep.Edits[0].Replacement) != node {
		t.Error("the original of the pruned result is another event")
	}
	if _, err := m.Prune(context.Background(), ed, []outcrop.Seq{rep.Edits[0].Replacement}, false); outcrop.CodeOf(err) != history.CodeNotSmaller {
		t.Errorf("pruned again: %v", err)
	}
	s.end()
	check(t, s.s)
}

// What the two policies do on the same surface, and why it differs.
func TestWhereLayersAndDSHDiffer(t *testing.T) {
	for _, c := range []struct {
		surface, layers, dsh, why string
	}{
		{"prompt:a=100 step:b=500 step:c=500 step:d=500", "bc:1", "abc:0",
			"dsh begins at the head, so the prompt of the turn is condensed too"},
		{"cp1:k=300 prompt:a=100 step:b=500 step:c=500 step:d=500", "bc:1", "kabc:0",
			"dsh condenses its last checkpoint again with each pass; layers freezes it, which keeps it in the cache"},
		{"prompt:a=100 step:b=500 step:c=500 step:p=500 pin:p step:d=500 step:e=500 step:f=500", "bc:1 de:1", "abc:0",
			"layers goes on behind a pin; a range of dsh begins at the head and ends before it"},
		{"prompt:a=100 ctx:r=50 step:b=500 step:c=500 step:d=500", "bc:1", "arbc:0",
			"dsh covers the newest copy of a context, which is then missing until it is sent again"},
		{"prompt:a=100 step:b=500", "", "a:0", "dsh takes a single node, layers nothing under two exchanges"},
		{"prompt:a=100 cp1:k=200 cp1:l=200 cp1:m=200 cp1:n=200 step:b=500", "klmn:2", "aklmn:0",
			"dsh has no levels"},
	} {
		s := draw(t, c.surface)
		if got := planned(t, s, history.Options{}); got != c.layers {
			t.Errorf("%s: layers %q, want %q (%s)", c.surface, got, c.layers, c.why)
		}
		if got := planned(t, s, history.Options{Policy: history.DSH}); got != c.dsh {
			t.Errorf("%s: dsh %q, want %q (%s)", c.surface, got, c.dsh, c.why)
		}
	}
}
