package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/workspace"
)

// turn is the turn that runs. It lives on the owner.
type turn struct {
	a      *Agent
	n      int
	step   int // open or last step, 0 before the first
	opened bool
	done   bool // turn/end is written
	ctx    context.Context
	stop   context.CancelCauseFunc

	refused int // calls in a row that were not approved
}

// verdict is what a step comes to.
type verdict struct {
	kind   verdictKind
	reason outcrop.TurnReason // for turnEnds
	err    error              // for turnEnds: what Outcome.Err is
}

type verdictKind int

const (
	turnGoesOn verdictKind = iota // tools ran: the model must see what they gave
	turnMayEnd                    // the model has nothing more to ask; reason says how it finished
	turnEnds                      // at once
)

func (t *turn) cancel(cause Cause) { t.stop(cause) }

func (t *turn) canceled() bool { return t.ctx.Err() != nil }

// over reports that input cannot enter this turn any more.
func (t *turn) over() bool { return t.done || t.canceled() }

// cause is why the turn was cancelled.
func (t *turn) cause() Cause {
	var c Cause
	if errors.As(context.Cause(t.ctx), &c) {
		return c
	}
	return Cause{Kind: Disposed}
}

func (t *turn) aborted() verdict {
	c := t.cause()
	return verdict{kind: turnEnds, reason: outcrop.TurnReason{
		Kind: outcrop.TurnAborted, Abort: outcrop.AbortReason{Kind: string(c.Kind), Reason: c.Reason}}}
}

func hookStop(why string) verdict {
	return verdict{kind: turnEnds, reason: outcrop.TurnReason{
		Kind: outcrop.TurnAborted, Abort: outcrop.AbortReason{Kind: string(ByHook), Reason: why}}}
}

// failed ends the turn with an error. A turn that was cancelled is aborted
// whatever came of it; then the error is only logged.
func (t *turn) failed(err error) verdict {
	if t.canceled() {
		if !errors.Is(err, context.Canceled) && !isAborted(err) {
			t.a.log.Warn("an error came while the turn was cancelled", "turn", t.n, "err", err)
		}
		return t.aborted()
	}
	v := verdict{kind: turnEnds, reason: outcrop.TurnReason{Kind: outcrop.TurnError, Error: failureOf(err)}}
	var f *message.Failure
	if !errors.As(err, &f) {
		v.err = err
	}
	return v
}

func isAborted(err error) bool {
	var f *message.Failure
	return errors.As(err, &f) && f.Code == message.CodeAborted
}

// runTurn runs one turn and reports whether the next one may follow by itself.
func (a *Agent) runTurn() (again bool) {
	if a.inbox.len() == 0 {
		return false
	}
	t := &turn{a: a, n: a.lastTurn + 1}
	t.ctx, t.stop = context.WithCancelCause(a.life)
	defer t.stop(nil)
	a.turn = t
	defer func() { a.turn = nil }()
	a.setStatus(Status{Phase: Preparing, Turn: t.n})

	contexts := t.sample()
	if t.canceled() || a.inbox.len() == 0 {
		// Nothing was opened: what is pending stays so.
		return false
	}
	v := t.guarded(func() verdict { return t.run(contexts) })
	if !t.opened {
		a.setOutcome(Outcome{Turn: t.n, Reason: v.reason, Err: v.err})
		return false
	}
	a.setStatus(Status{Phase: Ending, Turn: t.n, Step: t.step})
	out := Outcome{Turn: t.n, Reason: v.reason, Err: v.err}
	_, err := a.s.Append(outcrop.TurnEnd{Turn: t.n, Reason: v.reason})
	t.done = true
	if err = a.closed(err); err == nil {
		err = a.flush(a.life)
	}
	if err != nil && !sameFault(out.Err, err) {
		out.Err = errors.Join(out.Err, err)
	}
	a.setOutcome(out)
	normal := v.reason.Kind == outcrop.Completed || v.reason.Kind == outcrop.MaxTokens
	return normal && out.Err == nil && !t.canceled()
}

// sameFault reports whether what failed again failed for the reason that told
// names already: a full disk refuses the end of a turn as it refused the step.
func sameFault(told, again error) bool {
	for {
		inner := errors.Unwrap(again)
		if inner == nil {
			return errors.Is(told, again)
		}
		again = inner
	}
}

// closed takes what came of appending a closer. One that could not be written
// fails the session: nothing may be opened on top of what is not closed.
func (a *Agent) closed(err error) error {
	if err != nil {
		a.log.Error("a closer could not be written", "err", err)
		a.s.Fail(err)
	}
	return err
}

func (a *Agent) setOutcome(o Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = o
}

// guarded turns a panic of the loop into the end of the turn.
func (t *turn) guarded(f func() verdict) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			t.a.log.Error("the loop panicked", "turn", t.n, "step", t.step, "panic", p, "stack", string(debug.Stack()))
			v = t.failed(fmt.Errorf("internal error: %v", p))
		}
	}()
	return f()
}

// sample asks for the contexts of this turn.
func (t *turn) sample() []workspace.Context {
	if t.a.o.Contexts == nil {
		return nil
	}
	got := make(chan []workspace.Context, 1)
	go func() {
		var cs []workspace.Context
		defer func() {
			if p := recover(); p != nil {
				t.a.log.Error("sampling the context panicked", "turn", t.n, "panic", p, "stack", string(debug.Stack()))
			}
			got <- cs
		}()
		cs = t.a.o.Contexts(t.ctx)
	}()
	cs, _ := await(t.a, t.ctx, got)
	return cs
}

