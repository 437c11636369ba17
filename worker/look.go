package worker

import (
	"context"
	"errors"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// lookThrough looks for sessions that have something to do. force also takes
// those that somebody holds.
func (w *Worker) lookThrough(ctx context.Context, force bool) error {
	begun := time.Now()
	infos, err := w.o.Store.List(ctx, store.ListOptions{})
	w.mu.Lock()
	w.lookErr = err
	if err == nil {
		w.looked, w.lookedAt = true, begun
	}
	w.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn("the store cannot be looked through", "store", w.o.Store.Address(), "err", err)
		}
		w.o.Observe(Happening{Kind: Looked, Err: err, Took: time.Since(begun)})
		return err
	}
	due := 0
	for _, in := range infos {
		if ctx.Err() != nil {
			return nil
		}
		if w.consider(ctx, in, force) {
			due++
		}
	}
	w.forget(infos)
	w.o.Observe(Happening{Kind: Looked, Sessions: len(infos), Due: due, Took: time.Since(begun)})
	w.nudge()
	return nil
}

// forget drops what is known of sessions that are not in the store any more.
func (w *Worker) forget(infos []store.Info) {
	there := make(map[string]bool, len(infos))
	for _, in := range infos {
		there[in.ID] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, k := range w.known {
		if k.state == nowhere && !there[id] {
			delete(w.known, id)
		}
	}
}

// consider puts a session into the queue when there is something to do in it.
func (w *Worker) consider(ctx context.Context, in store.Info, force bool) bool {
	if in.Header.Compatible() || in.Header.Format > 0 {
		// It may be dsh that works on it, which takes no lock.
		return false
	}
	switch in.State {
	case store.StateOK, store.StateOpenTurn:
	case store.StateLocked:
		if !force {
			return false
		}
	default:
		return false
	}
	m := mark{in.Events, in.Bytes, in.UpdatedAt}
	w.mu.Lock()
	k := w.known[in.ID]
	if k == nil && in.Due != nil && !w.hasWork(in.Due) {
		w.mu.Unlock()
		return false // nothing has to be remembered of it
	}
	k = w.of(in.ID)
	if k.state != nowhere {
		w.mu.Unlock()
		return false
	}
	due := in.Due
	if due == nil && k.seen == m {
		due = k.due
	}
	w.mu.Unlock()
	if due == nil {
		var err error
		if due, err = store.DueOf(ctx, w.o.Store, in.ID); err != nil {
			if ctx.Err() == nil && !errors.Is(err, outcrop.ErrNotFound) {
				w.log.Debug("a session cannot be looked at", "session", in.ID, "err", err)
			}
			if !errors.Is(err, outcrop.ErrDamaged) && !errors.Is(err, outcrop.ErrUnsupported) && !errors.Is(err, outcrop.ErrRefused) {
				return false // the next look may be luckier
			}
			due = &store.Due{} // nothing is done in it until it changes
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if k = w.of(in.ID); k.state != nowhere {
		return false
	}
	if k.seen = m; in.Due == nil {
		k.due = due
	}
	if !w.hasWork(due) || w.ending {
		return false
	}
	k.state, k.force = waiting, force && in.State == store.StateLocked
	w.queue = append(w.queue, in.ID)
	return true
}

// hasWork reports whether a worker with these options does something in a
// session that leaves this to be done.
func (w *Worker) hasWork(d *store.Due) bool {
	switch {
	case d.Open: // whoever ran it is gone: it is closed at least
		return true
	case d.Cuts >= w.o.Attempts:
		return false
	}
	return d.Pending() > 0 || d.Cut && w.o.Interrupted == Continue
}
