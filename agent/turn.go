package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/workspace"
)

// turn is the turn that runs. It lives on the owner.
type turn struct {
	a      *Agent
	n      int
	step   int // open or last step, 0 before the first
	opened bool
	closed bool // turn/end is written
	ctx    context.Context
	stop   context.CancelCauseFunc

	// result is how the turn will end when nothing goes wrong from here on: a
	// reply that was cut off makes it max-tokens, whatever the steps behind it
	// come to. It is apart from the question whether the turn goes on.
	result outcrop.ReasonKind

	sampled []workspace.Context // what Options.Contexts gave
	want    []workspace.Context // all contexts that the running step should have
	model   Model               // of the last call
	refused int                 // calls in a row that were not approved
}

// verdict is what a step comes to.
type verdict struct {
	kind   verdictKind
	reason outcrop.TurnReason // for turnEnds
	err    error              // for turnEnds: what Outcome.Err is
	void   bool               // for turnEnds: the log took no turn/start, there is no turn
}

type verdictKind int

const (
	turnGoesOn verdictKind = iota // tools ran: the model must see what they gave
	turnMayEnd                    // the model has nothing more to ask
	turnEnds                      // at once
)

func (t *turn) canceled() bool { return t.ctx.Err() != nil }

// over reports that input cannot enter this turn any more.
func (t *turn) over() bool { return t.closed || t.canceled() }

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
		t.masked(err)
		return t.aborted()
	}
	v := verdict{kind: turnEnds, reason: outcrop.TurnReason{Kind: outcrop.TurnError, Error: failureOf(err)}}
	var f *message.Failure
	if !errors.As(err, &f) {
		v.err = err
	}
	return v
}

// masked logs an error that a cancelled turn does not tell of, unless it is the
// cancel itself.
func (t *turn) masked(err error) {
	if !errors.Is(err, context.Canceled) && !isAborted(err) {
		t.a.log.Warn("an error came while the turn was cancelled", "turn", t.n, "step", t.step, "err", err)
	}
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
	t := &turn{a: a, n: a.lastTurn + 1, result: outcrop.Completed}
	t.ctx, t.stop = context.WithCancelCause(a.life)
	defer t.stop(nil)
	a.turn = t
	defer func() { a.turn = nil }()
	a.enterPhase(place{phase: Preparing, turn: t.n})
	return t.end(t.guarded(t.run))
}

// end closes the turn. One that never came to be opened, because it was
// cancelled or failed before that, is opened first: the log says what became
// of it.
func (t *turn) end(v verdict) (again bool) {
	a := t.a
	out := Outcome{Turn: t.n, Reason: v.reason, Err: v.err}
	defer func() { a.setOutcome(out) }()
	if v.void {
		return false
	}
	if !t.opened {
		if err := t.open(); err != nil {
			out.Err = errors.Join(out.Err, err)
			return false
		}
	}
	a.enterPhase(place{phase: Ending, turn: t.n, step: t.step})
	if b := a.bracket; b != nil {
		// A hook was left behind inside a compaction. A bracket must not reach
		// over the end of its turn.
		if _, err := a.s.Append(*b); err != nil {
			a.log.Warn("a compaction that was left behind cannot be ended", "turn", t.n, "err", err)
		}
	}
	_, err := a.s.Append(outcrop.TurnEnd{Turn: t.n, Reason: v.reason})
	t.closed = true
	if err = a.written(err); err == nil {
		err = a.flush(a.life)
	}
	if err != nil && !sameFault(out.Err, err) {
		out.Err = errors.Join(out.Err, err)
	}
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

// written takes what came of appending a closer. One that could not be written
// fails the session: nothing may be opened on top of what is not closed.
func (a *Agent) written(err error) error {
	if err != nil {
		a.log.Error("a closer could not be written", "err", err)
		a.s.Fail(err)
	}
	return err
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

// run opens the turn and runs its steps.
func (t *turn) run() verdict {
	a := t.a
	t.sample()
	if t.canceled() {
		return t.aborted()
	}
	if a.inbox.len() == 0 { // taken back meanwhile: there is nothing to do
		return verdict{kind: turnEnds, void: true}
	}
	for before := turnMayEnd; ; {
		if v, begun := t.begin(before); !begun {
			return v
		}
		v := t.guarded(t.runStep)
		if v.kind == turnEnds {
			return v
		}
		if t.canceled() {
			return t.aborted()
		}
		if v.kind == turnMayEnd && len(a.inbox.nextStep) == 0 {
			if err := t.askStopping(); err != nil {
				return t.failed(err)
			}
			if t.canceled() {
				return t.aborted()
			}
			if len(a.inbox.nextStep) == 0 {
				return t.ends()
			}
		}
		if why := t.stepLimit(); why != "" {
			return hookStop(why)
		}
		before = v.kind
	}
}

// ends is the verdict of a turn in which nothing is left to do.
func (t *turn) ends() verdict {
	return verdict{kind: turnEnds, reason: outcrop.TurnReason{Kind: t.result}}
}

// sample asks for the contexts of this turn. A function that panics, which is
// logged, gives none.
func (t *turn) sample() {
	if f := t.a.o.Contexts; f != nil {
		t.sampled, _ = hooked(t, "contexts", func() ([]workspace.Context, error) { return lastOfEach(f(t.ctx)), nil })
	}
}

// bracketOf is the end of a compaction that begins with ev, for when nobody
// writes it.
func bracketOf(ev outcrop.Event) *outcrop.CompactionEnd {
	end := &outcrop.CompactionEnd{Error: "the turn ended while it ran"}
	end.CompactionID, _ = jsonwire.Text(jsonwire.Get(ev.Data, "compactionId"))
	end.SourceCommandID, _ = jsonwire.Text(jsonwire.Get(ev.Data, "sourceCommandId"))
	if n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "turn")); ok {
		turn := int(n)
		end.Turn = &turn
	}
	return end
}