// run opens the turn and runs its steps.
func (t *turn) run(contexts []workspace.Context) verdict {
	a := t.a
	extra := workspace.Due(a.s.Messages(), contexts)
	if a.cutText != "" {
		extra = append([]workspace.Context{{Name: "interrupted", Text: cutNotice + a.cutText}}, extra...)
	}
	if v, ok := t.open(extra); !ok {
		return v
	}
	a.cutText = ""
	for {
		v := t.guarded(t.runStep)
		if v.kind == turnEnds {
			return v
		}
		if t.canceled() {
			return t.aborted()
		}
		if v.kind == turnMayEnd && len(a.inbox.nextStep) == 0 {
			return v
		}
		if why := t.stepLimit(); why != "" {
			return hookStop(why)
		}
		if v, ok := t.enter(); !ok {
			return v
		}
	}
}

// cutNotice stands before the text of a reply that a crash cut.
const cutNotice = "The program ended while the last reply was being written. This much of it was visible; it is not complete, " +
	"and tool calls in it were not run:\n\n"

// open begins the turn with its first step, all in one group.
func (t *turn) open(contexts []workspace.Context) (verdict, bool) {
	a := t.a
	var head []outcrop.Candidate
	if p := a.o.Policy.logged(); p != a.policy {
		head = append(head, outcrop.LogCandidate(outcrop.ApprovalPolicy{Policy: p}))
	}
	head = append(head, outcrop.LogCandidate(outcrop.TurnStart{Turn: t.n}))
	claims, entering := a.claim(true)
	group := append(head, claims...)
	group = append(group, t.entering(entering, contexts, len(group))...)
	_, err := a.s.AppendAll(group...)
	if err == nil {
		a.policy = a.o.Policy.logged()
		a.lastTurn, t.opened, t.step = t.n, true, 1
		a.inbox.take(true)
		return verdict{}, true
	}
	if a.s.Err() != nil {
		return t.failed(err), false
	}
	a.log.Warn("the input was refused", "turn", t.n, "err", err)
	// Show in the log what became of it: a turn without a step.
	if _, err2 := a.s.Append(outcrop.TurnStart{Turn: t.n}); err2 != nil {
		return t.failed(errors.Join(err, err2)), false
	}
	a.lastTurn, t.opened = t.n, true
	return t.blocked(true, claims, err), false
}

// enter begins a further step with what was steered in.
func (t *turn) enter() (verdict, bool) {
	a := t.a
	claims, entering := a.claim(false)
	t.step++
	group := append(claims, t.entering(entering, nil, len(claims))...)
	_, err := a.s.AppendAll(group...)
	if err == nil {
		a.inbox.take(false)
		return verdict{}, true
	}
	t.step--
	if a.s.Err() != nil || len(claims) == 0 {
		return t.failed(err), false
	}
	a.log.Warn("the input was refused", "turn", t.n, "err", err)
	return t.blocked(false, claims, err), false
}

// blocked claims input that was refused, so that it does not come again.
func (t *turn) blocked(first bool, claims []outcrop.Candidate, err error) verdict {
	if _, err2 := t.a.s.AppendAll(claims...); err2 != nil {
		return t.failed(errors.Join(err, err2))
	}
	t.a.inbox.take(first)
	return verdict{kind: turnEnds, reason: outcrop.TurnReason{Kind: outcrop.Blocked}, err: err}
}

// claim makes the splices that take the input of a step, and returns that
// input. The inbox itself changes with take, once they are committed.
func (a *Agent) claim(first bool) (claims []outcrop.Candidate, entering []message.Message) {
	if n := len(a.inbox.nextStep); n > 0 {
		claims = append(claims, outcrop.LogCandidate(outcrop.InboxSpliced{Target: outcrop.NextStep, RemovedCount: n}))
		entering = append(entering, a.inbox.nextStep...)
	}
	if first && len(a.inbox.nextTurn) > 0 {
		claims = append(claims, outcrop.LogCandidate(outcrop.InboxSpliced{Target: outcrop.NextTurn, RemovedCount: 1}))
		entering = append(entering, a.inbox.nextTurn[0])
	}
	return claims, entering
}

// take removes what claim has claimed.
func (b *inbox) take(first bool) {
	b.nextStep = nil
	if first && len(b.nextTurn) > 0 {
		b.nextTurn = append([]message.Message(nil), b.nextTurn[1:]...)
	}
}

// entering makes the beginning of a step. before is how many candidates of the
// same group stand before it.
func (t *turn) entering(input []message.Message, contexts []workspace.Context, before int) []outcrop.Candidate {
	a := t.a
	step := max(t.step, 1)
	out := []outcrop.Candidate{outcrop.LogCandidate(outcrop.StepStart{Turn: t.n, Step: step})}
	for _, m := range input {
		out = append(out, outcrop.SurfaceCandidate(outcrop.UserMessage{Message: m}, outcrop.Tail, outcrop.NoSources))
	}
	for _, c := range contexts {
		out = append(out, workspace.Candidate(a.s.Header(), a.id("m", a.s.Len()+before+len(out)), c))
	}
	return out
}
