// Package jsonl keeps sessions as files in a folder, in dsh's layout and bytes.
//
// # Layout
//
//	ROOT/
//	  --home-dev-project--/           ProjectKey(cwd), or _no-cwd
//	    4f2a9c/                       EncodeSegment(id)
//	      session.jsonl.zstd          the log; session.jsonl in a plain root
//	      session.lock                the writer's lock and its holder
//	      session.torn-OFFSET         what a repair cut away at this offset
//	      session.jsonl.zstd.HEX.tmp  a log that is being published, or was when its writer died
//
// Folders are made with mode 0700, files with 0600. The folder names only help
// people: the header says id and cwd, and a log whose header belongs to another
// place is listed as damaged. A root has one encoding, that of its files; a new
// root gets the one that the store was opened with. A log file outside a root is
// a store of its own, see File; its lock, its torn tails and its attachments lie
// beside it, as FILE.lock, FILE.torn-OFFSET and FILE.attachments. The attachments
// of a root lie beside the root, in attachments/v1, see package blob.
//
// A folder with a session.vN.jsonl or session.vN.jsonl.zstd, N from 1 on, holds
// the log in a later format of dsh: the highest one is the session, the files of
// lower ones are what it was before. Formats 1 to 4 are read, and never written;
// of a log in a format that is not known the highest known one is shown, with a
// notice.
//
// # Writing
//
// A log appears whole or not at all: header and first batch go to a temporary
// file, which is synced and then linked to its name, which never replaces a
// file; then the folders are synced, and the first time those above the root too.
// A batch is one write to the open file and one fsync: one zstd frame, or whole
// lines. Before it, the file must be the one that was opened and have the size
// that the last batch left; else nothing is written and the error is
// store.ErrMoved (dsh takes no lock). Before a batch that ends a turn, earlier
// ones that are not durable yet are synced: damage before the end of a turn would
// be no torn tail. Appending never creates a file. A write that fails is cut
// back. A torn tail is cut at the first append, after its bytes were copied to
// session.torn-OFFSET and synced. Opening a log for writing syncs it and its
// folders, since its last writer may have died before it did.
//
// # Lock
//
// The writer holds an exclusive flock on session.lock from before it reads the
// log until it is closed, and writes itself into it: process, host, program and
// time, as JSON from the second byte on (on Windows the first one is locked). A
// holder that leaves empties the file and does not remove it.
package jsonl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/wire"
)

// Options of a store. The zero value is right.
type Options struct {
	// Plain asks for plain logs: a new root is made so, and an existing root
	// with zstd logs is refused where a session would be created. Without it a
	// new root gets zstd logs, and an existing one keeps what it has.
	Plain bool
	// Program names this program to others that find a session locked.
	Program string
	// Now gives Unix milliseconds for the lock's time; nil leaves it out.
	Now func() int64
	// Rand is the randomness of temporary names. Nil: crypto/rand.
	Rand io.Reader
}

// Store is a root folder.
type Store struct {
	root string
	opt  Options
	disk faultfs.FS

	objects *blob.Store
	above   atomic.Bool // the folders above the root were synced

	mu  sync.Mutex
	enc wire.Encoding // of the root, "" while it is not known
}

var (
	_ store.Store        = (*Store)(nil)
	_ store.PrefixCopier = (*Store)(nil)
)

// New opens a root folder, which need not exist: it is made with the first
// session that is stored. A path that is no folder is an error.
func New(root string, o Options) (*Store, error) { return newOn(faultfs.Real, root, o) }

func newOn(disk faultfs.FS, root string, o Options) (*Store, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if fi, err := disk.Stat(abs); err == nil && !fi.IsDir() {
		return nil, &outcrop.Error{Op: "open", Path: abs, Seq: -1, Offset: -1, Err: fs.ErrInvalid,
			Msg: "a store is a folder, and this is a file", Hint: "name the folder that holds the sessions"}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, pathProblem("open", abs, err)
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return &Store{root: abs, opt: o, disk: disk, objects: blob.BesideOn(disk, abs)}, nil
}

// FromAddress opens the root that jsonl:DIR or jsonl+plain:DIR names.
func FromAddress(address string, o Options) (*Store, error) {
	if dir, ok := strings.CutPrefix(address, "jsonl+plain:"); ok && dir != "" {
		o.Plain = true
		return New(dir, o)
	}
	if dir, ok := strings.CutPrefix(address, "jsonl:"); ok && dir != "" {
		o.Plain = false
		return New(dir, o)
	}
	return nil, &outcrop.Error{Op: "open", Seq: -1, Offset: -1, Err: fs.ErrInvalid,
		Msg: fmt.Sprintf("%q is no address of log files", address), Hint: "write jsonl:DIR or jsonl+plain:DIR"}
}

// Address is jsonl:DIR or jsonl+plain:DIR.
func (s *Store) Address() string {
	if s.opt.Plain {
		return "jsonl+plain:" + s.root
	}
	return "jsonl:" + s.root
}

// Root is the folder.
func (s *Store) Root() string { return s.root }

// Close does nothing: a root holds nothing open.
func (s *Store) Close() error { return nil }

// Create is store.Store's. Nothing is written before the first Append.
func (s *Store) Create(ctx context.Context, h outcrop.Header) (store.Lease, error) {
	l, err := s.newLease(h)
	if err != nil {
		return nil, err
	}
	return l, ctx.Err()
}

// newLease is the lease of a log that is not there yet.
func (s *Store) newLease(h outcrop.Header) (*lease, error) {
	enc, err := s.encoding()
	if err != nil {
		return nil, err
	}
	path, err := s.pathFor(h, enc)
	if err != nil {
		return nil, err
	}
	if err := s.free(h.ID); err != nil {
		return nil, err
	}
	return &lease{disk: s.disk, opt: s.opt, header: h, path: path, lockPath: lockIn(filepath.Dir(path)), enc: enc,
		root: s.root, above: &s.above, free: func() error { return s.free(h.ID) }, agrees: func() error { return s.agrees(enc) }}, nil
}

// free answers whether an id can be given to a new session.
func (s *Store) free(id string) error {
	f, err := s.find(id)
	if errors.Is(err, outcrop.ErrNotFound) {
		return nil
	}
	if err != nil && f.dir == "" {
		return err
	}
	return &outcrop.Error{Op: "create", Session: id, Path: f.dir, Code: outcrop.CodeSessionExists, Seq: -1, Offset: -1,
		Err: store.ErrExists, Hint: "open it, or choose another id"}
}

// Acquire is store.Store's.
func (s *Store) Acquire(ctx context.Context, id string) (store.Lease, error) {
	f, err := s.find(id)
	if err != nil {
		return nil, err
	}
	if f.reason != "" {
		return nil, f.problem("open", id)
	}
	l := &lease{disk: s.disk, opt: s.opt, path: f.path(), lockPath: lockIn(f.dir), enc: f.enc, root: s.root}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	if err := s.placed(l.header, id, f); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Read is store.Store's; the value is a *Log. A log whose header belongs to
// another place, or that has a later generation, can be read.
func (s *Store) Read(_ context.Context, id string) (store.Stored, error) {
	f, err := s.find(id)
	if err != nil {
		return nil, err
	}
	if f.enc == "" {
		return nil, f.problem("read", id)
	}
	return openLog(s.disk, f.path(), f.enc)
}

// Put is store.Store's.
func (s *Store) Put(ctx context.Context, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	l, err := s.newLease(h)
	if err != nil {
		return err
	}
	return l.put(ctx, recs)
}
