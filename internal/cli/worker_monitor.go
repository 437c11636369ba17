package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/monitor"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream"
	"github.com/outcrop-dev/outcrop/worker"
	"github.com/outcrop-dev/outcrop/worker/metrics"
)

// openWatched opens the store of a command that has metrics.
func (a *app) openWatched(tell *watching) (store.Store, error) {
	address, origin, err := a.StoreAddress()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(address, "nats:") && !strings.HasPrefix(address, "tls:") {
		return a.StoreAt(address, origin)
	}
	o, err := a.RealmOptions()
	if err != nil {
		return nil, err
	}
	o.Observe = tell.store
	st, err := jetstream.New(address, o)
	return st, exit.Misuse(err)
}

// monitor serves metrics and health until done is called; wk is nil where there
// is no worker.
func (a *app) monitor(ctx context.Context, addr string, st store.Store, tell *watching, wk *worker.Worker) (done func(), err error) {
	m, err := monitor.Listen(monitor.Options{Addr: addr, Version: version(), Store: st.Address(), Logger: a.Logger,
		Health: func(ctx context.Context) monitor.Health { return health(ctx, st, wk) }})
	if err != nil {
		return nil, exit.With(1, fmt.Errorf("--metrics %s: %w", term.Line(addr), err))
	}
	k, err := metrics.New(m.Meters())
	if err == nil && wk != nil {
		err = k.Watch(wk)
	}
	m.Serve()
	if err != nil {
		m.Close()
		return nil, err
	}
	tell.set(k)
	a.Note("metrics: http://%s/metrics", m.Addr())
	return func() {
		if err := m.Close(); err != nil {
			a.Logger.Warn("metrics were not ended in good order", "err", err)
		}
	}, nil
}

// lookLate is for how long the store may not have been looked through.
const lookLate = 5 * time.Minute

// health is how a process with a store is.
func health(ctx context.Context, st store.Store, wk *worker.Worker) (h monitor.Health) {
	h.Sync = "always" // what files and databases of this program do
	if r, ok := st.(*jetstream.Store); ok {
		h.Sync = "unknown"
		// The record of the realm is read anew: the servers have to answer.
		realm, err := r.Realm(ctx)
		if err != nil {
			h.Problems = append(h.Problems, exit.Explain(err))
		} else {
			h.Sync = string(realm.Sync.State)
		}
	}
	if wk == nil {
		return h
	}
	l := wk.Load()
	switch {
	case l.Ending:
		h.Problems = append(h.Problems, "the worker is ending")
	case l.Err != nil:
		h.Problems = append(h.Problems, "the store cannot be looked through: "+exit.Explain(l.Err))
	case l.LookedAt.IsZero():
		h.Problems = append(h.Problems, "the store was not looked through yet")
	case time.Since(l.LookedAt) > lookLate:
		h.Problems = append(h.Problems, fmt.Sprintf("the store was last looked through %s ago", time.Since(l.LookedAt).Round(time.Second)))
	}
	return h
}
