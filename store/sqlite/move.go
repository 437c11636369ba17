package sqlite

import (
	"context"
	"database/sql"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
	"github.com/outcrop-dev/outcrop/store/moved"
)

var _ store.Mover = (*Store)(nil)

// held is a locked session. A session whose rows cannot be read to their end is
// not handed over: the folder would not be the whole of it.
type held struct {
	s    *Store
	id   string
	lock *filelock.Lock
}

// Hold is store.Mover's.
func (s *Store) Hold(ctx context.Context, id string) (store.Held, error) {
	db, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, s.notFound("move", id)
	}
	if _, err := s.find(ctx, db, id); err != nil && outcrop.CodeOf(err) == outcrop.CodeSessionNotFound {
		return nil, err
	}
	lock, err := s.takeLock(id)
	if err != nil {
		return nil, store.Problem("move", id, err, "", "end it there first")
	}
	return &held{s, id, lock}, nil
}

// Place is store.Held's: a file has no places.
func (h *held) Place() string { return "" }

// Close is store.Held's.
func (h *held) Close() error { return h.lock.Release() }

// HandOver is store.Held's: the session becomes a log file in dir, compared
// before a row is removed.
func (h *held) HandOver(ctx context.Context, dir string) error {
	from, err := h.s.Read(ctx, h.id)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := moved.Write(ctx, dir, from.Header(), from.Records()); err != nil {
		return err
	}
	db, err := h.s.writer(ctx)
	if err != nil {
		return err
	}
	return h.s.transact(ctx, db, "move", h.id, func(ctx context.Context, c *sql.Conn) error {
		// A writer of another program would need the lock; that the rows are the
		// ones that were copied is looked at all the same.
		res, err := c.ExecContext(ctx, "DELETE FROM sessions WHERE id = ? AND next_seq = ?", h.id, int64(from.(*reading).next))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			return h.s.sessionProblem("move", h.id, "", store.ErrMoved, "another program wrote the session meanwhile", "nothing was removed")
		}
		return nil
	})
}

// TakeBack is store.Mover's.
func (s *Store) TakeBack(ctx context.Context, id, _, dir string) error {
	return moved.TakeBack(ctx, s, id, dir)
}

// Holds is store.Mover's.
func (s *Store) Holds(ctx context.Context, id, _, dir string) (bool, error) {
	return moved.Holds(ctx, s, id, dir)
}
