package store

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outcrop-dev/outcrop"
)

// Options of a live session. The zero value is right.
type Options struct {
	Session outcrop.Options
	// AfterFunc is the clock of the writer: it calls f once after d unless stop
	// was called first. Nil: time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// Live is a session with its lease, log and writer. The session has one
// appender; the methods of Live may be called from any goroutine, but not from
// a veto or an observer, which stand in the appender's way.
type Live struct {
	session *outcrop.Session
	lease   Lease
	logger  *slog.Logger
	after   func(time.Duration, func()) func() bool
	tail    Tail

	// What the appender's goroutine touches at each event.
	armed   atomic.Bool                   // a write timer runs
	waiting atomic.Int64                  // bytes committed since the first live event and not written
	failing atomic.Bool                   // the last write did not succeed
	barred  atomic.Pointer[outcrop.Error] // why no append is allowed any more

	durable atomic.Int64
	wake    chan struct{} // capacity 1: look at the members below
	done    chan struct{} // the writer has ended

	mu        sync.Mutex
	err       error // why the last write did not succeed
	due       bool  // the write timer fired
	dueSync   bool  // the sync timer or the retry timer fired
	retry     bool  // the retry timer fired
	closing   bool
	ended     bool // the writer takes no more flushes
	flushes   []chan error
	stopWrite func() bool
	stopSync  func() bool
	stopRetry func() bool
	closeErr  error

	writing chan struct{} // holds a token while a goroutine writes
	w       writer
}

// writer is what whoever writes knows.
type writer struct {
	first   outcrop.Seq // first event that the observer hears of
	written outcrop.Seq // events below it were handed to the store
	pause   time.Duration
}

const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
	// writeEarly is how many waiting bytes start a write before its time, so
	// that a fast producer makes many moderate batches and not one huge one.
	writeEarly = 1 << 20
	// eventCost stands for the envelope of an event when waiting bytes are
	// counted.
	eventCost = 64
)

// Create starts a session that is not in st yet. Nothing is stored before its
// first event is written.
func Create(ctx context.Context, st Store, h outcrop.Header, o Options) (*Live, error) {
	lease, err := st.Create(ctx, h)
	if err != nil {
		return nil, err
	}
	l := newLive(lease, o)
	l.session, err = outcrop.New(h, l.sessionOptions(o))
	if err != nil {
		return nil, errors.Join(err, lease.Close())
	}
	l.start(ctx, 0)
	return l, nil
}

// Open takes up a stored session: it takes the lease, loads the log, cuts a
// torn tail, closes what a crash left open and appends session/end-seed. What
// it appends is written like every other event; a session that was closed in
// good order and is opened and closed again without an append does not grow.
// A damaged log is not opened.
func Open(ctx context.Context, st Store, id string, o Options) (*Live, error) {
	lease, err := st.Acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	return Take(ctx, lease, o)
}

// Take makes a live session of a lease that holds a stored log. The lease is
// the session's from now on, also when Take returns an error.
func Take(ctx context.Context, lease Lease, o Options) (*Live, error) {
	l := newLive(lease, o)
	var err error
	l.session, err = outcrop.Restore(lease.Header(), cancellable(ctx, lease.Records()), l.sessionOptions(o))
	if err != nil {
		return nil, errors.Join(Located(err, lease), lease.Close())
	}
	l.tail = lease.Tail()
	l.start(ctx, l.session.Stored()-outcrop.Seq(l.tail.Recovered))
	return l, nil
}

