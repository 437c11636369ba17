package agent

import (
	"errors"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/workspace"
)

// begin begins the next step: it takes what is pending for it, asks the hooks
// what enters, and commits all of it in one group, with the turn itself when it
// is not open yet. before is what the step before came to, turnMayEnd for the
// first one. When begun is false the turn ends, with the verdict.
func (t *turn) begin(before verdictKind) (v verdict, begun bool) {
	a, first := t.a, t.step == 0
	taken := a.inbox.reserve(first)
	defer a.inbox.release()
	enter := taken
	t.want = t.sampled
	if hooks := &a.o.Hooks; len(hooks.Contributors)+len(hooks.PreStep) > 0 {
		if !t.opened {
			if err := t.open(); err != nil {
				return verdict{kind: turnEnds, void: true, err: err}, false
			}
		}
		var reject bool
		var err error
		enter, reject, err = t.askPreStep(taken)
		switch {
		case err != nil:
			return t.failed(err), false
		case t.canceled():
			return t.aborted(), false
		case reject:
			return t.blocked(nil), false
		case len(enter) == 0 && (first || before == turnMayEnd):
			return t.nothingEnters(), false
		}
	}
	head := t.head()
	group := append(head, a.inbox.claims(t.entersAll(taken, enter))...)
	group = append(group, outcrop.LogCandidate(outcrop.StepStart{Turn: t.n, Step: t.step + 1}))
	input := len(group)
	for _, m := range enter {
		group = append(group, outcrop.SurfaceCandidate(outcrop.UserMessage{Message: m}, outcrop.Tail, outcrop.NoSources))
	}
	contexts := len(group)
	if first && a.cutText != "" {
		group = append(group, a.context(len(group), workspace.Context{Name: "interrupted", Text: cutNotice + a.cutText}))
	}
	for _, c := range a.told.due(a.s, t.want) {
		group = append(group, a.context(len(group), c))
	}
	base := a.s.Len()
	_, err := a.s.AppendAll(group...)
	if err == nil {
		t.began()
		return verdict{}, true
	}
	a.told.forget()
	refused := refusedAt(err, base)
	switch {
	case a.s.Err() != nil:
		return t.failed(err), false
	case refused >= 0 && refused < len(head):
		// Not even the turn: what is pending stays so.
		return verdict{kind: turnEnds, void: true, err: err}, false
	case refused >= input && refused < contexts && (errors.Is(err, outcrop.ErrVetoed) || sameMessages(taken, enter)):
		a.log.Warn("the input was refused", "turn", t.n, "err", err)
		return t.blocked(err), false
	}
	// It is not the input's fault, so it is not lost.
	return t.failed(err), false
}

// head is what opens the turn, nothing when it is open.
func (t *turn) head() (head []outcrop.Candidate) {
	if t.opened {
		return nil
	}
	if p := t.a.o.Policy.logged(); p != t.a.policy {
		head = append(head, outcrop.LogCandidate(outcrop.ApprovalPolicy{Policy: p}))
	}
	return append(head, outcrop.LogCandidate(outcrop.TurnStart{Turn: t.n}))
}

// open opens the turn by itself.
func (t *turn) open() error {
	_, err := t.a.s.AppendAll(t.head()...)
	if err == nil {
		t.isOpen()
	}
	return err
}

func (t *turn) isOpen() {
	t.a.policy = t.a.o.Policy.logged()
	t.a.lastTurn, t.opened = t.n, true
}

// began takes in that a step was committed.
func (t *turn) began() {
	t.isOpen()
	t.step++
	t.a.cutText = ""
	t.a.inbox.take()
	t.a.showInbox()
}

// askPreStep asks contributors and deciders.
func (t *turn) askPreStep(taken []message.Message) (enter []message.Message, reject bool, err error) {
	hooks, step := &t.a.o.Hooks, t.step+1
	want := slices.Clone(t.sampled)
	for _, h := range hooks.Contributors {
		st := t.stage(step, 0)
		cs, err := hooked(t, "contribute", func() ([]workspace.Context, error) { return h.Contribute(t.ctx, st) })
		if err != nil {
			return nil, false, err
		}
		want = append(want, cs...)
	}
	t.want = lastOfEach(want)
	enter = taken
	for _, h := range hooks.PreStep {
		st, done := t.editing(step, 0)
		given := copies(enter)
		got, err := hooked(t, "pre-step", func() (d decision, err error) {
			d.enter, d.reject, err = h.PreStep(t.ctx, st, given)
			return d, err
		})
		done()
		if err != nil || t.canceled() || got.reject {
			return nil, got.reject, err
		}
		enter = got.enter
	}
	if len(hooks.PreStep) > 0 {
		enter = slices.Clone(enter)
	}
	for i := range enter {
		if enter[i], err = fitting(enter[i], injected); err != nil {
			return nil, false, hookFailed(err)
		}
	}
	return enter, false, nil
}

