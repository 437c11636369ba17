package desk

import (
	"io"
	"log/slog"

	"github.com/outcrop-dev/outcrop/store"
)

// Sharing is a desk for one of many sessions that a command works on at a time:
// the store is st, which stays open, and whatever would be told to a person is
// told to logger and to notes. The desk that it comes from is not changed.
func (a *Desk) Sharing(st store.Store, logger *slog.Logger, notes io.Writer) *Desk {
	d := *a
	d.shared, d.Logger, d.ErrOut = st, logger, notes
	return &d
}

// Keep makes every store that the desk opens from now on this one.
func (a *Desk) Keep(st store.Store) { a.shared = st }
