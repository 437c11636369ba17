package store

import (
	"context"
)

// Listed is an entry of a listing that can be kept and asked for again.
type Listed struct {
	Info Info
	// Place names the entry inside the store.
	Place string
	// Stamp changes when what is stored does. "": the entry must not be kept.
	Stamp string
}

// Cataloguer is a store whose listing need not read again what did not change.
type Cataloguer interface {
	// ListKnown is List without Full. known gives what an earlier ListKnown
	// returned for a place; while the stamp of what is stored there is the same,
	// it is returned as it is. A Header that was kept may lack its line.
	ListKnown(ctx context.Context, known func(place string) (Listed, bool)) ([]Listed, error)
}
