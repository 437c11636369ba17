package memory

import (
	"context"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

var _ store.Follower = (*Store)(nil)

// Follow is store.Follower's.
func (s *Store) Follow(_ context.Context, id string) (store.Following, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss := s.sessions[id]
	if ss == nil {
		return nil, problem("read", id, outcrop.CodeSessionNotFound, outcrop.ErrNotFound, "")
	}
	return &following{s: s, header: ss.header}, nil
}

type following struct {
	s      *Store
	header outcrop.Header
	n      int // records that were yielded
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
		f.s.mu.Lock()
		records := f.s.sessions[f.header.ID].records
		f.s.mu.Unlock()
		if len(records) < f.n {
			yield(outcrop.Record{}, problem("read", f.header.ID, "", store.ErrMoved, "the store crashed"))
			return
		}
		for _, r := range records[f.n:] {
			f.n++
			if !yield(r, nil) {
				return
			}
		}
	}
}
