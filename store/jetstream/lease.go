package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// Lease is the right to write one log: an epoch of it, and a place behind a
// message. Records, Append, Sync and Close are for one goroutine; Epoch, Held and
// Lost for any.
type Lease struct {
	s      *Store
	lk     *link
	header outcrop.Header
	isNew  bool // nothing is stored yet
	epoch  uint64
	gen    uint64
	last   uint64 // sequence of the subject's last message
	chain  chain
	head   head
	loaded bool
	enc    *wire.Encoder
	flying *flight // what was sent and is not settled
	again  bool    // an Append ended with an error, and its batch is flying: it comes once more
	closed bool

	mu     sync.Mutex
	dead   error // why nothing is written any more
	lapses int   // of the worker, when the epoch was last known to be the last one
	doubts bool  // somebody said that the session was taken over
	lost   chan struct{}
	isLost bool
}

var _ store.Lease = (*Lease)(nil)

// HeldError is the reason for store.ErrLocked, in the words of a realm.
type HeldError struct {
	store.LockedError
	Worker string
	Epoch  uint64
}

// Unwrap makes errors.As find the *store.LockedError.
func (e *HeldError) Unwrap() error { return &e.LockedError }

// Create is store.Store's. The first Append publishes the session.
func (s *Store) Create(ctx context.Context, h outcrop.Header) (store.Lease, error) {
	return s.create(ctx, h)
}

func (s *Store) create(ctx context.Context, h outcrop.Header) (*Lease, error) {
	if err := s.usable("create", h.ID); err != nil {
		return nil, err
	}
	lk, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	l := newLease(s, lk)
	l.header, l.isNew, l.loaded, l.epoch = h, true, true, 1
	l.head.setHeader(h.Line())
	switch last, err := lk.lastMessage(ctx, h.ID); {
	case errors.Is(err, errNoMessage):
	case err != nil && !errors.Is(err, outcrop.ErrDamaged):
		return nil, s.failed("create", h.ID, err)
	case err == nil && last.Kind == kindRemove:
		// What is left of one that was removed goes first.
		if err := lk.purge(ctx, h.ID, last.Stored+1); err != nil {
			return nil, s.failed("create", h.ID, err)
		}
	default:
		return nil, s.exists(h.ID)
	}
	return l, nil
}

func newLease(s *Store, lk *link) *Lease {
	return &Lease{s: s, lk: lk, lost: make(chan struct{})}
}

// maxID is how long an id may be: the subject of a session has to fit into one
// line of the protocol.
const maxID = 512

func (s *Store) usable(op, id string) error {
	switch {
	case id == "":
		return s.sessionProblem(op, "", "HEADER_ID", outcrop.ErrRefused, "the session id is empty", "")
	case len(id) > maxID:
		return s.sessionProblem(op, id[:32]+"…", "HEADER_ID", outcrop.ErrRefused, fmt.Sprintf("the session id has more than %d bytes", maxID), "")
	}
	return nil
}

// Acquire is store.Store's. A session whose owner is not alive any more is taken
// over.
func (s *Store) Acquire(ctx context.Context, id string) (store.Lease, error) {
	return s.acquire(ctx, id, s.opt.TakeOver)
}

// TakeOver is Acquire for a session that a living worker may hold: from now on
// nothing that it writes is stored.
func (s *Store) TakeOver(ctx context.Context, id string) (store.Lease, error) {
	return s.acquire(ctx, id, true)
}

// takeTries is how often the session may be written by others while it is taken.
const takeTries = 8

func (s *Store) acquire(ctx context.Context, id string, force bool) (_ *Lease, err error) {
	if s.usable("open", id) != nil {
		return nil, s.notFound("open", id)
	}
	lk, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	defer s.observe("take", time.Now(), &err)
	l := newLease(s, lk)
	for range takeTries {
		last, err := lk.lastMessage(ctx, id)
		switch {
		case errors.Is(err, errNoMessage), err == nil && last.Kind == kindRemove:
			return nil, s.notFound("open", id)
		case errors.Is(err, outcrop.ErrDamaged):
			return nil, s.damaged("open", id, err)
		case err != nil:
			return nil, s.failed("open", id, err)
		}
		if l.header, err = lk.headerOf(ctx, id, &last); err != nil {
			return nil, err
		}
		was, err := s.free(ctx, lk, id, &last, force)
		if err != nil {
			return nil, err
		}
		if !s.worker.reserve(id) {
			return nil, s.held(id, s.id, last.Epoch, s.holder())
		}
		err = l.take(ctx, id, last)
		if err == nil {
			if was != "" {
				// A word to the one who was cut off, so that its tools end soon.
				lk.nc.Publish(lk.realm.takenSubject(was), []byte(token(id)))
			}
			return l, nil
		}
		s.worker.forget(id)
		if !errors.Is(err, store.ErrMoved) {
			return nil, s.failed("open", id, err)
		}
	}
	return nil, s.sessionProblem("open", id, "", store.ErrLocked, "others write the session faster than it can be taken", "try again")
}

