package store

import (
	"context"
)

// Listed is an entry of a listing that can be kept and asked for again.
type Listed struct {
	// Place names the entry inside the store.
	Place string
	// Stamp changes when what is stored does. "": the entry must not be kept.
	Stamp string
	// Info is nil where what is kept of the place is still so.
	Info *Info
}

// Kept is what a store asks about an entry of an earlier listing.
type Kept struct {
	Stamp string
	ID    string // of its Info, like Path
	Path  string
}

// Cataloguer is a store whose listing need not read again what did not change.
type Cataloguer interface {
	// ListKnown is List without Full. known gives what is kept of the entry that
	// an earlier ListKnown returned for a place, from several goroutines at once;
	// nil: nothing is kept. While the stamp of what is stored there is the same,
	// the entry has no Info.
	ListKnown(ctx context.Context, known func(place string) (Kept, bool)) ([]Listed, error)
}
