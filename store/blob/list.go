package blob

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"path/filepath"
)

// Object is an entry of a listing.
type Object struct {
	ID   string
	Size int64 // bytes
}

// All lists the objects by their ids, without reading them; files with other
// names are passed over. Memory grows with the largest of the 256 buckets. An
// error ends it.
func (s *Store) All(ctx context.Context) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		objects := filepath.Join(s.dir, "objects")
		buckets, err := s.disk.ReadDir(objects)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(Object{}, problem("list attachments", objects, err, "", ""))
			}
			return
		}
		for _, b := range buckets {
			if !b.IsDir() || len(b.Name()) != 2 {
				continue
			}
			if !s.bucket(ctx, filepath.Join(objects, b.Name()), b.Name(), yield) {
				return
			}
		}
	}
}

func (s *Store) bucket(ctx context.Context, dir, name string, yield func(Object, error) bool) bool {
	if err := context.Cause(ctx); err != nil {
		yield(Object{}, err)
		return false
	}
	entries, err := s.disk.ReadDir(dir)
	if err != nil {
		yield(Object{}, problem("list attachments", dir, err, "", ""))
		return false
	}
	for _, e := range entries {
		if !isHash(e.Name()) || e.Name()[:2] != name || !e.Type().IsRegular() {
			continue
		}
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			yield(Object{}, problem("list attachments", dir, err, "", ""))
			return false
		}
		if !yield(Object{ID: "sha256:" + e.Name(), Size: fi.Size()}, nil) {
			return false
		}
	}
	return true
}
