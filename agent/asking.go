package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// pass lets the hook that has it edit the history while it is asked.
type pass struct{ valid bool } // under the owner

// stage is where the turn is, for a hook that is asked about a step.
func (t *turn) stage(step, attempt int) Stage {
	return Stage{Turn: t.n, Step: step, Attempt: attempt, Header: t.a.s.Header(), Log: t.a.s.Log(), agent: t.a}
}

// editing is stage for a hook that may edit the history until done is called.
func (t *turn) editing(step, attempt int) (st Stage, done func()) {
	st = t.stage(step, attempt)
	p := &pass{valid: true}
	st.pass = p
	return st, func() { p.valid = false }
}

// edit is Stage.Edit.
func (a *Agent) edit(ctx context.Context, p *pass, f func(*outcrop.Session) error) error {
	var err error
	perr := a.post(ctx, func() {
		if p == nil || !p.valid {
			err = ErrBusy
			return
		}
		err = contained(func() error { return f(a.s) })
	})
	return errors.Join(perr, err)
}

// hookError is an error of a hook, which nobody is asked to recover from. Its
// text is the hook's own.
type hookError struct {
	text string
	err  error
}

func (e *hookError) Error() string { return e.text }
func (e *hookError) Unwrap() error { return e.err }

func hookFailed(err error) error { return &hookError{err.Error(), err} }

func hookEnded(name string) error { return hookFailed(fmt.Errorf("hook %s ended its goroutine", name)) }

// contain runs a hook and makes an error of its panic.
func contain[T any](a *Agent, name string, f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("hook panicked", "hook", name, "panic", p, "stack", string(debug.Stack()))
			err = hookFailed(fmt.Errorf("hook %s panicked: %v", name, p))
		}
	}()
	if v, err = f(); err != nil {
		err = hookFailed(err) // here, because its text may be another panic
	}
	return v, err
}

// given is what a goroutine gives back.
type given[T any] struct {
	v   T
	err error
}

// hooked asks a hook on a goroutine of its own, and reads mails meanwhile. A
// hook that does not return within the time of grace after the turn was
// cancelled is left behind.
func hooked[T any](t *turn, name string, f func() (T, error)) (v T, err error) {
	return hookedIn(t, &round{}, name, f)
}

// hookedIn is hooked while calls run: what comes of them is taken in.
func hookedIn[T any](t *turn, r *round, name string, f func() (T, error)) (v T, err error) {
	done := make(chan given[T], 1)
	go func() {
		got := given[T]{err: hookEnded(name)}
		defer func() { done <- got }()
		got.v, got.err = contain(t.a, name, f)
	}()
	var grace <-chan time.Time
	cancelled := t.ctx.Done()
	for {
		select {
		case got := <-done:
			return got.v, got.err
		case e := <-r.done:
			r.ended(e)
		case m := <-t.a.mails:
			m()
		case <-cancelled:
			timer := t.a.o.Clock.Timer(t.a.o.Limits.Grace)
			defer timer.Stop()
			cancelled, grace = nil, timer.C()
		case <-grace:
			t.a.log.Warn("a hook did not stop when its turn was cancelled; it is left behind", "turn", t.n, "hook", name)
			return v, t.ctx.Err()
		}
	}
}

// askStopping asks what else is to be done in the turn, and puts it into the
// inbox.
func (t *turn) askStopping() error {
	for _, h := range t.a.o.Hooks.Stopping {
		st := t.stage(t.step, 0)
		more, err := hooked(t, "stopping", func() ([]message.Message, error) { return h.Stopping(t.ctx, st) })
		if err == nil && !t.canceled() {
			err = t.a.stageAll(more)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stageAll puts messages of hooks where the next step takes them.
func (a *Agent) stageAll(messages []message.Message) error {
	for _, m := range messages {
		m, err := fitting(m, injected)
		if err == nil {
			_, err = a.insert(outcrop.NextStep, m, false)
		}
		if err != nil {
			return hookFailed(fmt.Errorf("a message of a hook: %w", err))
		}
	}
	return nil
}

// copies are messages that a hook may do with what it likes.
func copies(messages []message.Message) []message.Message {
	out := slices.Clone(messages)
	for i := range out {
		out[i].Content = slices.Clone(out[i].Content)
	}
	return out
}
