// Package sqlite keeps sessions in one SQLite file.
//
//	sessions  key, id, header, and what a listing shows of the log
//	events    one row an event, or one for a run of chunk deltas
//	objects   attachments, by their digest
//
// A row of events holds the members of the line that a log file would have:
//
//	session, seq       which log, and the seq of the (first) event
//	count              1, or the number of events that a packed row stands for
//	type, time         of the event; of a packed row its name and first time
//	data               the bytes of data, as they came
//	source_event_seqs  the list as JSON text; NULL when absent, [] when known empty
//	surface_op         the marker as JSON text; NULL when absent
//	ignorable          1 or NULL
//	line               NULL; the whole line where the members alone do not give
//	                   it back byte for byte (another order, unknown members)
//
// The file has an application_id and a user_version of ours. A file of any
// other version is refused by name before anything is written to it, and
// nothing is ever migrated: convert, of the version that wrote it, copies its
// sessions out.
//
// # Durability
//
// The journal is a write-ahead log and synchronous is FULL, so a batch is one
// transaction and durable when Append returns. A batch is all there or not at
// all: there are no torn tails. Writes begin as writes (BEGIN IMMEDIATE) and wait
// for other writers for Options.Busy; after that the error says so and the batch
// stays with the caller. A cancelled context is looked at before a transaction
// and not inside. After a failed sync (store.ErrSync) this process does not write
// the file any more.
//
// A new file on a file system of several machines, or in a folder that cannot
// hold the log's files (-wal, -shm), gets a rollback journal, with the same
// promise, and Options.Logger hears of it. A file with a write-ahead log that
// lies in such a folder is read as one that nobody changes, unless a log with
// events is beside it, and is not written.
//
// A copy of the file alone is what the database was at its last checkpoint; the
// -wal file belongs to it.
//
// # One writer
//
// A session's writer holds a lock file in FILE.locks, which the system frees
// when the process ends, and writes under an epoch that each opening raises in
// its first transaction. A second writer is refused with the holder's name; one
// whose lock was lost finds another epoch or another end of the log and gets
// store.ErrMoved.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver called sqlite

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
)

// Options of a store. The zero value is right.
type Options struct {
	// Busy is how long a write waits for another writer; 0 means 5 seconds.
	Busy time.Duration
	// Program and Now are written into locks, for people: who holds a session,
	// and since when, in Unix milliseconds.
	Program string
	Now     func() int64
	// Logger hears when there is no write-ahead log; nil is silent.
	Logger *slog.Logger

	// fail makes writes and syncs fail in tests.
	fail func(op string) error
	// remote names the file system of a folder when several machines may have
	// it at once, else "".
	remote func(dir string) string
}

// Store is one file. It is made by the first session that is stored in it.
type Store struct {
	path string
	opt  Options

	mu     sync.Mutex
	write  *sql.DB // one connection
	read   *sql.DB
	closed bool
	sick   atomic.Pointer[outcrop.Error] // a sync failed: nothing is written any more
}

var _ store.Store = (*Store)(nil)

// New names the file of a store. It neither opens nor makes it.
func New(path string, o Options) (*Store, error) {
	if path == "" {
		return nil, fmt.Errorf("sqlite: %w: the path is empty", outcrop.ErrRefused)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if o.Busy <= 0 {
		o.Busy = 5 * time.Second
	}
	if o.remote == nil {
		o.remote = remote
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{path: abs, opt: o}, nil
}

// Address is sqlite: and the path.
func (s *Store) Address() string { return "sqlite:" + s.path }

// Close is store.Store's.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	s.read, s.write = nil, nil
	return errors.Join(errs...)
}

// reader opens the file for reading; nil without an error when there is none.
func (s *Store) reader(ctx context.Context) (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, s.problem("open", store.ErrClosed, "the store is closed", "")
	case s.read != nil:
		return s.read, nil
	}
	fi, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, s.problem("open", err, "", "")
	case !fi.Mode().IsRegular():
		return nil, s.problem("open", outcrop.ErrRefused, "it is no regular file", "name the file of a database")
	case fi.Size() == 0:
		return nil, nil
	}
	// Who reads one log may have to look into it again meanwhile.
	db, err := s.open("ro", 0)
	if err != nil {
		return nil, err
	}
	st, err := s.check(ctx, db)
	if err != nil && s.still(err) {
		db.Close()
		if db, err = s.open("ro&immutable=1", 0); err != nil {
			return nil, err
		}
		st, err = s.check(ctx, db)
	}
	if err != nil || st == empty {
		// An empty one is perhaps being made.
		return nil, errors.Join(err, db.Close())
	}
	s.read = db
	return db, nil
}

