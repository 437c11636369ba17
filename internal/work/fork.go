package work

import (
	"context"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/store"
)

// Fork makes a new session from the events through the seq at, all of them when
// it is negative, and goes on in it: the session that was open is saved and let
// go, and its agent ends. The agent must be idle. Engage makes the next one.
// After an error the session that was open still is.
func (w *Work) Fork(ctx context.Context, at outcrop.Seq) (store.Cut, error) {
	switch {
	case w.target != nil && w.target.Path != "":
		return store.Cut{}, exit.Refusedf("this session is a log file outside a store: leave, then outcrop fork makes a session of it")
	case w.live.Session().Len() == 0:
		return store.Cut{}, exit.Refusedf("there is nothing to fork yet")
	}
	if err := w.live.Flush(ctx); err != nil {
		return store.Cut{}, err
	}
	id := w.a.Env.NewID()
	cut, err := store.ForkAt(ctx, w.store, w.Session().ID(), at, store.Child{ID: id, CreatedAt: w.a.Now()})
	if err != nil {
		return store.Cut{}, err
	}
	live, err := store.Open(ctx, w.store, id, w.storeOptions())
	if err != nil {
		return store.Cut{}, err
	}
	if err := w.Close(context.WithoutCancel(ctx)); err != nil {
		return store.Cut{}, errors.Join(err, live.Close(ctx))
	}
	w.live, w.target = live, &desk.Target{Store: w.store, ID: id, Name: id}
	return cut, nil
}
