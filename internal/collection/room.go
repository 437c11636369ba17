package collection

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"path/filepath"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// Room is what things take, in bytes of files.
type Room struct {
	Sessions    int64 // logs and what lies beside them
	Spill       int64 // whole outputs of tools, also of sessions that are gone
	Attachments int64
	Trash       int64
	Archive     int64
	Index       int64
	Catalogue   int64
}

// Total is all of it.
func (r Room) Total() int64 {
	return r.Sessions + r.Spill + r.Attachments + r.Trash + r.Archive + r.Index + r.Catalogue
}

// SessionRoom is what one session takes: its log with what lies beside it, and
// the whole outputs of its tools. Attachments belong to the store.
func (c *Collection) SessionRoom(e *Entry) (log, spill int64, err error) {
	log = e.Bytes
	if _, files := c.st.(*jsonl.Store); files && e.Path != "" {
		dir := e.Path
		if fi, err := c.opt.Disk.Lstat(dir); err == nil && !fi.IsDir() {
			dir = filepath.Dir(dir)
		}
		if e.ID != "" {
			if log, err = c.size(dir); err != nil {
				return 0, 0, err
			}
		}
	}
	if e.ID != "" && c.opt.State != "" {
		spill, err = c.size(c.SpillFolder(e.ID))
	}
	return log, spill, err
}

// Room is what everything besides the sessions of the store takes.
func (c *Collection) Room(ctx context.Context) (r Room, err error) {
	if all, ok := store.ObjectsOf(c.st).(interface {
		All(context.Context) iter.Seq2[blob.Object, error]
	}); ok {
		for o, err := range all.All(ctx) {
			if err != nil {
				return r, err
			}
			r.Attachments += o.Size
		}
	}
	if c.opt.State == "" {
		return r, nil
	}
	for _, part := range []struct {
		to   *int64
		path string
	}{
		{&r.Spill, filepath.Join(c.opt.State, "output")}, {&r.Trash, c.Trash().dir}, {&r.Archive, c.Archive().dir},
		{&r.Index, c.IndexFile()}, {&r.Index, c.IndexFile() + "-wal"}, {&r.Index, c.IndexFile() + "-shm"},
		{&r.Catalogue, filepath.Join(c.opt.State, "catalogue")},
	} {
		n, err := c.size(part.path)
		if err != nil {
			return r, err
		}
		*part.to += n
	}
	return r, ctx.Err()
}

// size is the bytes of a file, or of all files below a folder; links are not
// followed, and what is not there takes nothing.
func (c *Collection) size(path string) (n int64, err error) {
	fi, err := c.opt.Disk.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if !fi.IsDir() {
		if fi.Mode().IsRegular() {
			n = fi.Size()
		}
		return n, nil
	}
	entries, err := c.opt.Disk.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		m, err := c.size(filepath.Join(path, e.Name()))
		if err != nil {
			return 0, err
		}
		n += m
	}
	return n, nil
}