// decision is what a PreStepDecider says.
type decision struct {
	enter  []message.Message
	reject bool
}

// lastOfEach keeps of contexts with one name the last one.
func lastOfEach(cs []workspace.Context) (out []workspace.Context) {
	for i, c := range cs {
		if !slices.ContainsFunc(cs[i+1:], func(later workspace.Context) bool { return later.Name == c.Name }) {
			out = append(out, c)
		}
	}
	return out
}

// entersAll tells which of the taken messages enter.
func (t *turn) entersAll(taken, enter []message.Message) func(message.Message) bool {
	if sameMessages(taken, enter) {
		return func(message.Message) bool { return true }
	}
	ids := map[string]bool{}
	for _, m := range enter {
		ids[m.ID] = true
	}
	return func(m message.Message) bool { return ids[m.ID] }
}

// sameMessages reports whether the hooks left the input as it was.
func sameMessages(taken, enter []message.Message) bool {
	return len(taken) == len(enter) && (len(taken) == 0 || &taken[0] == &enter[0])
}

// blocked claims input that was refused, so that it does not come again.
func (t *turn) blocked(err error) verdict {
	return t.without(outcrop.Blocked, func(message.Message) bool { return true }, err)
}

// nothingEnters removes input that the hooks left out, all of it.
func (t *turn) nothingEnters() verdict {
	return t.without(t.result, func(message.Message) bool { return false }, nil)
}

// without takes the input of a step that does not begin.
func (t *turn) without(kind outcrop.ReasonKind, enters func(message.Message) bool, err error) verdict {
	if !t.opened {
		if err2 := t.open(); err2 != nil {
			return verdict{kind: turnEnds, void: true, err: errors.Join(err, err2)}
		}
	}
	if _, err2 := t.a.s.AppendAll(t.a.inbox.claims(enters)...); err2 != nil {
		return t.failed(errors.Join(err, err2))
	}
	t.a.inbox.take()
	t.a.showInbox()
	return verdict{kind: turnEnds, reason: outcrop.TurnReason{Kind: kind}, err: err}
}

// refusedAt is which candidate of a group an append error is about, -1 when it
// does not say. base is the length of the log before the group.
func refusedAt(err error, base int) int {
	var e *outcrop.Error
	if errors.As(err, &e) && e.Seq >= outcrop.Seq(base) {
		return int(e.Seq) - base
	}
	return -1
}

// cutNotice stands before the text of a reply that a crash cut.
const cutNotice = "The program ended while the last reply was being written. This much of it was visible; it is not complete, " +
	"and tool calls in it were not run:\n\n"

// context makes the event of a context that will stand after seqs events of
// the log.
func (a *Agent) context(after int, c workspace.Context) outcrop.Candidate {
	return workspace.Candidate(a.s.Header(), a.id("m", a.s.Len()+after), c)
}

// toldContexts remembers what the surface tells of each context, so that a
// step looks only at messages that are new to it.
type toldContexts struct {
	generation int
	of         map[string]toldContext
}

type toldContext struct {
	text string // of the newest copy, as it was wanted
	upTo int    // messages that were looked at
}

// current reports that nothing was taken off the surface since due was asked.
func (k *toldContexts) current(s *outcrop.Session) bool {
	return k.of != nil && k.generation == s.Surface().Generation()
}

// forget is called when what was due did not get onto the surface.
func (k *toldContexts) forget() { k.of = nil }

// due returns what is to be appended of the wanted contexts, and counts it as
// appended.
func (k *toldContexts) due(s *outcrop.Session, want []workspace.Context) (due []workspace.Context) {
	if len(want) == 0 {
		return nil
	}
	messages := s.Messages()
	if g := s.Surface().Generation(); g != k.generation || k.of == nil {
		*k = toldContexts{generation: g, of: map[string]toldContext{}}
	}
	for i, c := range want {
		one := want[i : i+1]
		told, known := k.of[c.Name]
		k.of[c.Name] = toldContext{c.Text, len(messages)}
		if known && told.text == c.Text {
			// In force, unless a newer copy says something else.
			if d := workspace.Due(messages[told.upTo:], one); len(d) == 0 || d[0].Text == c.Text {
				continue
			}
		}
		due = append(due, workspace.Due(messages, one)...)
	}
	return due
}
