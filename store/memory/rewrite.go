package memory

import (
	"context"
	"errors"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

var _ store.Rewriter = (*Store)(nil)

// Rewrite is store.Rewriter's.
func (s *Store) Rewrite(ctx context.Context, id string, change func(outcrop.Header, iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error)) (err error) {
	lease, err := s.Acquire(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Close()) }()
	recs, err := change(lease.Header(), lease.Records())
	if err != nil {
		return err
	}
	var all []outcrop.Record
	next := outcrop.Seq(0)
	for r, err := range recs {
		if err != nil {
			return err
		}
		if r.Seq != next {
			return problem("rewrite", id, "SEQ_GAP", outcrop.ErrRefused, "the new log has a gap")
		}
		next = r.Last() + 1
		all = append(all, own(r))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ss := s.sessions[id]
	ss.records, ss.synced = all, len(all)
	return nil
}
