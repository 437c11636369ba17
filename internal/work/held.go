package work

import (
	"context"
	"errors"
	"sync"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/worker"
)

// take takes the session up that goes on.
func (w *Work) take(ctx context.Context) (*store.Live, error) {
	if !w.flags.TakeOver {
		return store.Open(ctx, w.store, w.target.ID, w.storeOptions())
	}
	bus, err := worker.BusOf(ctx, w.store)
	if err != nil {
		return nil, err
	}
	return worker.TakeOver(ctx, w.store, bus, w.target.ID, w.name(), w.storeOptions())
}

// name tells this process from others.
func (w *Work) name() string { return w.a.Env.Program }

// watch looks after the lease of the session while its agent lives: when it is
// lost, the running turn ends, and with it the tools. With Answers other processes
// can reach the session meanwhile. end ends both.
func (w *Work) watch(ctx context.Context) (end func()) {
	ctx = context.WithoutCancel(ctx)
	ag, live := w.agent, w.live
	var watching sync.WaitGroup
	done := make(chan struct{})
	if lost := live.Lost(); lost != nil {
		watching.Go(func() {
			select {
			case <-done:
				return
			case <-lost:
			}
			w.a.Note("the session may have been taken over by another process: what runs here is stopped")
			if _, err := ag.Cancel(ctx, agent.Cause{Kind: agent.ByHook, Reason: store.HandedOver}, agent.KeepInbox); err != nil && !errors.Is(err, agent.ErrClosed) {
				w.a.Logger.Warn("the turn cannot be stopped", "err", err)
			}
		})
	}
	hush := func() {}
	if w.flags.Answers {
		if stop, err := w.answer(ctx); err != nil {
			w.a.Note("other processes cannot reach this session: %s", exit.Explain(err))
		} else {
			hush = stop
		}
	}
	return func() {
		hush()
		close(done)
		watching.Wait()
	}
}

// answer answers for the session.
func (w *Work) answer(ctx context.Context) (stop func(), err error) {
	bus, err := worker.BusOf(ctx, w.store)
	if err != nil || bus == nil {
		return func() {}, err
	}
	h := worker.NewHolder(w.agent, w.live.Session(), w.live.Flush, w.name())
	return bus.Answer(w.live.Session().ID(), h.Answer)
}

// Lost is store.Live's, after Open.
func (w *Work) Lost() <-chan struct{} { return w.live.Lost() }

// Flush is store.Live's, after Open.
func (w *Work) Flush(ctx context.Context) error { return w.live.Flush(ctx) }