func (s *Store) held(id, worker string, epoch uint64, h store.Holder) error {
	return store.Problem("open", id, &HeldError{store.LockedError{Holder: h}, worker, epoch}, "", "end it there first, or take it over with --take-over; reading needs no lock")
}

// free reports whether the owner of a session lets go of it; was is the one that
// is cut off, when it is alive.
func (s *Store) free(ctx context.Context, lk *link, id string, last *message, force bool) (was string, err error) {
	switch last.Owner {
	case "":
		return "", nil
	case s.id:
		if s.worker.holds(id) {
			return "", s.held(id, s.id, last.Epoch, s.holder())
		}
		return "", nil // it could not be handed back, and nobody of us writes it
	}
	h, alive, err := lk.alive(ctx, last.Owner)
	switch {
	case err != nil:
		return "", s.failed("open", id, err)
	case !alive:
		return "", nil
	case !force:
		return "", s.held(id, last.Owner, last.Epoch, h)
	}
	return last.Owner, nil
}

// take publishes the next epoch.
func (l *Lease) take(ctx context.Context, id string, last message) error {
	if err := l.s.worker.begin(ctx, l.lk); err != nil {
		return err
	}
	if last.Epoch >= maxCounter {
		return l.s.sessionProblem("open", id, codeFields, outcrop.ErrDamaged, fmt.Sprintf("message %d of stream %s has the epoch %d: there is none behind it", last.Stored, last.Stream, last.Epoch),
			"no writer of ours comes so far: copy the session from another place")
	}
	m := message{Kind: kindTake, Seq: outcrop.Seq(last.Head.Events), Epoch: last.Epoch + 1, Gen: last.Gen, Chain: last.Chain, Owner: l.s.id, Head: last.Head}
	f := l.lk.prepare(id, m, last.Stored)
	seq, err := l.lk.settle(ctx, f)
	if err != nil {
		return err
	}
	l.epoch, l.gen, l.last, l.chain, l.head = m.Epoch, m.Gen, seq, m.Chain, m.Head
	l.head.setHeader(l.header.Line())
	l.hold(l.s.worker.set(id, l))
	return nil
}

// Header is store.Lease's.
func (l *Lease) Header() outcrop.Header { return l.header }

// Tail is store.Lease's: a message is there as a whole or not at all.
func (l *Lease) Tail() store.Tail { return store.Tail{} }

// Epoch is that of the lease: 1 for a new session, and one more for each
// take-over. With the seq of an event it is an idempotency key for what the
// session does in the world.
func (l *Lease) Epoch() uint64 { return l.epoch }

// Records is store.Lease's.
func (l *Lease) Records() iter.Seq2[outcrop.Record, error] {
	if l.loaded {
		return func(func(outcrop.Record, error) bool) {}
	}
	l.loaded = true
	return l.lk.records(context.Background(), logOf(l.header, l.gen, l.last, l.head.Events, l.chain))
}

// why is the reason why nothing is written any more.
func (l *Lease) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// end ends the writing for good.
func (l *Lease) end(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead == nil {
		l.dead = err
	}
	return l.dead
}

