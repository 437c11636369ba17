package jsonl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// FileStore is one log file outside a root: a store that holds one session. Its
// folder may belong to somebody else, so that its lock and torn tails carry the
// file's name.
type FileStore struct {
	path string
	enc  wire.Encoding
	opt  Options
	disk faultfs.FS
}

var _ store.Store = (*FileStore)(nil)

// File is the store of one log file, whose ending says its encoding. The file
// need not exist; Create and Put make it.
func File(path string, o Options) (*FileStore, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	enc, ok := wire.EncodingOf(abs)
	if !ok {
		return nil, &outcrop.Error{Op: "open", Path: abs, Code: "FILE_KIND", Seq: -1, Offset: -1, Err: outcrop.ErrUnsupported,
			Msg: "the ending says nothing about how the log is stored", Hint: "a log file ends in .jsonl or .jsonl.zstd; outcrop import takes one of any name"}
	}
	return FileAs(abs, enc, o)
}

// FileAs is File for a log whose name says nothing about its encoding, such as a
// backup.
func FileAs(path string, enc wire.Encoding, o Options) (*FileStore, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return &FileStore{path: abs, enc: enc, opt: o, disk: faultfs.Real}, nil
}

// OpenFile continues the session of one log file.
func OpenFile(ctx context.Context, path string, o Options, lo store.Options) (*store.Live, error) {
	s, err := File(path, o)
	if err != nil {
		return nil, err
	}
	lease, err := s.Acquire(ctx, "")
	if err != nil {
		return nil, err
	}
	return store.Take(ctx, lease, lo)
}

// ReadFile opens one log file for reading.
func ReadFile(path string) (*Log, error) {
	s, err := File(path, Options{})
	if err != nil {
		return nil, err
	}
	return openLog(s.disk, s.path, s.enc)
}

// Address is the path.
func (s *FileStore) Address() string { return s.path }

// ID is the id that the file's header names.
func (s *FileStore) ID() (string, error) {
	l, err := openLog(s.disk, s.path, s.enc)
	if err != nil {
		return "", err
	}
	return l.Header().ID, l.Close()
}

// Close does nothing: the store holds nothing open.
func (s *FileStore) Close() error { return nil }

// Create is store.Store's.
func (s *FileStore) Create(ctx context.Context, h outcrop.Header) (store.Lease, error) {
	l, err := s.newLease(h)
	if err != nil {
		return nil, err
	}
	return l, ctx.Err()
}

func (s *FileStore) newLease(h outcrop.Header) (*lease, error) {
	l := s.lease()
	l.header = h
	switch _, err := s.disk.Lstat(s.path); {
	case err == nil:
		return nil, l.exists()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, pathProblem("create", s.path, err)
	}
	return l, nil
}

func (s *FileStore) lease() *lease {
	return &lease{disk: s.disk, opt: s.opt, path: s.path, lockPath: s.path + ".lock", enc: s.enc}
}

// Acquire is store.Store's. An empty id stands for the session in the file.
func (s *FileStore) Acquire(ctx context.Context, id string) (store.Lease, error) {
	// Without a log there is nothing to lock.
	in, err := openLog(s.disk, s.path, s.enc)
	if err != nil {
		return nil, s.absent(id, err)
	}
	h := in.Header()
	name := h.ID
	if err := in.Close(); err != nil {
		return nil, err
	}
	if id != "" && id != name {
		return nil, s.other(id, name)
	}
	if h.Format > 0 {
		return nil, later("open", name, s.path, h.Format)
	}
	if _, name, newer := s.laterFile(); name != "" {
		f := folder{dir: s.path, state: folderNewer, reason: name + " beside it is a newer generation of the log"}
		e := f.problem("open", h.ID).(*outcrop.Error)
		if !newer {
			e.Err, e.Code, e.Hint = outcrop.ErrReadOnly, CodeLaterFormat, "name that file; "+goOn
		}
		return nil, e
	}
	l := s.lease()
	l.path = s.real()
	l.lockPath, l.root = s.lockFor(h)
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// real is the path of the file itself when the store's path leads to it through
// symbolic links: there is one lock for one log, whatever way leads to it.
func (s *FileStore) real() string {
	if p, err := filepath.EvalSymlinks(s.path); err == nil {
		return p
	}
	return s.path
}

// lockFor is the lock of the file when it holds the session of h, and the root
// that it lies in, "" for none.
func (s *FileStore) lockFor(h outcrop.Header) (lock, root string) {
	p := s.real()
	for _, way := range [...]string{p, s.path} {
		if root, ok := inRoot(way, h, s.enc); ok {
			return lockIn(filepath.Dir(p)), root
		}
	}
	return p + ".lock", ""
}

// inRoot reports whether a path is where a root has the log of this session,
// and in which root. Then the log is locked as the root locks it.
func inRoot(path string, h outcrop.Header, enc wire.Encoding) (root string, ok bool) {
	project := filepath.Dir(filepath.Dir(path))
	place := Store{root: filepath.Dir(project)}
	want, err := place.pathFor(h, enc)
	if format, ok := FormatOf(path); ok && h.Format == int64(format) {
		want = filepath.Join(filepath.Dir(want), filepath.Base(path))
	}
	return place.root, err == nil && want == path
}

// laterFile names a log of a later format beside a file that has the name of a
// log in a root; newer when it is of one that is not known. f is the folder.
func (s *FileStore) laterFile() (f folder, name string, newer bool) {
	p := s.real()
	own, ok := FormatOf(p)
	if !ok {
		return f, "", false
	}
	f, _, err := lookIn(s.disk, filepath.Dir(p))
	n, _ := formatOf(f.newer)
	switch {
	case err != nil:
		return f, "", false
	case f.newer != "" && n > own:
		return f, f.newer, true
	case f.format > own && f.enc != "":
		return f, filepath.Base(f.path()), false
	}
	return f, "", false
}

// Read is store.Store's; the value is a *Log. An empty id stands for the
// session in the file.
func (s *FileStore) Read(_ context.Context, id string) (store.Stored, error) {
	in, err := openLog(s.disk, s.path, s.enc)
	if err != nil {
		return nil, s.absent(id, err)
	}
	if name := in.Header().ID; id != "" && id != name {
		return nil, errors.Join(s.other(id, name), in.Close())
	}
	return in, nil
}

// absent makes a missing file a missing session.
func (s *FileStore) absent(id string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &outcrop.Error{Op: "find", Session: id, Path: s.path, Code: outcrop.CodeSessionNotFound, Seq: -1, Offset: -1,
		Err: errors.Join(outcrop.ErrNotFound, err), Msg: "there is no such file"}
}

func (s *FileStore) other(id, name string) error {
	return &outcrop.Error{Op: "find", Session: id, Path: s.path, Code: outcrop.CodeSessionNotFound, Seq: -1, Offset: -1,
		Err: outcrop.ErrNotFound, Msg: fmt.Sprintf("the file holds session %q, not %q", name, id)}
}

// Put is store.Store's.
func (s *FileStore) Put(ctx context.Context, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	l, err := s.newLease(h)
	if err != nil {
		return err
	}
	return l.put(ctx, recs)
}

// List is store.Store's: one entry, or none when there is no file.
func (s *FileStore) List(ctx context.Context, o store.ListOptions) ([]store.Info, error) {
	if _, err := s.disk.Stat(s.path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lk := newLooker(s.disk, o)
	in := lk.file(s.path, s.enc)
	lock, _ := s.lockFor(in.Header)
	lk.locked(&in, lock)
	return []store.Info{in}, ctx.Err()
}
