package jetstream

import (
	"context"
	"errors"

	"github.com/outcrop-dev/outcrop/store"
)

var (
	_ store.Looker  = (*Store)(nil)
	_ store.Taker   = (*Store)(nil)
	_ store.Term    = (*Lease)(nil)
	_ store.Epocher = (*Lease)(nil)
)

// Look is store.Looker's: what List says about one session, from its last
// message.
func (s *Store) Look(ctx context.Context, id string) (store.Info, error) {
	lk, err := s.link(ctx)
	if err != nil {
		return store.Info{}, err
	}
	m, err := lk.lastMessage(ctx, id)
	switch {
	case errors.Is(err, errNoMessage), err == nil && m.Kind == kindRemove:
		return store.Info{}, s.notFound("find", id)
	case err != nil:
		return store.Info{}, s.failed("find", id, err)
	}
	h := Head{ID: id, Title: m.Head.Title, Turns: m.Head.Turns, Events: m.Head.Events, Bytes: m.Head.Bytes, UpdatedAt: m.Head.Updated,
		OpenTurn: m.Head.Open, Epoch: m.Epoch, Owner: m.Owner, last: m}
	if h.Owner != "" {
		if h.Holder, h.Alive, err = lk.alive(ctx, h.Owner); err != nil {
			return store.Info{}, s.failed("find", id, err)
		}
	}
	h.Header, h.Problem = lk.headerOf(ctx, id, &h.last)
	if h.Problem != nil && ctx.Err() != nil {
		return store.Info{}, context.Cause(ctx)
	}
	return s.info(&h), nil
}
