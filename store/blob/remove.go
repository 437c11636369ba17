package blob

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/outcrop-dev/outcrop/store"
)

var _ store.ObjectRemover = (*Store)(nil)

// RemoveObject removes an object; that it is gone is durable on return. One that
// is not here is no error.
func (s *Store) RemoveObject(ctx context.Context, id string) error {
	hash, err := parse(id)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	path := s.path(hash)
	switch err := s.disk.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return problem("remove attachment", path, err, "", "check who owns it and its mode")
	}
	if err := s.disk.SyncDir(filepath.Dir(path)); err != nil {
		return problem("remove attachment", path, err, "", "look after the disk")
	}
	return nil
}
