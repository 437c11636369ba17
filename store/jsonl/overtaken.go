package jsonl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

var (
	_ store.Overtaker = (*Store)(nil)
	_ store.Overtaker = (*FileStore)(nil)
)

// Overtaken is store.Overtaker's: the folder has a log of a format that is not
// known.
func (s *Store) Overtaken(ctx context.Context, id string) error {
	f, err := s.find(id)
	if err != nil || f.newer == "" || f.enc == "" {
		return ctx.Err()
	}
	return f.overtaken(id, filepath.Base(f.path()))
}

// Overtaken is store.Overtaker's: the file has the name of a log in a root, and
// one of a later format lies beside it.
func (s *FileStore) Overtaken(ctx context.Context, id string) error {
	f, name, _ := s.laterFile()
	if name == "" {
		return ctx.Err()
	}
	own := filepath.Base(s.real())
	if name == f.newer {
		return f.overtaken(id, own)
	}
	n, _ := formatOf(name)
	return &outcrop.Error{Op: "read", Session: id, Path: filepath.Join(f.dir, name), Code: CodeLaterFormat, Seq: -1, Offset: -1, Err: outcrop.ErrReadOnly,
		Msg:  fmt.Sprintf("a later generation of the log, in format %d of dsh: what is read is %s, which is older", n, own),
		Hint: "name that file; " + forkIt}
}

// overtaken is the error for a log, own, with one of a format that is not known
// beside it.
func (f *folder) overtaken(id, own string) error {
	n, _ := formatOf(f.newer)
	return &outcrop.Error{Op: "read", Session: id, Path: filepath.Join(f.dir, f.newer), Code: "NEWER_GENERATION", Seq: -1, Offset: -1,
		Err:  errors.Join(outcrop.ErrReadOnly, outcrop.ErrUnsupported),
		Msg:  fmt.Sprintf("written by a newer dsh (format %d), and cannot be read: what is read is %s, which is older", n, own),
		Hint: "use the program that wrote it, or a newer version of this one; " + forkIt}
}

const forkIt = "outcrop fork makes a new session of the older log"
