package agent

import (
	"context"
	"errors"

	"github.com/outcrop-dev/outcrop"
)

// Operation is a piece of work on the history while no turn runs.
type Operation struct {
	agent *Agent
	pass  *pass
}

// Edit runs f on the session's one appender and waits for it. It fails with
// ErrBusy once the operation has ended.
func (o Operation) Edit(ctx context.Context, f func(s *outcrop.Session) error) error {
	return o.agent.edit(ctx, o.pass, f)
}

// operation is the one that runs, under the owner.
type operation struct {
	pass *pass
	stop context.CancelCauseFunc
}

// Operate runs f, on the caller's goroutine, while no turn begins: for an
// operation that edits the history more than once with other work between, such
// as asking a model for a summary. Input that comes meanwhile waits, and runs
// when f has ended. Cancel and Close end f's ctx, with the Cause as its cause; f
// must return soon then. Operate fails with ErrBusy when a turn or another
// operation runs. What f appended is durable when Operate returns nil.
func (a *Agent) Operate(ctx context.Context, f func(ctx context.Context, o Operation) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := &pass{valid: true}
	var err error
	perr := a.post(ctx, func() {
		switch {
		case a.closing:
			err = ErrClosed
		case a.s.Err() != nil:
			err = a.s.Err()
		case a.turn != nil || a.wake || a.operation != nil:
			err = ErrBusy
		default:
			a.operation = &operation{p, stop}
		}
	})
	if perr != nil || err != nil {
		return errors.Join(perr, err)
	}
	err = contained(func() error { return f(ctx, Operation{a, p}) })
	if perr := a.post(context.WithoutCancel(ctx), func() { p.valid, a.operation = false, nil }); perr != nil {
		return errors.Join(err, perr)
	}
	if err != nil {
		return err
	}
	return a.live.Flush(ctx)
}
