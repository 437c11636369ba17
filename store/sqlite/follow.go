package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

var _ store.Follower = (*Store)(nil)

// Follow is store.Follower's.
func (s *Store) Follow(ctx context.Context, id string) (store.Following, error) {
	db, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, s.notFound("read", id)
	}
	in, err := s.find(ctx, db, id)
	if err != nil {
		return nil, err
	}
	return &following{s: s, db: db, session: in, decode: wire.NewLines(id, s.results(db, in.key))}, nil
}

type following struct {
	session
	s      *Store
	db     *sql.DB
	decode *wire.Lines
	seen   outcrop.Seq // events below it were yielded
}

func (f *following) Header() outcrop.Header { return f.header }
func (f *following) Close() error           { return nil }

// Next is store.Following's.
func (f *following) Next(ctx context.Context) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		if err := context.Cause(ctx); err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		now, err := f.s.find(ctx, f.db, f.header.ID)
		switch {
		case errors.Is(err, outcrop.ErrNotFound):
			yield(outcrop.Record{}, f.s.notFound("read", f.header.ID))
			return
		case err != nil:
			yield(outcrop.Record{}, err)
			return
		case now.key != f.key || now.next < f.seen:
			yield(outcrop.Record{}, f.s.sessionProblem("read", f.header.ID, "", store.ErrMoved, "another log is in its place", "follow it anew"))
			return
		}
		for r, err := range f.s.records(f.db, now, f.seen, f.decode) {
			if err == nil {
				f.seen = r.Last() + 1
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

var _ store.Marked = (*following)(nil)

// Mark is store.Marked's: the row of the session and the next seq.
func (f *following) Mark() string { return fmt.Sprintf("sqlite %d %d", f.key, f.seen) }

// Resume is store.Marked's.
func (f *following) Resume(mark string) bool {
	var key, seen int64
	if n, err := fmt.Sscanf(mark, "sqlite %d %d", &key, &seen); n != 2 || err != nil || key != f.key || seen < 0 || seen > int64(f.next) {
		return false
	}
	f.seen = outcrop.Seq(seen)
	return true
}
