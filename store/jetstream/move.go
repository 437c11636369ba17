package jetstream

import (
	"context"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/moved"
)

var _ store.Mover = (*Store)(nil)

// held is a session that this worker owns in order to move it.
type held struct{ l *Lease }

// Hold is store.Mover's. A session whose last message cannot be read is not
// handed over: the folder would not be the whole of it.
func (s *Store) Hold(ctx context.Context, id string) (store.Held, error) {
	l, err := s.acquire(ctx, id, s.opt.TakeOver)
	if err != nil {
		return nil, err
	}
	return &held{l}, nil
}

// Place is store.Held's: a realm has no places.
func (h *held) Place() string { return "" }

// Close is store.Held's.
func (h *held) Close() error { return h.l.Close() }

// HandOver is store.Held's: the session becomes a log file in dir, compared
// before a message is removed.
func (h *held) HandOver(ctx context.Context, dir string) error {
	if err := moved.Write(ctx, dir, h.l.header, h.l.Records()); err != nil {
		return err
	}
	if err := h.l.remove(ctx); err != nil {
		return h.l.s.failed("move", h.l.header.ID, err)
	}
	return nil
}

// TakeBack is store.Mover's.
func (s *Store) TakeBack(ctx context.Context, id, _, dir string) error {
	return moved.TakeBack(ctx, s, id, dir)
}

// Holds is store.Mover's.
func (s *Store) Holds(ctx context.Context, id, _, dir string) (bool, error) {
	return moved.Holds(ctx, s, id, dir)
}