func newLive(lease Lease, o Options) *Live {
	l := &Live{
		lease:   lease,
		logger:  o.Session.Logger,
		after:   o.AfterFunc,
		wake:    make(chan struct{}, 1),
		writing: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if l.after == nil {
		l.after = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return l
}

// sessionOptions puts the writer's veto before the caller's own: theirs may
// have effects, and need not be asked about an event that cannot be kept.
func (l *Live) sessionOptions(o Options) outcrop.Options {
	so := o.Session
	so.Vetoes = append([]func(outcrop.Event) error{l.veto}, so.Vetoes...)
	return so
}

func (l *Live) start(ctx context.Context, stored outcrop.Seq) {
	n := outcrop.Seq(l.session.Len())
	l.w = writer{first: n, written: stored}
	l.durable.Store(int64(stored))
	l.session.Observe(l.committed)
	// The writer lives until Close, not as long as the call that started it.
	go l.run(context.WithoutCancel(ctx))
	if n > stored {
		l.arm()
	}
}

// Session is the session. Append to it from one goroutine.
func (l *Live) Session() *outcrop.Session { return l.session }

// Durable returns the first seq that is not synced: every event below it
// survives a crash.
func (l *Live) Durable() outcrop.Seq { return outcrop.Seq(l.durable.Load()) }

// Tail is what opening found at the end of the stored log.
func (l *Live) Tail() Tail { return l.tail }

// Err is the reason why the last write did not succeed, nil when it did. With
// ErrSync, ErrMoved, ErrExists and ErrLocked it stays.
func (l *Live) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Flush returns nil when every event that was committed before the call is
// synced. Flushes that wait at the same time share one write. An error is the
// reason why the write did not succeed, and says nothing about events that a
// later Flush may still save; ctx ends the waiting, not the write.
func (l *Live) Flush(ctx context.Context) error {
	n := int64(l.session.Len())
	if l.durable.Load() >= n {
		return nil
	}
	answer := make(chan error, 1)
	l.mu.Lock()
	if l.ended {
		err := l.err
		l.mu.Unlock()
		if l.durable.Load() >= n {
			return nil
		}
		if err == nil {
			err = l.problem("flush", ErrClosed, "the session was closed before these events were appended", "open it again")
		}
		return err
	}
	l.flushes = append(l.flushes, answer)
	l.mu.Unlock()
	if ctx.Done() == nil {
		// Nothing can end the waiting, so that this goroutine may as well do
		// the writing, when nobody else is at it.
		l.work(ctx, true)
		return <-answer
	}
	l.signal()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return l.problem("flush", context.Cause(ctx), "", "")
	}
}

// Close flushes, ends the writer and hands the lease back, also when the flush
// does not succeed: the error says how many events were not saved. After it no
// event can be appended. ctx ends the waiting; the lease is handed back when
// the write that is under way has ended. Closing again returns the same error.
func (l *Live) Close(ctx context.Context) error {
	l.bar(l.problem("append", ErrClosed, "the session is closed", "open it again"))
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.signal()
	select {
	case <-l.done:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.closeErr
	case <-ctx.Done():
		return l.problem("close", context.Cause(ctx), "", "")
	}
}

// veto keeps events out that could not be stored.
func (l *Live) veto(outcrop.Event) error {
	if err := l.barred.Load(); err != nil {
		return err
	}
	if l.failing.Load() && l.waiting.Load() > MaxPending {
		return l.problem("append", l.Err(), "too many events wait to be stored", "make the store writable again; nothing is lost until this program ends")
	}
	return nil
}

// committed is the session's observer.
func (l *Live) committed(e outcrop.Event) {
	waiting := l.waiting.Add(int64(len(e.Data)) + eventCost)
	if !l.armed.Load() {
		l.arm()
	}
	if waiting > writeEarly && waiting-int64(len(e.Data))-eventCost <= writeEarly {
		l.fire(&l.due)
	}
}

// arm starts the timers that nothing else has started.
func (l *Live) arm() {
	if !l.armed.CompareAndSwap(false, true) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.stopWrite != nil {
		l.stopWrite()
	}
	l.stopWrite = l.after(WriteWithin, func() { l.fire(&l.due) })
	if l.stopSync == nil {
		l.stopSync = l.after(SyncWithin, func() { l.fire(&l.dueSync) })
	}
}

func (l *Live) fire(flag *bool) {
	l.mu.Lock()
	*flag = true
	l.mu.Unlock()
	l.signal()
}

func (l *Live) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// bar ends appending for good. The first reason stays.
func (l *Live) bar(err *outcrop.Error) { l.barred.CompareAndSwap(nil, err) }

func (l *Live) run(ctx context.Context) {
	for range l.wake {
		if l.work(ctx, false) {
			return
		}
	}
}

// work does what there is to do, or one round of it, and reports whether the
// writing has ended. Whoever sets something to do and does not work itself
// signals.
func (l *Live) work(ctx context.Context, once bool) (ended bool) {
	l.writing <- struct{}{}
	defer func() { <-l.writing }()
	for {
		flushes, sync, closing, something := l.next()
		if !something {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.ended
		}
		err := l.write(ctx, sync)
		for _, f := range flushes {
			f <- err
		}
		if closing {
			l.end(err)
			return true
		}
		if once {
			return false
		}
	}
}

// next says what is to be done now. While writes do not succeed only a flush,
// the retry timer and Close try again.
func (l *Live) next() (flushes []chan error, sync, closing, something bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, false, false, false
	}
	flushes, closing = l.flushes, l.closing
	asked := len(flushes) > 0 || closing || l.retry
	sync = asked || l.dueSync
	something = asked || (l.due || l.dueSync) && !l.failing.Load()
	l.flushes, l.due, l.dueSync, l.retry = nil, false, false, false
	if !something {
		return nil, false, false, false
	}
	// Timers are disarmed before the log's length is taken: an event that
	// write does not see arms them again.
	if l.stopWrite != nil {
		l.stopWrite()
		l.stopWrite = nil
	}
	l.armed.Store(false)
	if sync && l.stopSync != nil {
		l.stopSync()
		l.stopSync = nil
	}
	if l.stopRetry != nil {
		l.stopRetry()
		l.stopRetry = nil
	}
	return flushes, sync, closing, something
}

