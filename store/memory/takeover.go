package memory

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

var (
	_ store.Taker   = (*Store)(nil)
	_ store.Term    = (*lease)(nil)
	_ store.Epocher = (*lease)(nil)
)

// TakeOver is store.Taker's.
func (s *Store) TakeOver(ctx context.Context, id string) (store.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss := s.sessions[id]
	if ss == nil {
		return nil, problem("open", id, outcrop.CodeSessionNotFound, outcrop.ErrNotFound, "")
	}
	if ss.holder != nil {
		close(ss.holder.lost)
	}
	return s.hold(ss), ctx.Err()
}

func moved(op, id string) error {
	return problem(op, id, "", store.ErrMoved, "another holder took the session over")
}

// Held is store.Term's.
func (l *lease) Held(context.Context) error {
	select {
	case <-l.lost:
		return moved("hold", l.header.ID)
	default:
		return nil
	}
}

// Lost is store.Term's.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Epoch is store.Epocher's.
func (l *lease) Epoch() uint64 { return l.number }
