// Package memory keeps sessions in memory: the contract of package store
// without a disk, for tests and for programs that keep nothing. It can play a
// full disk and a crash.
package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// Store holds sessions until the process ends. The zero value is not ready; use
// New.
type Store struct {
	mu       sync.Mutex
	name     string
	sessions map[string]*session
	objects  map[string][]byte // by id; never changed
	fail     func(op string) error
	epoch    int // crashes so far
}

type session struct {
	header  outcrop.Header
	records []outcrop.Record
	synced  int
	holder  *lease
	epoch   uint64 // of the last lease
}

var _ store.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	return &Store{name: "memory:", sessions: map[string]*session{}, objects: map[string][]byte{}}
}

// Address is memory:, which no other process can open.
func (s *Store) Address() string { return s.name }

// Close does nothing.
func (s *Store) Close() error { return nil }

// FailWith asks f before each write ("append") and each sync ("sync"): an
// error of it is that call's error, and nothing is written. Nil ends it.
func (s *Store) FailWith(f func(op string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// Crash plays a loss of power: what was not synced is gone, and so are all
// leases.
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	for _, ss := range s.sessions {
		ss.records = slices.Clip(ss.records[:ss.synced])
		ss.holder = nil
	}
}

func problem(op, id string, code outcrop.Code, err error, msg string) error {
	return &outcrop.Error{Op: op, Session: id, Code: code, Seq: -1, Offset: -1, Err: err, Msg: msg}
}

func exists(id string) error {
	return problem("create", id, outcrop.CodeSessionExists, store.ErrExists, "")
}

// Create is store.Store's.
func (s *Store) Create(ctx context.Context, h outcrop.Header) (store.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.ID == "" {
		return nil, problem("create", "", "HEADER_ID", outcrop.ErrRefused, "the session id is empty")
	}
	if s.sessions[h.ID] != nil {
		return nil, exists(h.ID)
	}
	return &lease{s: s, header: h, epoch: s.epoch, number: 1, lost: make(chan struct{})}, ctx.Err()
}

// Acquire is store.Store's.
func (s *Store) Acquire(ctx context.Context, id string) (store.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss := s.sessions[id]
	if ss == nil {
		return nil, problem("open", id, outcrop.CodeSessionNotFound, outcrop.ErrNotFound, "")
	}
	if ss.holder != nil {
		return nil, problem("open", id, "", &store.LockedError{Holder: store.Holder{Program: "this process"}}, "")
	}
	return s.hold(ss), ctx.Err()
}

// hold gives a session to a new holder; the store is locked.
func (s *Store) hold(ss *session) *lease {
	ss.epoch++
	ss.holder = &lease{s: s, header: ss.header, epoch: s.epoch, number: ss.epoch, held: true, lost: make(chan struct{}), in: ss.records}
	return ss.holder
}

// Put is store.Store's.
func (s *Store) Put(ctx context.Context, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	l, err := s.Create(ctx, h)
	if err != nil {
		return err
	}
	var all []outcrop.Record
	for r, err := range recs {
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	if err := l.Append(ctx, slices.Values(all)); err != nil {
		return err
	}
	return errors.Join(l.Sync(ctx), l.Close())
}

// Read is store.Store's.
func (s *Store) Read(_ context.Context, id string) (store.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss := s.sessions[id]
	if ss == nil {
		return nil, problem("read", id, outcrop.CodeSessionNotFound, outcrop.ErrNotFound, "")
	}
	return &stored{ss.header, ss.records}, nil
}

type stored struct {
	header  outcrop.Header
	records []outcrop.Record
}

func (s *stored) Header() outcrop.Header                    { return s.header }
func (s *stored) Path() string                              { return "" }
func (s *stored) Records() iter.Seq2[outcrop.Record, error] { return yieldAll(s.records) }
func (s *stored) Tail() store.Tail                          { return store.Tail{} }
func (s *stored) Close() error                              { return nil }

func yieldAll(recs []outcrop.Record) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// List is store.Store's.
func (s *Store) List(_ context.Context, o store.ListOptions) ([]store.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var infos []store.Info
	for id, ss := range s.sessions {
		in := store.Info{ID: id, CreatedAt: ss.header.CreatedAt, UpdatedAt: ss.header.CreatedAt,
			State: store.StateOK, Header: ss.header}
		if ss.header.Cwd != nil {
			in.Cwd = *ss.header.Cwd
		}
		var sum store.Summary
		for _, r := range ss.records {
			sum.Add(r)
			in.Bytes += int64(len(r.Line()))
		}
		sum.Into(&in)
		if !o.Full {
			in.Turns, in.Title = -1, ""
		}
		if ss.holder != nil {
			in.State, in.Reason = store.StateLocked, "in use by this process"
		}
		infos = append(infos, in)
	}
	store.SortInfos(infos)
	return infos, nil
}

// lease is the right to write one session.
type lease struct {
	s      *Store
	header outcrop.Header
	epoch  int    // of the store: crashes before it
	number uint64 // of the lease
	held   bool   // the session is stored, and was this lease's
	lost   chan struct{}
	in     []outcrop.Record
	dead   error
}

func (l *lease) Header() outcrop.Header                    { return l.header }
func (l *lease) Tail() store.Tail                          { return store.Tail{} }
func (l *lease) Records() iter.Seq2[outcrop.Record, error] { return yieldAll(l.in) }

// may reports why the lease may not write; the store is locked.
func (l *lease) may(op string) error {
	if l.dead == nil && l.epoch != l.s.epoch {
		l.dead = problem(op, l.header.ID, "", store.ErrMoved, "the store crashed")
	}
	if l.dead != nil {
		return l.dead
	}
	if l.s.fail == nil {
		return nil
	}
	err := l.s.fail(op)
	if err != nil && op == "sync" {
		l.dead = problem(op, l.header.ID, "", errors.Join(store.ErrSync, err), err.Error())
		return l.dead
	}
	return err
}

// Append is store.Lease's.
func (l *lease) Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if err := l.may("append"); err != nil {
		return err
	}
	ss := l.s.sessions[l.header.ID]
	first := ss == nil
	switch {
	case first:
		ss = &session{header: l.header, holder: l, epoch: l.number}
	case ss.holder != l && l.held:
		l.dead = moved("append", l.header.ID)
		return l.dead
	case ss.holder != l:
		return exists(l.header.ID)
	}
	next := outcrop.Seq(0)
	if n := len(ss.records); n > 0 {
		next = ss.records[n-1].Last() + 1
	}
	n := len(ss.records)
	for r := range recs {
		if r.Seq != next {
			ss.records = ss.records[:n]
			return problem("append", l.header.ID, "SEQ_GAP", outcrop.ErrRefused, fmt.Sprintf("event %d follows event %d", r.Seq, next-1))
		}
		next = r.Last() + 1
		ss.records = append(ss.records, own(r))
	}
	if first {
		l.s.sessions[l.header.ID], l.held = ss, true
		ss.synced = len(ss.records)
	}
	return nil
}

// own detaches an event from the log that it came from. A run keeps its row,
// which nobody writes.
func own(r outcrop.Record) outcrop.Record {
	if r.Run != nil {
		return r
	}
	if e, err := outcrop.DecodeEvent(r.AppendJSON(nil)); err == nil {
		return outcrop.Record{Event: e}
	}
	return outcrop.Record{Event: r.Clone()}
}

// Sync is store.Lease's.
func (l *lease) Sync(context.Context) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if err := l.may("sync"); err != nil {
		return err
	}
	if ss := l.s.sessions[l.header.ID]; ss != nil && ss.holder == l {
		ss.synced = len(ss.records)
	}
	return nil
}

// Close is store.Lease's.
func (l *lease) Close() error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if ss := l.s.sessions[l.header.ID]; ss != nil && ss.holder == l {
		ss.holder = nil
	}
	if l.dead == nil {
		l.dead = problem("append", l.header.ID, "", store.ErrClosed, "")
	}
	return nil
}