// write hands everything that is committed to the store as one batch.
func (l *Live) write(ctx context.Context, sync bool) error {
	log := l.session.Log()
	n := outcrop.Seq(log.Len())
	if l.Durable() >= n {
		return nil
	}
	if fatal(l.Err()) {
		return l.Err()
	}
	if n > l.w.written {
		var bytes int64
		if err := l.lease.Append(ctx, l.measured(log.Records(l.w.written), &bytes)); err != nil {
			return l.failed(err)
		}
		l.w.written = n
		l.waiting.Add(-bytes)
	}
	if sync {
		if err := l.lease.Sync(ctx); err != nil {
			return l.failed(err)
		}
		l.durable.Store(int64(n))
	}
	l.mu.Lock()
	again := l.err != nil
	l.err = nil
	l.mu.Unlock()
	l.failing.Store(false)
	l.w.pause = 0
	if again {
		l.logger.Info("the session is stored again", "session", l.session.Header().ID, "events", int64(n))
	}
	return nil
}

// measured counts the bytes that committed counted.
func (l *Live) measured(recs iter.Seq[outcrop.Record], bytes *int64) iter.Seq[outcrop.Record] {
	return func(yield func(outcrop.Record) bool) {
		*bytes = 0
		for r := range recs {
			if r.Seq >= l.w.first {
				if r.Run == nil {
					*bytes += int64(len(r.Data)) + eventCost
				} else {
					for e := range r.Run.Events() {
						*bytes += int64(len(e.Data)) + eventCost
					}
				}
			}
			if !yield(r) {
				return
			}
		}
	}
}

// failed notes why a write did not succeed and sets the time of the next try.
func (l *Live) failed(err error) error {
	err = l.problem("store", err, "", "")
	l.failing.Store(true)
	l.mu.Lock()
	first := l.err == nil
	l.err = err
	if !fatal(err) && !l.closing {
		l.w.pause = min(max(2*l.w.pause, retryFirst), retryMost)
		l.stopRetry = l.after(l.w.pause, func() { l.fire(&l.retry) })
	}
	l.mu.Unlock()
	if fatal(err) {
		var e *outcrop.Error
		errors.As(err, &e)
		l.bar(e)
	}
	if first {
		l.logger.Warn("events are not stored", "session", l.session.Header().ID, "durable", l.durable.Load(), "error", err)
	}
	return err
}

// fatal reports whether trying again could destroy the log or cannot succeed.
func fatal(err error) bool {
	for _, s := range []error{ErrSync, ErrMoved, ErrLocked, ErrExists, ErrEncoding, outcrop.ErrReadOnly} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// end is the writer's last act.
func (l *Live) end(err error) {
	if err != nil {
		n := int64(l.session.Len()) - l.durable.Load()
		err = l.problem("close", err, plural(n, "event was", "events were")+" not saved: "+reason(err), "")
	}
	err = errors.Join(err, l.lease.Close())
	l.mu.Lock()
	l.ended = true
	l.closeErr = err
	rest := l.flushes
	l.flushes = nil
	for _, stop := range []func() bool{l.stopWrite, l.stopSync, l.stopRetry} {
		if stop != nil {
			stop()
		}
	}
	l.mu.Unlock()
	for _, f := range rest {
		f <- l.problem("flush", ErrClosed, "the session was closed meanwhile", "open it again")
	}
	close(l.done)
}

// cancellable ends a stream with the context's reason when ctx is done. It asks
// only now and then: a record costs less than the question.
func cancellable(ctx context.Context, recs iter.Seq2[outcrop.Record, error]) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		n := 0
		for r, err := range recs {
			if n++; n%1024 == 0 && ctx.Err() != nil {
				yield(outcrop.Record{}, context.Cause(ctx))
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
