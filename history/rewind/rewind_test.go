package rewind_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/message"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// talk is a session that a test speaks for.
type talk struct {
	t fataler
	*outcrop.Session
	turn int
}

func newTalk(t fataler, compatible bool) *talk {
	h := outcrop.NewHeader("s", 1, "/")
	if compatible {
		h.Outcrop = 0
	}
	n := 0
	s, err := outcrop.New(h, outcrop.Options{Now: func() int64 { return 1 }, NewID: func() string { n++; return fmt.Sprint("id", n) }})
	if err != nil {
		t.Fatal(err)
	}
	return &talk{t: t, Session: s}
}

func (k *talk) log(p outcrop.LogPayload) outcrop.Seq {
	k.t.Helper()
	ev, err := k.Append(p)
	if err != nil {
		k.t.Fatal(err)
	}
	return ev.Seq
}

func (k *talk) put(p outcrop.SurfacePayload, op outcrop.SurfaceOp, src outcrop.Sources) outcrop.Seq {
	k.t.Helper()
	ev, err := k.AppendSurface(p, op, src)
	if err != nil {
		k.t.Fatal(err)
	}
	return ev.Seq
}

// say plays a turn: a prompt, a call of each tool, an answer. It returns the
// seqs of the prompt and of the turn's end.
func (k *talk) say(text string, tools ...string) (prompt, end outcrop.Seq) {
	k.t.Helper()
	k.turn++
	k.log(outcrop.TurnStart{Turn: k.turn})
	k.log(outcrop.StepStart{Turn: k.turn, Step: 1})
	prompt = k.put(outcrop.UserMessage{Message: message.Message{Role: message.User, Source: message.FromUser,
		Content: []message.Block{message.Text(text)}}}, outcrop.Tail, outcrop.NoSources)
	for i, name := range tools {
		id := fmt.Sprintf("c%d_%d", k.turn, i)
		args := fmt.Sprintf(`{"path":"%s.txt"}`, id)
		k.answer(message.ToolCall(id, name, args))
		call := k.log(outcrop.ToolCall{Turn: k.turn, Step: 1, CallID: id, Name: name, Arguments: args})
		r := outcrop.NewToolResult(k.turn, 1, id, false, message.Text("done"))
		if name == "refused" {
			r = outcrop.NewToolResult(k.turn, 1, id, true, message.Text("Error: not approved by the user"))
			r.Error = &outcrop.ToolError{Name: "ApprovalError", Code: "NOT_APPROVED"}
		}
		k.put(r, outcrop.Tail, outcrop.SourcesOf(call))
	}
	k.answer(message.Text("answer to " + text))
	k.log(outcrop.StepEnd{Turn: k.turn, Step: 1})
	end = k.log(outcrop.TurnEnd{Turn: k.turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
	return prompt, end
}

func (k *talk) answer(b message.Block) {
	k.t.Helper()
	k.put(outcrop.AssistantMessage{Turn: k.turn, Step: 1, Message: message.Message{Role: message.Assistant,
		Source: message.FromModel("p", "m"), Content: []message.Block{b}}}, outcrop.Tail, outcrop.EmptySources)
}

// cover puts a checkpoint in the place of a range.
func (k *talk) cover(start, end outcrop.Seq) outcrop.Seq {
	k.t.Helper()
	nodes := k.Surface().Nodes()
	i, j := slices.Index(nodes, start), slices.Index(nodes, end)
	return k.put(outcrop.UserMessage{Message: message.Message{Role: message.User, Content: []message.Block{message.Text("summary")},
		Source: message.Source{Kind: "plugin", Plugin: "compact", CompactionID: "c"}}},
		outcrop.Replace(start, end), outcrop.SourcesOf(nodes[i:j+1]...))
}

// texts is the conversation as the model sees it.
func (k *talk) texts() []string {
	var out []string
	for _, m := range k.Messages() {
		p, err := message.Parse(m.Raw)
		if err != nil {
			k.t.Fatal(err)
		}
		if t := message.PlainText(p.Content); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// agrees compares the live surface with the detached fold.
func (k *talk) agrees() {
	k.t.Helper()
	fold, err := outcrop.FoldSurface(k.Log().Records(0))
	if err != nil {
		k.t.Fatal(err)
	}
	if !slices.Equal(fold.Nodes, k.Surface().Nodes()) {
		k.t.Fatalf("the fold has the nodes %v, the session %v", fold.Nodes, k.Surface().Nodes())
	}
}

func (k *talk) back(target outcrop.Seq) outcrop.Seq {
	k.t.Helper()
	p, err := rewind.Find(k.Session, target)
	if err != nil {
		k.t.Fatal(err)
	}
	at, err := rewind.Commit(k.Session, p, "")
	if err != nil {
		k.t.Fatal(err)
	}
	k.agrees()
	return at
}

// A prompt under a checkpoint is still the last one: no older prompt is sent in
// its place.
func TestTheLastPromptIsThatOfTheLog(t *testing.T) {
	k := newTalk(t, false)
	first, _ := k.say("one")
	second, end := k.say("two")
	third, last := k.say("three")
	again := func() (rewind.Plan, error) {
		p, _, err := rewind.Again(k.Session, -1, "")
		return p, err
	}
	if p, err := again(); err != nil || p.Prompt != third || p.To != end {
		t.Fatalf("plain: %+v, %v", p, err)
	}
	nodes := k.Surface().Nodes()
	cp := k.cover(second, nodes[len(nodes)-1])
	_, err := again()
	for _, part := range []string{fmt.Sprintf("event %d", third), fmt.Sprintf("covered by checkpoint %d", cp), fmt.Sprintf("use outcrop fork s --at %d", end)} {
		if outcrop.CodeOf(err) != rewind.CodeStraddles || !strings.Contains(err.Error(), part) {
			t.Errorf("covered with what came before it: %v, want %s", err, part)
		}
	}
	// To before all that the checkpoint stands for, it goes.
	if p, _, err := rewind.Again(k.Session, second, ""); err != nil || len(p.Removed) != 1 || p.Removed[0] != cp {
		t.Errorf("the first prompt under it: %+v, %v", p, err)
	}
	// What a rewind took away is no last prompt.
	k.back(last)
	k.back(second)
	if p, err := again(); err != nil || p.Prompt != first || p.To != 0 {
		t.Errorf("after a rewind: %+v, %v", p, err)
	}
	k.back(0)
	if _, err := again(); outcrop.CodeOf(err) != rewind.CodeNoPrompt {
		t.Errorf("with nothing left: %v", err)
	}
}

func TestTheConversationGoesBack(t *testing.T) {
	for _, compatible := range []bool{false, true} {
		notice := []string{}
		if compatible {
			notice = append(notice, "The conversation was taken back to this point. Later messages were removed; files were not changed.")
		}
		for _, c := range []struct {
			name   string
			target func(prompts, ends []outcrop.Seq) outcrop.Seq
			want   []string
		}{
			{"to the end of a turn", func(_, e []outcrop.Seq) outcrop.Seq { return e[0] }, append([]string{"one", "answer to one"}, notice...)},
			{"to before a prompt", func(p, _ []outcrop.Seq) outcrop.Seq { return p[1] }, append([]string{"one", "answer to one"}, notice...)},
			{"to before everything", func(_, _ []outcrop.Seq) outcrop.Seq { return 0 }, notice},
			{"to before the first prompt", func(p, _ []outcrop.Seq) outcrop.Seq { return p[0] }, notice},
			{"to where it is", func(_, e []outcrop.Seq) outcrop.Seq { return e[2] },
				[]string{"one", "answer to one", "two", "answer to two", "three", "answer to three"}},
		} {
			t.Run(fmt.Sprint(c.name, " dsh ", compatible), func(t *testing.T) {
				k := newTalk(t, compatible)
				var prompts, ends []outcrop.Seq
				for _, text := range []string{"one", "two", "three"} {
					p, e := k.say(text)
					prompts, ends = append(prompts, p), append(ends, e)
				}
				k.back(c.target(prompts, ends))
				if diff := cmp.Diff(c.want, k.texts(), cmp.Transformer("empty", func(s []string) string { return strings.Join(s, "|") })); diff != "" {
					t.Error(diff)
				}
				k.say("four")
				k.agrees()
			})
		}
	}
}

func TestNothingIsDoneWhereThereIsNothingToDo(t *testing.T) {
	k := newTalk(t, false)
	_, end := k.say("one")
	n := k.Len()
	if at := k.back(end); at != -1 || k.Len() != n {
		t.Errorf("event %d, %d events more", at, k.Len()-n)
	}
}

func TestACheckpointCountsByItsOriginals(t *testing.T) {
	k := newTalk(t, false)
	first, end1 := k.say("one")
	_, end2 := k.say("two")
	k.say("three")
	last := k.Surface().Nodes()[3]
	at := k.cover(first, last) // turns one and two
	k.say("four")

	_, err := rewind.Find(k.Session, end1)
	if outcrop.CodeOf(err) != rewind.CodeStraddles || !strings.Contains(err.Error(), fmt.Sprintf("event %d: it lies inside checkpoint %d", end1, at)) {
		t.Errorf("inside the checkpoint: %v", err)
	}
	k.back(end2)
	if diff := cmp.Diff([]string{"summary"}, k.texts()); diff != "" {
		t.Error(diff)
	}
	// A rewind of a rewind finds the place that the first one left.
	if _, err := rewind.Find(k.Session, end1); outcrop.CodeOf(err) != rewind.CodeStraddles {
		t.Errorf("after the rewind: %v", err)
	}
	k.back(0)
	if len(k.texts()) != 0 {
		t.Errorf("left: %v", k.texts())
	}
}

func TestWhatCannotBeGoneBackToIsNamed(t *testing.T) {
	k := newTalk(t, false)
	_, end := k.say("one")
	for target, want := range map[outcrop.Seq]string{
		1:  "event 1: it is of type step/start",
		3:  "event 3: it is of type assistant/message",
		99: "there is no event 99",
		-4: "there is no event -4",
	} {
		if _, err := rewind.Find(k.Session, target); outcrop.CodeOf(err) != rewind.CodeNoPoint || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", target, err)
		}
	}
	k.log(outcrop.TurnStart{Turn: 2})
	if _, err := rewind.Find(k.Session, end); outcrop.CodeOf(err) != rewind.CodeBusy {
		t.Errorf("in an open turn: %v", err)
	}
}

func TestAPlanOfAnotherTimeIsRefused(t *testing.T) {
	k := newTalk(t, false)
	_, end := k.say("one")
	k.say("two")
	p, err := rewind.Find(k.Session, end)
	if err != nil {
		t.Fatal(err)
	}
	k.say("three")
	n := k.Len()
	if _, err := rewind.Commit(k.Session, p, ""); outcrop.CodeOf(err) != rewind.CodeBusy || k.Len() != n {
		t.Errorf("%v, %d events more", err, k.Len()-n)
	}
}

func TestARewindEndsThePinsOfWhatItTakesAway(t *testing.T) {
	k := newTalk(t, false)
	one, end := k.say("one")
	two, _ := k.say("two")
	for _, n := range []outcrop.Seq{one, two} {
		if changed, err := pin.Set(k.Session, n); err != nil || !changed {
			t.Fatal(changed, err)
		}
	}
	p, err := rewind.Find(k.Session, end)
	if err != nil || !slices.Equal(p.Pins, []outcrop.Seq{two}) {
		t.Fatalf("pins %v, %v", p.Pins, err)
	}
	k.back(end)
	if diff := cmp.Diff(pin.State{Held: []outcrop.Seq{one}}, pin.Of(k.Log(), k.Surface().Nodes())); diff != "" {
		t.Error(diff)
	}
}

func TestTheModelIsToldWhatIsNotUndone(t *testing.T) {
	k := newTalk(t, false)
	_, end := k.say("one", "write")
	k.say("two", "read", "write", "refused", "shell")
	if _, ok := rewind.Notice(k.Log()); ok {
		t.Error("a notice without a rewind")
	}
	k.back(end)
	c, ok := rewind.Notice(k.Log())
	want := "The conversation was taken back to an earlier point. These calls of the removed part were made and are not undone:\n- write c2_1.txt\n- shell c2_3.txt"
	if !ok || c.Text != want {
		t.Errorf("%v %q", ok, c.Text)
	}
	k.say("three")
	if _, ok := rewind.Notice(k.Log()); ok {
		t.Error("a notice after the next turn")
	}
}

func TestAPromptIsSentAgain(t *testing.T) {
	k := newTalk(t, false)
	one, _ := k.say("one")
	two, _ := k.say("two")
	p, m, err := rewind.Again(k.Session, -1, "")
	if err != nil || p.Prompt != two || message.PlainText(m.Content) != "two" || m.ID != "" {
		t.Fatalf("%+v %+v %v", p, m, err)
	}
	if _, err := rewind.Commit(k.Session, p, ""); err != nil {
		t.Fatal(err)
	}
	again, _ := k.say("two")
	p, m, err = rewind.Again(k.Session, again, "zwei")
	if err != nil || message.PlainText(m.Content) != "zwei" {
		t.Fatal(m, err)
	}
	if _, err := rewind.Commit(k.Session, p, ""); err != nil {
		t.Fatal(err)
	}
	edited, _ := k.say("zwei")
	if diff := cmp.Diff([][]outcrop.Seq{{two, again, edited}}, rewind.Versions(k.Log())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"one", "answer to one", "zwei", "answer to zwei"}, k.texts()); diff != "" {
		t.Error(diff)
	}
	if _, _, err := rewind.Again(k.Session, one+1, ""); outcrop.CodeOf(err) != rewind.CodeNoPrompt {
		t.Errorf("an answer sent again: %v", err)
	}
}

// What a rewind leaves is the beginning of what was there, whatever was edited
// before; and the log that it leaves can be loaded.
func TestRewindLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newTalk(t, rapid.Bool().Draw(t, "dsh"))
		targets := []outcrop.Seq{0}
		for range rapid.IntRange(1, 12).Draw(t, "moves") {
			switch nodes := k.Surface().Nodes(); rapid.IntRange(0, 3).Draw(t, "move") {
			case 0:
				if len(nodes) > 2 {
					i := rapid.IntRange(0, len(nodes)-2).Draw(t, "from")
					k.cover(nodes[i], nodes[rapid.IntRange(i, len(nodes)-2).Draw(t, "to")])
				}
			case 1:
				target := rapid.SampledFrom(targets).Draw(t, "target")
				before := slices.Clone(nodes)
				p, err := rewind.Find(k.Session, target)
				if err != nil {
					if outcrop.CodeOf(err) != rewind.CodeStraddles {
						t.Fatal(err)
					}
					continue
				}
				at, err := rewind.Commit(k.Session, p, "")
				if err != nil {
					t.Fatal(err)
				}
				want := before[:len(before)-len(p.Removed)]
				if at >= 0 {
					want = append(want, at)
				}
				if !slices.Equal(want, k.Surface().Nodes()) {
					t.Fatalf("the surface is %v, it should be %v", k.Surface().Nodes(), want)
				}
			default:
				prompt, end := k.say("x", "write")
				targets = append(targets, prompt, end)
			}
			k.agrees()
		}
		if _, err := outcrop.Seed(k.Header(), k.Log(), outcrop.Options{Now: func() int64 { return 1 }}); err != nil {
			t.Fatal(err)
		}
	})
}