// Append is store.Lease's: the batch is under way when it returns, that of a new
// session is stored. The batch before it is settled first.
func (l *Lease) Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error {
	if err := cmp.Or(l.why(), context.Cause(ctx)); err != nil {
		return err
	}
	if l.s.opt.fail != nil {
		if err := l.s.opt.fail("append"); err != nil {
			return err
		}
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	m, body, err := l.batch(recs)
	if err != nil || m.Count == 0 {
		return err
	}
	if l.isNew {
		if err := l.begin(ctx); err != nil {
			return err
		}
	}
	f, err := l.lk.fit(ctx, l.header.ID, m, body, l.last)
	if err != nil {
		return l.s.failed("append", l.header.ID, err)
	}
	l.flying = f
	l.lk.send(f)
	if !l.isNew {
		return nil
	}
	if err := l.settle(ctx); err != nil {
		l.again = l.flying != nil
		return err
	}
	return nil
}

// begin makes this worker known before it owns a new session.
func (l *Lease) begin(ctx context.Context) error {
	if err := l.s.worker.begin(ctx, l.lk); err != nil {
		return err
	}
	if l.s.worker.mine(l.header.ID, l) {
		return nil // an earlier try came as far as this
	}
	if !l.s.worker.reserve(l.header.ID) {
		return l.end(l.s.exists(l.header.ID))
	}
	l.hold(l.s.worker.set(l.header.ID, l))
	return nil
}

// hold notes when the epoch was last known to be the last one.
func (l *Lease) hold(lapses int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lapses = lapses
}

// settle waits for the message that is under way, if there is one.
func (l *Lease) settle(ctx context.Context) (err error) {
	if l.flying == nil {
		return nil
	}
	began := l.flying.sent
	defer l.s.observe("append", began, &err)
	seq, err := l.lk.settle(ctx, l.flying)
	if err != nil {
		if errors.Is(err, store.ErrMoved) || errors.Is(err, store.ErrExists) {
			if l.isNew {
				l.s.worker.forget(l.header.ID)
			}
			l.flying = nil
			l.end(err)
			l.lose()
			return err
		}
		return l.s.failed("append", l.header.ID, err)
	}
	l.last, l.chain, l.head, l.isNew = seq, l.flying.Chain, l.flying.Head, false
	l.flying = nil
	return nil
}

// batch encodes records that follow the log. Those that an earlier call has
// brought already are left out.
func (l *Lease) batch(recs iter.Seq[outcrop.Record]) (message, []byte, error) {
	if l.enc == nil {
		l.enc = wire.NewEncoder(wire.Zstd)
	}
	next := outcrop.Seq(l.head.Events)
	m := message{Kind: kindBatch, Seq: next, Epoch: l.epoch, Gen: l.gen, Prev: l.chain, Owner: l.s.id}
	fold := newFolder(l.head, l.header)
	var gap error
	var body []byte
	if l.isNew {
		body = l.enc.Header(nil, l.header)
	}
	body, err := l.enc.Batch(body, func(yield func(outcrop.Record) bool) {
		for r := range recs {
			if l.again && r.Last() < next {
				continue
			}
			if r.Seq != next {
				gap = l.s.sessionProblem("append", l.header.ID, "SEQ_GAP", outcrop.ErrRefused, fmt.Sprintf("event %d follows event %d", r.Seq, next-1), "")
				return
			}
			next = r.Last() + 1
			fold.add(r)
			if !yield(r) {
				return
			}
		}
	})
	if err = cmp.Or(gap, err); err != nil {
		return m, nil, err
	}
	l.again = false
	m.Count = int64(next - m.Seq)
	m.Head = fold.done()
	return m, body, nil
}

// Sync is store.Lease's. An error that is neither ErrMoved nor ErrSync leaves the
// batch under way; another Sync goes on with it.
func (l *Lease) Sync(ctx context.Context) error {
	if err := l.why(); err != nil {
		return err
	}
	if l.s.opt.fail != nil {
		if err := l.s.opt.fail("sync"); err != nil {
			return l.end(l.s.sessionProblem("sync", l.header.ID, "", errors.Join(store.ErrSync, err), err.Error(), ""))
		}
	}
	return l.settle(ctx)
}

// handOverWithin is how long a session is tried to be handed back, or as long as
// one acknowledgement is waited for.
const handOverWithin = 4 * time.Second

// Close is store.Lease's: a free message, one round trip. When the servers cannot
// be reached the session stays this worker's until its key expires.
func (l *Lease) Close() (err error) {
	if l.closed {
		return nil
	}
	l.closed = true
	dead := l.why()
	l.end(l.s.sessionProblem("append", l.header.ID, "", store.ErrClosed, "", ""))
	defer l.lose()
	if l.isNew && l.flying == nil {
		if l.s.worker.mine(l.header.ID, l) {
			l.s.worker.forget(l.header.ID)
		}
		return nil
	}
	if !l.s.worker.mine(l.header.ID, l) {
		return nil // another lease has the session, and this one was never stored
	}
	defer l.s.worker.forget(l.header.ID)
	if errors.Is(dead, store.ErrMoved) || errors.Is(dead, store.ErrExists) {
		return nil
	}
	defer l.s.observe("hand over", time.Now(), &err)
	ctx, stop := context.WithTimeoutCause(context.Background(), max(l.s.opt.AckWait, handOverWithin), errPatience)
	defer stop()
	if err = l.settle(ctx); err == nil {
		m := message{Kind: kindFree, Seq: outcrop.Seq(l.head.Events), Epoch: l.epoch, Gen: l.gen, Chain: l.chain, Head: l.head}
		_, err = l.lk.settle(ctx, l.lk.prepare(l.header.ID, m, l.last))
	}
	if err == nil || errors.Is(err, store.ErrMoved) || errors.Is(err, store.ErrExists) {
		return nil
	}
	return l.s.sessionProblem("close", l.header.ID, "", err, "the session could not be handed back: "+err.Error(),
		"it is free when this program has ended, or its lease has expired")
}

// Held reports whether the session is still this worker's, as far as that can be
// known without asking: its key was renewed within the length of the lease, by
// the monotonic clock and by the other one, and nobody said that the session was
// taken over. Otherwise the leader of the stream is asked whether the epoch is
// still the last one. It is asked right before something is done in the world
// that cannot be undone. The error wraps store.ErrMoved when the session is
// another worker's now.
//
// What remains: a worker that is stopped between this answer and the deed, for
// longer than the lease, does it although another one may have gone on.
func (l *Lease) Held(ctx context.Context) error {
	l.mu.Lock()
	dead, lapses, doubts := l.dead, l.lapses, l.doubts
	l.mu.Unlock()
	if dead != nil {
		return dead
	}
	if !doubts && l.s.worker.good(lapses) {
		return nil
	}
	if err := l.s.worker.begin(ctx, l.lk); err != nil {
		return err
	}
	alive, lapses := l.s.worker.now()
	last, err := l.lk.lastMessage(ctx, l.header.ID)
	switch {
	case err != nil && !errors.Is(err, errNoMessage):
		return l.s.failed("hold", l.header.ID, err)
	case err != nil || last.Epoch != l.epoch || last.Owner != l.s.id:
		l.lose()
		return l.s.sessionProblem("hold", l.header.ID, "", store.ErrMoved, "another worker took the session over", "what it does from here on is not this program's business")
	case !alive:
		return l.s.sessionProblem("hold", l.header.ID, "", store.ErrLocked, "the worker's lease has lapsed, and could not be renewed", "see that the servers can be reached")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lapses, l.doubts = lapses, false
	if l.isLost {
		l.lost, l.isLost = make(chan struct{}), false
	}
	return nil
}

// Lost is closed when the lease lapses, when the session is taken over, and when
// the lease is closed: what runs under it is to be ended. After a Held that says
// that the session is still held, Lost gives another channel.
func (l *Lease) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

func (l *Lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isLost {
		l.isLost = true
		close(l.lost)
	}
}

// doubt looks whether the session was taken over.
func (l *Lease) doubt() {
	l.mu.Lock()
	l.doubts = true
	l.mu.Unlock()
	go func() {
		ctx, stop := context.WithTimeout(context.Background(), l.s.opt.AckWait)
		defer stop()
		if err := l.Held(ctx); err != nil {
			l.lose()
		}
	}()
}

// Owner is who holds a session.
type Owner struct {
	Worker string // "" nobody
	Holder store.Holder
	Alive  bool
	Epoch  uint64
}

// Holder tells who holds a session.
func (s *Store) Holder(ctx context.Context, id string) (Owner, error) {
	lk, err := s.link(ctx)
	if err != nil {
		return Owner{}, err
	}
	last, err := lk.lastMessage(ctx, id)
	switch {
	case errors.Is(err, errNoMessage), err == nil && last.Kind == kindRemove:
		return Owner{}, s.notFound("find", id)
	case err != nil:
		return Owner{}, s.failed("find", id, err)
	}
	o := Owner{Worker: last.Owner, Epoch: last.Epoch}
	if o.Worker != "" {
		if o.Holder, o.Alive, err = lk.alive(ctx, o.Worker); err != nil {
			return o, s.failed("find", id, err)
		}
	}
	return o, nil
}
