package jsonl

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

var (
	_ store.Rewriter = (*Store)(nil)
	_ store.Rewriter = (*FileStore)(nil)
)

type changing = func(outcrop.Header, iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error)

// Rewrite is store.Rewriter's: a temporary file beside the log, synced, takes
// the log's name; then the folder is synced.
func (s *Store) Rewrite(ctx context.Context, id string, change changing) error {
	l, err := s.Acquire(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(l.(*lease).rewrite(ctx, change), l.Close())
}

// Rewrite is store.Rewriter's.
func (s *FileStore) Rewrite(ctx context.Context, id string, change changing) error {
	l, err := s.Acquire(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(l.(*lease).rewrite(ctx, change), l.Close())
}

func (l *lease) rewrite(ctx context.Context, change changing) (err error) {
	recs, err := change(l.header, l.Records())
	if err != nil {
		return store.Located(err, l)
	}
	if l.tail.Torn {
		return &outcrop.Error{Op: "rewrite", Session: l.header.ID, Path: l.path, Seq: -1, Offset: l.tail.Good, Err: outcrop.ErrDamaged,
			Msg: "the log ends in a torn tail, whose bytes would be left aside as they are", Hint: "repair it first: outcrop doctor --repair"}
	}
	n := &newLog{l: l}
	defer func() {
		if n.temp != nil {
			n.temp.Close()
			l.disk.Remove(n.temp.Name())
		}
	}()
	if n.temp, err = createTemp(l.disk, l.path, l.opt.Rand); err != nil {
		return pathProblem("rewrite", l.path, err)
	}
	l.encoder = wire.NewEncoder(l.enc)
	l.encoder.Quick = true
	given := newTally()
	if err := n.write(ctx, given.through(recs)); err != nil {
		return err
	}
	if err := n.compare(given); err != nil {
		return err
	}
	temp := n.temp.Name()
	if err := errors.Join(n.temp.Sync(), n.temp.Close()); err != nil {
		return pathProblem("rewrite", temp, err)
	}
	// dsh takes no lock: what it wrote meanwhile must not be lost.
	if err := l.check(); err != nil {
		return err
	}
	if !movesOpenFiles {
		if err := l.file.Close(); err != nil {
			return pathProblem("rewrite", l.path, err)
		}
		l.file = nil
	}
	if err := l.disk.Rename(temp, l.path); err != nil {
		return pathProblem("rewrite", l.path, err)
	}
	n.temp = nil
	if err := l.disk.SyncDir(filepath.Dir(l.path)); err != nil {
		return l.unsynced(filepath.Dir(l.path), err)
	}
	return nil
}

// Beside names the files that lie beside a log and hold bytes that were cut off
// it: what a repair put aside.
func Beside(logPath string) []string {
	dir := filepath.Dir(logPath)
	stem := logStem
	if base := filepath.Base(logPath); base != logName(wire.Plain) && base != logName(wire.Zstd) {
		stem = base
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if name := e.Name(); len(name) > len(stem)+6 && name[:len(stem)+6] == stem+".torn-" {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}
