package jetstream

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

var _ store.Mover = (*Store)(nil)

// movedLog is the log file that a session which was handed over is.
const movedLog = "session.jsonl.zstd"

func movedFile(dir string) (*jsonl.FileStore, error) {
	return jsonl.File(filepath.Join(dir, movedLog), jsonl.Options{})
}

// held is a session that this worker owns in order to move it.
type held struct{ l *Lease }

// Hold is store.Mover's. A session whose last message cannot be read is not
// handed over: the folder would not be the whole of it.
func (s *Store) Hold(ctx context.Context, id string) (store.Held, error) {
	l, err := s.acquire(ctx, id, s.opt.TakeOver)
	if err != nil {
		return nil, err
	}
	return &held{l}, nil
}

// Place is store.Held's: a realm has no places.
func (h *held) Place() string { return "" }

// Close is store.Held's.
func (h *held) Close() error { return h.l.Close() }

// HandOver is store.Held's: the session becomes a log file in dir, compared
// before a message is removed.
func (h *held) HandOver(ctx context.Context, dir string) error {
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return err
	}
	to, err := movedFile(part)
	if err != nil {
		return err
	}
	id := h.l.header.ID
	if err := to.Put(ctx, h.l.header, h.l.Records()); err != nil {
		return store.Problem("move", id, err, "", "")
	}
	if err := os.Remove(filepath.Join(part, movedLog+".lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		return err
	}
	if err := faultfs.Real.SyncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := h.l.remove(ctx); err != nil {
		return h.l.s.failed("move", id, err)
	}
	return nil
}

// TakeBack is store.Mover's.
func (s *Store) TakeBack(ctx context.Context, id, place, dir string) error {
	there, err := s.Holds(ctx, id, place, dir)
	if err != nil || there {
		return err
	}
	from, err := movedFile(dir)
	if err != nil {
		return err
	}
	return store.Copy(ctx, s, from, id)
}

// Holds is store.Mover's.
func (s *Store) Holds(ctx context.Context, id, _, dir string) (bool, error) {
	here, err := s.Read(ctx, id)
	if errors.Is(err, outcrop.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer here.Close()
	file, err := movedFile(dir)
	if err != nil {
		return false, err
	}
	moved, err := file.Read(ctx, id)
	if err != nil {
		return false, err
	}
	defer moved.Close()
	var want, got store.Digest
	for r, err := range moved.Records() {
		if err != nil {
			return false, err
		}
		want.Add(r)
	}
	for r, err := range here.Records() {
		if err != nil || got.Len() >= want.Len() {
			break
		}
		got.Add(r)
	}
	return got.Len() == want.Len() && got.Sum() == want.Sum(), nil
}
