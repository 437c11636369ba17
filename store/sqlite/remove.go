package sqlite

import (
	"context"
	"database/sql"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
)

var _ store.ObjectRemover = objects{}

// RemoveObject is store.ObjectRemover's.
func (o objects) RemoveObject(ctx context.Context, id string) error {
	if err := blob.Valid(id); err != nil {
		return err
	}
	db, err := o.s.reader(ctx)
	if err != nil || db == nil {
		return err
	}
	if db, err = o.s.writer(ctx); err != nil {
		return err
	}
	return o.s.transact(ctx, db, "remove attachment", "", func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "DELETE FROM objects WHERE id = ?", id)
		return err
	})
}
