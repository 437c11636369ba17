// Package dshsqlite reads the SQLite files in which DeepSeek Harness (dsh) kept
// sessions up to its version 0.1.2: a store.Store that nothing can be written to.
//
// # Format
//
// The facts are those of dsh's package session-persistence-sqlite. A file has the
// application id 0x44534850 ("DSHP"), its schema version in user_version, and
// three STRICT tables:
//
//	persistence_state  singleton, store_id
//	sessions           id, version, created_at, cwd, parent_session, seed_length,
//	                   origin, delegation_depth, agent_preset, incarnation, revision
//	events             session_id, seq, type, time, data, source_event_seqs,
//	                   surface_op, and from 15 on ignorable
//
// In the schemas 14 and 15 a row is one event, and its data, sources and marker
// are JSON text. In 17 data may be a zstd frame (BLOB), the sources are a BLOB of
// variable-length integers, and a row of type text-chunks, reasoning-chunks or
// tool-call-chunks whose ignorable is 0 stands for several assistant/chunk
// events, as a packed row of a log file does. A file of any other schema is named
// and refused.
//
// A row becomes the line that dsh's log file would have: members in the order
// type, seq, time, data, sourceEventSeqs, surfaceOp, ignorable. data goes through
// byte for byte, so a copy in another store has the same events.
//
// # What is damaged
//
// The rule for the end of a log is that of log files: from the first bad row on
// (no JSON, a broken frame, a gap in the seqs) the tail is torn when no turn/end
// that can be read lies at or behind it, and is left out; else the log is
// damaged, and what lies before can be read. A session whose own row is out of
// contract is listed with its reason, and the others are read.
//
// # What is never changed
//
// The file is opened by package foreigndb: neither it nor its write-ahead log is
// written, also while dsh has it open. Create, Acquire and Put answer
// outcrop.ErrReadOnly and say how to go on.
package dshsqlite

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/foreigndb"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
)

// ApplicationID marks a file as dsh's store of sessions: "DSHP".
const ApplicationID = 0x44534850

// Schemas are the versions of a file that are read.
var Schemas = [...]int64{14, 15, 17}

// Options of a store. The zero value is right.
type Options struct {
	// Homes are folders in which dsh may have kept attachments, besides the one
	// that the file is in and the one above: each holds attachments/v1.
	Homes []string
}

// Store is one file.
type Store struct {
	path  string
	blobs []*blob.Store

	mu     sync.Mutex
	file   *lent
	closed bool
}

var _ store.ReadOnly = (*Store)(nil)

// New names the file of a store; it is opened when something is asked of it.
func New(path string, o Options) (*Store, error) {
	if path == "" {
		return nil, fmt.Errorf("dsh sqlite: %w: the path is empty", outcrop.ErrRefused)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: abs}
	dir := filepath.Dir(abs)
	seen := map[string]bool{}
	for _, home := range append([]string{dir, filepath.Dir(dir)}, o.Homes...) {
		if home != "" && !seen[home] {
			seen[home] = true
			s.blobs = append(s.blobs, blob.Open(filepath.Join(home, "attachments", "v1")))
		}
	}
	return s, nil
}

// Address is sqlite: and the path.
func (s *Store) Address() string { return "sqlite:" + s.path }

// ReadOnly is store.ReadOnly's.
func (s *Store) ReadOnly() string { return what }

const what = "a store of DeepSeek Harness"

// Path is the file.
func (s *Store) Path() string { return s.path }

// lent is an open file and how many read from it; the last one closes it when it
// is not the store's any more.
type lent struct {
	*foreigndb.File
	users int
	old   bool // another one took its place
}

// open lends the file as it is now. The caller gives it back.
func (s *Store) open(ctx context.Context) (*lent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, s.problem("open", "", store.ErrClosed, "the store is closed", "")
	}
	if s.file != nil && s.file.Moved() {
		s.drop()
	}
	if s.file == nil {
		f, err := foreigndb.Open(ctx, s.path)
		if err != nil {
			return nil, err
		}
		if err := s.check(f.Identity()); err != nil {
			f.Close()
			return nil, err
		}
		s.file = &lent{File: f}
	}
	s.file.users++
	return s.file, nil
}

// drop lets the present file go. s.mu is held.
func (s *Store) drop() error {
	f := s.file
	s.file = nil
	if f == nil {
		return nil
	}
	f.old = true
	if f.users == 0 {
		return f.Close()
	}
	return nil
}

// back takes a file back.
func (s *Store) back(f *lent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.old && f.users == 0 {
		return f.Close()
	}
	return nil
}

// check refuses what is no file of dsh's that is read here.
func (s *Store) check(id foreigndb.Identity) error {
	if id.ApplicationID != ApplicationID {
		return s.problem("open", "", outcrop.ErrUnsupported, "it is no store of DeepSeek Harness: "+id.String(), "name another file; nothing was changed")
	}
	for _, v := range Schemas {
		if id.UserVersion != v {
			continue
		}
		for _, table := range [...]string{"sessions", "events"} {
			if !id.Has(table) {
				return s.problem("open", "", outcrop.ErrDamaged, "it is "+what+" that lacks the table "+table, "restore the file from a copy, with its -wal")
			}
		}
		return nil
	}
	return s.problem("open", "", outcrop.ErrUnsupported,
		fmt.Sprintf("it is %s with schema version %d; this version reads 14, 15 and 17", what, id.UserVersion),
		"read it with the dsh that wrote it; nothing was changed")
}

// Close is store.Store's.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.drop()
}

// Create is store.Store's: it refuses.
func (s *Store) Create(_ context.Context, h outcrop.Header) (store.Lease, error) {
	return nil, s.readOnly("create", h.ID)
}

// Acquire is store.Store's: it refuses a session that is there.
func (s *Store) Acquire(ctx context.Context, id string) (store.Lease, error) {
	sd, err := s.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	sd.Close()
	return nil, s.readOnly("open", id)
}

// Put is store.Store's: it refuses.
func (s *Store) Put(_ context.Context, h outcrop.Header, _ iter.Seq2[outcrop.Record, error]) error {
	return s.readOnly("put", h.ID)
}

func (s *Store) readOnly(op, id string) error {
	return s.problem(op, id, outcrop.ErrReadOnly, "this is "+what+", which is only read",
		"outcrop run --session goes on in a new session of your own store; outcrop fork and outcrop convert copy one there")
}

func (s *Store) problem(op, id string, err error, msg, hint string) *outcrop.Error {
	return &outcrop.Error{Op: op, Session: id, Path: s.path, Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint}
}

func (s *Store) notFound(op, id string) error {
	e := s.problem(op, id, outcrop.ErrNotFound, fmt.Sprintf("no session %q", id), "")
	e.Code = outcrop.CodeSessionNotFound
	return e
}

// damaged is an error about a session's rows; seq is -1 for its own row.
func (s *Store) damaged(id string, seq outcrop.Seq, code outcrop.Code, msg string) *outcrop.Error {
	e := s.problem("read", id, outcrop.ErrDamaged, msg, "")
	e.Seq, e.Code = seq, code
	return e
}
