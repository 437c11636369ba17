package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Forget takes a session of a store out of the index, as Update does with one
// that is gone. One that is not in it is no error. Parts of its text may stay
// in the file until it is used for something else: to be rid of them delete the
// file.
func (ix *Index) Forget(ctx context.Context, address, id string) error {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	var key int64
	err := ix.db.QueryRowContext(ctx, "SELECT key FROM sessions WHERE store = ? AND id = ?", address, id).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	return ix.forget(ctx, key)
}
