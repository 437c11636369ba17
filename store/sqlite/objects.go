package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
)

var _ store.Attachments = (*Store)(nil)

// Objects are the store's attachments, in a table of the same file.
func (s *Store) Objects() store.Objects { return objects{s} }

type objects struct{ s *Store }

// Get is store.Objects's.
func (o objects) Get(ctx context.Context, id string) ([]byte, error) {
	if err := blob.Valid(id); err != nil {
		return nil, err
	}
	db, err := o.s.reader(ctx)
	if err != nil {
		return nil, err
	}
	var b []byte
	err = sql.ErrNoRows
	if db != nil {
		err = db.QueryRowContext(ctx, "SELECT data FROM objects WHERE id = ?", id).Scan(&b)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, o.s.problem("read attachment", outcrop.ErrNotFound, id+" is missing", "copy it from where the session was made")
	case err != nil:
		return nil, o.s.failed("read attachment", "", err)
	case blob.ID(b) != id:
		return nil, o.s.problem("read attachment", outcrop.ErrDamaged, "its bytes are not those of "+id, "copy it again from where the session was made")
	}
	return b, nil
}

// Put is store.Objects's.
func (o objects) Put(ctx context.Context, b []byte) (string, error) {
	if len(b) > blob.MaxSize {
		return "", o.s.problem("store attachment", outcrop.ErrRefused, "it is larger than an attachment may be", "")
	}
	db, err := o.s.writer(ctx)
	if err != nil {
		return "", err
	}
	id := blob.ID(b)
	if b == nil {
		b = []byte{}
	}
	err = o.s.transact(ctx, db, "store attachment", "", func(ctx context.Context, c *sql.Conn) error {
		// Bytes that are not those of their id are put right.
		_, err := c.ExecContext(ctx, "INSERT INTO objects (id, data) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data", id, b)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}
