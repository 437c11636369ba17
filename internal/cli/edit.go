package cli

import (
	"context"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// Commands that change the history of a session, and no model runs: what they
// share.

// onSession runs f on a target. With dry it is only read, so that a dry run
// needs no lock and changes nothing, and f must append nothing. Else it is
// opened and repaired like one that goes on, and what f appended is durable when
// onSession returns nil.
func (a *app) onSession(ctx context.Context, name string, dry bool, f func(t *desk.Target, s *outcrop.Session) error) error {
	t, err := a.Resolve(ctx, name)
	if err != nil {
		return err
	}
	if dry {
		s, _, err := store.Inspect(ctx, t.Store, t.ID, outcrop.Options{})
		if err != nil {
			return exit.Unreadable(err)
		}
		t.NoteOvertaken(ctx)
		return f(t, s)
	}
	live, err := store.Open(ctx, t.Store, t.ID, store.Options{
		Session: outcrop.Options{Now: a.Now, NewID: a.Env.NewID, Logger: a.Logger}})
	if err != nil {
		return err
	}
	err = f(t, live.Session())
	return errors.Join(err, live.Close(context.WithoutCancel(ctx)))
}

// onHistory is onSession for a command that plans before it does: with dry f gets
// the session as the deed would open it, with what a crash left open closed.
func (a *app) onHistory(ctx context.Context, name string, dry bool, f func(s *outcrop.Session) error) error {
	return a.onSession(ctx, name, dry, func(_ *desk.Target, s *outcrop.Session) error {
		if dry {
			var err error
			if s, err = history.AsOpened(s); err != nil {
				return err
			}
		}
		return f(s)
	})
}

// seqArg reads a seq that a person typed.
func seqArg(text string) (outcrop.Seq, error) {
	n, ok := jsonwire.Int([]byte(text))
	if !ok || n < 0 {
		return 0, exit.Usagef("%s is no seq: give the number of an event (outcrop surface lists the nodes)", term.Quote(text))
	}
	return outcrop.Seq(n), nil
}
