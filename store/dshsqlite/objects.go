package dshsqlite

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

var _ store.Attachments = (*Store)(nil)

// Objects are the attachments that dsh kept beside the file: in attachments/v1
// of the file's folder, of the one above, or of one of Options.Homes. None can
// be put there.
func (s *Store) Objects() store.Objects { return objects{s} }

type objects struct{ s *Store }

// Get is store.Objects's. The first folder that has the object whole counts.
func (o objects) Get(ctx context.Context, id string) ([]byte, error) {
	var worst error
	for _, b := range o.s.blobs {
		data, err := b.Get(ctx, id)
		if err == nil {
			return data, nil
		}
		if worst == nil || errors.Is(worst, outcrop.ErrNotFound) {
			worst = err
		}
	}
	return nil, worst
}

// Put is store.Objects's: it refuses.
func (o objects) Put(context.Context, []byte) (string, error) {
	return "", o.s.problem("store attachment", "", outcrop.ErrReadOnly, "this is "+what+", which is only read",
		"attachments go with a session into your own store: outcrop convert or fork copies both")
}

// Folders are where attachments are looked for.
func (s *Store) Folders() []string {
	out := make([]string, len(s.blobs))
	for i, b := range s.blobs {
		out[i] = filepath.Clean(b.Dir())
	}
	return out
}
