package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// followEvery is how often a followed log is looked at. A look at a log without
// anything new is one system call.
const followEvery = 100 * time.Millisecond

// follow prints what is there and then what comes, until it is interrupted. A
// record shows when it is whole.
func (a *app) follow(ctx context.Context, t *desk.Target, show func(outcrop.Event) error) error {
	st, ok := t.Store.(store.Follower)
	if !ok {
		return exit.Usagef("a log in %s cannot be followed", term.Line(t.Store.Address()))
	}
	in, err := st.Follow(ctx, t.ID)
	if err != nil {
		return exit.Unreadable(err)
	}
	defer in.Close()
	t.NoteOvertaken(ctx)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err := a.news(ctx, in, show); err != nil {
			return err
		}
		// Who reads along must get it now.
		if err := a.Out.Flush(); err != nil {
			return err
		}
		if sleeper, ok := in.(store.Awaited); ok {
			sleeper.Wait(ctx) // its error is ctx's
		} else {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return exit.With(130, nil) // this is how it is meant to end
		}
	}
}

// news shows what came since the last time.
func (a *app) news(ctx context.Context, in store.Following, show func(outcrop.Event) error) error {
	var failed error
	for r, err := range in.Next(ctx) {
		if err != nil {
			// Reading goes on behind a record that is too big, and behind half
			// an old shape, which comes as it is stored.
			failed = err
			if r.Type == "" && r.Run == nil {
				continue
			}
		}
		for ev := range r.Events() {
			if err := show(ev); err != nil {
				return err
			}
		}
	}
	switch {
	case failed == nil || ctx.Err() != nil:
		return nil
	case errors.Is(failed, store.ErrMoved), errors.Is(failed, outcrop.ErrNotFound):
		return exit.With(1, failed)
	case errors.Is(failed, outcrop.ErrDamaged):
		return exit.With(3, fmt.Errorf("not everything is shown: %w", failed))
	case errors.Is(failed, outcrop.ErrRefused):
		a.Problem(fmt.Errorf("not everything is shown: %w", failed))
		return nil
	}
	return failed
}
