package agent

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/outcrop-dev/outcrop"
)

// Wait returns when the agent is idle: no turn or operation runs and none is
// about to.
func (a *Agent) Wait(ctx context.Context) (Outcome, error) {
	w := make(chan struct{})
	err := a.post(ctx, func() {
		if a.turn == nil && !a.wake && a.operation == nil {
			close(w)
			return
		}
		a.waiters = append(a.waiters, w)
	})
	if err != nil {
		return Outcome{}, err
	}
	select {
	case <-w:
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
	return a.lastOutcome(), nil
}

// Maintain runs f on the owner while nothing else can append: for operations
// on the history. It fails with ErrBusy when a turn or an operation runs. f must not call the
// agent. What f appended is flushed before Maintain returns nil.
func (a *Agent) Maintain(ctx context.Context, f func(s *outcrop.Session) error) error {
	var err error
	perr := a.post(ctx, func() {
		switch {
		case a.closing:
			err = ErrClosed
		case a.turn != nil || a.wake || a.operation != nil:
			err = ErrBusy
		default:
			err = contained(func() error { return f(a.s) })
		}
	})
	if perr != nil {
		return perr
	}
	if err != nil {
		return err
	}
	return a.live.Flush(ctx)
}

func contained(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// Observe calls f for each event that is committed from now on, in order, on a
// goroutine of its own. A slow f delays nobody: it reads the log at its own
// pace. f may call the agent, but not stop. The event is a view of the log:
// Clone what is kept. stop returns when f has seen everything that was
// committed before it was called; f is not called again.
func (a *Agent) Observe(f func(outcrop.Event)) (stop func()) {
	return a.watch.add(f, a.log)
}

// Close cancels the running turn or operation, keeps what is pending, and ends the agent;
// when ctx ends first, waiting for the disk is given up. The session and its
// store stay open: they are the caller's. A second Close returns at once.
func (a *Agent) Close(ctx context.Context) error {
	err := a.post(ctx, func() {
		a.closing = true
		_, _ = a.cancel(Cause{Kind: Disposed}, KeepInbox)
	})
	switch {
	case err == ErrClosed:
		return nil
	case err != nil:
		a.kill()
		return err
	}
	select {
	case <-a.ended:
		a.kill()
		return nil
	case <-ctx.Done():
		a.kill()
		return ctx.Err()
	}
}
