package jetstream

import (
	"context"
	"errors"
	"iter"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// purge removes the messages of a session below a sequence of the stream, and the
// objects that they name.
func (lk *link) purge(ctx context.Context, id string, below uint64) error {
	stream, subject := lk.realm.stream(lk.realm.shard(id)), lk.realm.subject(id)
	// Objects go last: a reader that is still at the messages finds them.
	var named []piece
	err := lk.fetch(ctx, stream, subject, 1, below-1, func(r raw) bool {
		if m, err := parseMessage(r.Header, r.Data, false); err == nil && m.Refs {
			if ps, err := parseManifest(m.Body, m.Count); err == nil {
				named = append(named, ps...)
			}
		}
		return true
	})
	if err != nil && !errors.Is(err, errNoMessage) {
		return err
	}
	err = lk.try(ctx, func(ctx context.Context) error {
		st, err := lk.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		return st.Purge(ctx, natsjs.WithPurgeSubject(subject), natsjs.WithPurgeSequence(below))
	})
	if err != nil {
		return err
	}
	for _, p := range named {
		if err := lk.removeObject(ctx, p.Object); err != nil {
			return err
		}
	}
	return nil
}

// remove ends a session for good: a remove message behind its last one, after
// which nobody can write it, then everything is purged.
func (l *Lease) remove(ctx context.Context) error {
	m := message{Kind: kindRemove, Seq: outcrop.Seq(l.head.Events), Epoch: l.epoch, Gen: l.gen, Chain: l.chain, Head: l.head}
	seq, err := l.lk.settle(ctx, l.lk.prepare(l.header.ID, m, l.last))
	if err != nil {
		return err
	}
	l.end(l.s.sessionProblem("append", l.header.ID, "", store.ErrMoved, "the session was removed", ""))
	// Until it is purged the session is a name that can be given anew.
	return l.lk.purge(ctx, l.header.ID, seq+1)
}

var _ store.Rewriter = (*Store)(nil)

// Rewrite is store.Rewriter's: one message with the whole new log, which readers
// take as its beginning, then everything before it is purged. When that does not
// succeed a warning says so, and the next Rewrite or GC does it: until then the
// old bytes are still in the stream, though no reader gives them.
func (s *Store) Rewrite(ctx context.Context, id string, change func(outcrop.Header, iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error)) (err error) {
	l, err := s.acquire(ctx, id, s.opt.TakeOver)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	recs, err := change(l.header, l.Records())
	if err != nil {
		return err
	}
	f, err := l.whole(ctx, message{Kind: kindBase, Epoch: l.epoch, Gen: l.gen + 1, Owner: s.id}, recs)
	if err != nil {
		return s.failed("rewrite", id, err)
	}
	seq, err := l.lk.settle(ctx, f)
	if err != nil {
		if errors.Is(err, store.ErrMoved) {
			l.dropPieces(f)
			return l.end(err)
		}
		return s.failed("rewrite", id, err)
	}
	l.last, l.chain, l.head, l.gen = seq, f.Chain, f.Head, f.Gen
	if err := l.lk.purge(ctx, id, seq); err != nil {
		s.opt.Logger.Warn("the rewritten log is stored, but the old one is still in the stream: outcrop realm gc removes it", "session", id, "error", err)
	}
	return nil
}

// unpurged reports whether messages of an earlier log stand before the log of a
// session.
func (lk *link) unpurged(ctx context.Context, id string, last *message) (bool, error) {
	if last.Gen == 0 {
		return false, nil
	}
	r, err := lk.nextFrom(ctx, last.Stream, lk.realm.subject(id), 1)
	if err != nil {
		return false, err
	}
	m, err := lk.parse(r, last.Stream, true)
	return err == nil && m.Gen < last.Gen, err
}

// base is the sequence of the message that begins the log of a session.
func (lk *link) base(ctx context.Context, id string, last *message) (uint64, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	w := walker{lk: lk, log: log{id: id, gen: last.Gen, last: last.Stored}}
	var at uint64
	err := w.messages(ctx, 1, func(m message) bool {
		at = m.Stored
		return false
	})
	return at, err
}
