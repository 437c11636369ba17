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
// transaction and durable when Append returns. Where the medium has no shared
// memory for a write-ahead log, a rollback journal is used, with the same
// promise. A batch is all there or not at all: there are no torn tails. Writes
// begin as writes (BEGIN IMMEDIATE) and wait for other writers for
// Options.Busy; after that the error says so and the batch stays with the
// caller. A cancelled context is looked at before a transaction and not inside.
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
	"time"

	_ "modernc.org/sqlite" // the driver called sqlite

	"github.com/outcrop-dev/outcrop"
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
}

// Store is one file. It is made by the first session that is stored in it.
type Store struct {
	path string
	opt  Options

	mu     sync.Mutex
	write  *sql.DB // one connection
	read   *sql.DB
	closed bool
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
	if _, err := s.check(ctx, db); err != nil {
		db.Close()
		return nil, err
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
	if s.write != nil {
		return s.write, nil
	}
	if err := s.make(); err != nil {
		return nil, err
	}
	db, err := s.open("rw", 1)
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx, db); err != nil {
		db.Close()
		return nil, err
	}
	s.write = db
	return db, nil
}

// make makes an empty file for nobody else to read, and its folder; both stay
// as they are when they are there.
func (s *Store) make() error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return s.problem("make", err, "", "")
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return s.problem("open", err, "", "a session is continued only where the file can be written; it can be read")
	}
	return f.Close()
}

// open makes the connections. Every one of them gets all settings from the
// name of the source: what is set by a statement reaches one connection only.
func (s *Store) open(mode string, conns int) (*sql.DB, error) {
	q := url.Values{"mode": {mode}, "_txlock": {"immediate"}}
	for _, p := range []string{
		fmt.Sprintf("busy_timeout(%d)", s.opt.Busy.Milliseconds()), "foreign_keys(1)", "synchronous(FULL)", "trusted_schema(0)", "mmap_size(0)",
	} {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}
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