// writer opens the file for writing, and makes it when there is none.
func (s *Store) writer(ctx context.Context) (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, s.problem("open", store.ErrClosed, "the store is closed", "")
	}
	if e := s.sick.Load(); e != nil {
		return nil, e
	}
	if s.write != nil {
		return s.write, nil
	}
	if err := s.make(); err != nil {
		return nil, err
	}
	wal, where := true, ""
	if where = s.opt.remote(filepath.Dir(s.path)); where != "" {
		wal = false
	}
	db, err := s.open("rw", 1)
	if err == nil {
		err = s.ready(ctx, db, wal)
	}
	if errors.Is(err, errNoLog) {
		db.Close()
		wal = false
		if err = s.withoutLog(ctx); err == nil {
			db, err = s.open("rw", 1)
		}
		if err == nil {
			err = s.ready(ctx, db, wal)
		}
	}
	var mode string
	if err == nil {
		err = db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	}
	if err != nil {
		if db != nil {
			db.Close()
		}
		return nil, s.failed("open", "", err)
	}
	switch {
	case mode != "wal":
		s.opt.Logger.Warn("no write-ahead log here: the database uses a rollback journal, readers and writers wait for each other", "path", s.path, "mode", mode)
	case where != "":
		s.opt.Logger.Warn("a database with a write-ahead log is damaged when two machines use it at once", "path", s.path, "file system", where)
	}
	s.write = db
	return db, nil
}

// still reports whether a file that cannot be opened as it is can be read as one
// that nobody writes: its folder cannot hold the files of a write-ahead log, and
// there is none that would have to be read.
func (s *Store) still(err error) bool {
	if !cannotOpen(err) {
		return false
	}
	if fi, err := os.Stat(s.path + "-wal"); err == nil && fi.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	s.opt.Logger.Warn("the folder of the database cannot hold a write-ahead log: it is read as a file that nobody changes", "path", s.path)
	return true
}

// make makes an empty file for nobody else to read, and its folder, durably;
// both stay as they are when they are there. A file that is there is not opened:
// closing it again would free the locks that this process has on it.
func (s *Store) make() error {
	if _, err := os.Stat(s.path); err == nil {
		return nil
	}
	if _, err := faultfs.MakeFolders(faultfs.Real, filepath.Dir(s.path)); err != nil {
		return s.problem("make", err, "", "")
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return s.problem("make", err, "", "a session is continued only where the file can be written; it can be read")
	}
	if err := errors.Join(f.Close(), faultfs.SyncAbove(faultfs.Real, s.path)); err != nil {
		return s.problem("make", err, "", "")
	}
	return nil
}

// open makes the connections. Every one of them gets all settings from the
// name of the source: what is set by a statement reaches one connection only.
func (s *Store) open(mode string, conns int, more ...string) (*sql.DB, error) {
	q := url.Values{}
	for _, p := range append(more,
		fmt.Sprintf("busy_timeout(%d)", s.opt.Busy.Milliseconds()), "foreign_keys(1)", "synchronous(FULL)", "trusted_schema(0)", "mmap_size(0)",
		// On macOS a sync reaches the disk only so.
		"fullfsync(1)", "checkpoint_fullfsync(1)",
	) {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: "mode=" + mode + "&" + q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, s.problem("open", err, "", "")
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(max(conns, 4))
	return db, nil
}

func (s *Store) problem(op string, err error, msg, hint string) error {
	return &outcrop.Error{Op: op, Path: s.path, Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint}
}

func (s *Store) sessionProblem(op, id string, code outcrop.Code, err error, msg, hint string) *outcrop.Error {
	return &outcrop.Error{Op: op, Session: id, Path: s.path, Code: code, Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint}
}

func (s *Store) notFound(op, id string) error {
	return s.sessionProblem(op, id, outcrop.CodeSessionNotFound, outcrop.ErrNotFound, fmt.Sprintf("no session %q", id), "")
}

func (s *Store) exists(id string) error {
	return s.sessionProblem("create", id, outcrop.CodeSessionExists, store.ErrExists, "", "")
}
