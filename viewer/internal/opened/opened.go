// Package opened keeps sessions open for reading while somebody looks at them,
// and for a while after, so that a question about one costs what is new in its
// log and not a load of it.
//
// # Where a session comes from
//
// From the store, followed: each Refresh reads what came since the last one, in
// this process or another. Or, while this process writes the session, from the
// live session, whose log is in memory already.
//
// # What is kept
//
// The log and its index (package folded). Of the sessions that nobody uses the
// last ones are kept up to a budget of bytes; those in use count too, and stay.
package opened

import (
	"context"
	"errors"
	"hash/crc32"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

// Live is a session that this process writes. *store.Live is one.
type Live interface {
	Session() *outcrop.Session
	// Durable is the number of events that are synced.
	Durable() outcrop.Seq
}

// Options of Sessions.
type Options struct {
	Store store.Store
	// Budget is how many bytes the logs that are kept may have together; 0:
	// 256 MiB.
	Budget int64
	Logger *slog.Logger
}

// Sessions are the open sessions of a store. All methods may be called from any
// goroutine.
type Sessions struct {
	o     Options
	loads chan struct{} // a token for each load: they need much memory for a moment

	mu   sync.Mutex
	open map[string]*Session
	tick int64 // counts uses
}

// atOnce is how many logs are loaded at a time.
const atOnce = 2

// New makes an empty set.
func New(o Options) *Sessions {
	if o.Budget == 0 {
		o.Budget = 256 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sessions{o: o, loads: make(chan struct{}, atOnce), open: map[string]*Session{}}
}

// Session is one open session. Its index and its log change with Refresh, so
// they are read under Read.
type Session struct {
	id   string
	all  *Sessions
	uses int   // under all.mu
	used int64 // under all.mu
	size int64 // under all.mu

	work sync.Mutex // held by the one who refreshes

	mu      sync.RWMutex
	index   *folded.Index
	base    outcrop.Log
	tail    []outcrop.Record // behind base
	problem error            // why the log is read no further
	live    Live

	// Under work.
	following store.Following
	frozen    bool // the log is read no further
}

// Use opens a session, or finds it open, and reads what is new. done must be
// called when it is not used any more. With an error there is no session; a log
// that is damaged behind its header is no error, see Problem.
func (c *Sessions) Use(ctx context.Context, id string) (s *Session, done func(), err error) {
	c.mu.Lock()
	s = c.open[id]
	if s == nil {
		s = &Session{id: id, all: c}
		c.open[id] = s
	}
	s.uses++
	c.tick++
	s.used = c.tick
	c.mu.Unlock()
	done = sync.OnceFunc(func() { c.leave(s) })
	if err := s.Refresh(ctx); err != nil {
		done()
		return nil, nil, err
	}
	return s, done, nil
}

// leave ends a use, and closes what is over the budget.
func (c *Sessions) leave(s *Session) {
	s.mu.RLock()
	size, loaded := s.bytes(), s.index != nil
	s.mu.RUnlock()
	c.mu.Lock()
	s.uses--
	s.size = size
	var closed []*Session
	if s.uses == 0 && !loaded && c.open[s.id] == s {
		delete(c.open, s.id)
		closed = append(closed, s)
	}
	closed = append(closed, c.trim()...)
	c.mu.Unlock()
	for _, s := range closed {
		s.close()
	}
}

// trim takes the sessions out that are over the budget, the longest unused
// first.
func (c *Sessions) trim() (out []*Session) {
	var total int64
	var idle []*Session
	for _, s := range c.open {
		total += s.size
		if s.uses == 0 {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b *Session) int { return int(a.used - b.used) })
	for _, s := range idle {
		// Each keeps a file open.
		if total <= c.o.Budget && len(c.open) <= maxOpen {
			break
		}
		total -= s.size
		delete(c.open, s.id)
		out = append(out, s)
	}
	return out
}

// maxOpen is how many sessions are kept open that nobody uses.
const maxOpen = 64

// Close closes what nobody uses.
func (c *Sessions) Close() {
	c.mu.Lock()
	var closed []*Session
	for id, s := range c.open {
		if s.uses == 0 {
			delete(c.open, id)
			closed = append(closed, s)
		}
	}
	c.mu.Unlock()
	for _, s := range closed {
		s.close()
	}
}

func (s *Session) close() {
	s.work.Lock()
	defer s.work.Unlock()
	s.unfollow()
}

func (s *Session) unfollow() {
	if s.following == nil {
		return
	}
	if err := s.following.Close(); err != nil {
		s.all.o.Logger.Warn("a followed log was not closed", "session", s.id, "err", err)
	}
	s.following = nil
}

// bytes estimates what the session takes.
func (s *Session) bytes() int64 {
	if s.index == nil {
		return 0
	}
	n := int64(len(s.index.Rows))*24 + int64(len(s.index.Items))*24 + int64(s.index.Forest.Len())*48 + int64(len(s.tail))*200
	if s.live == nil {
		n += s.index.Bytes + int64(s.index.Len())*16
	}
	return n
}

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// Read gives the index and the log, as they are at one moment, to f. The log may
// be kept; the index not, but for what it says of its own.
func (s *Session) Read(f func(x *folded.Index, log outcrop.Log)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.index, s.log())
}

func (s *Session) log() outcrop.Log {
	if s.live != nil {
		return outcrop.Prefix(s.live.Session().Log(), int(s.index.Len()))
	}
	return grown{s.base, s.tail[:len(s.tail):len(s.tail)]}
}

// Problem is why the log is good only as far as it was read; nil when it is
// good.
func (s *Session) Problem() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.problem
}

// Live is the session as this process writes it, nil when it does not.
func (s *Session) Live() Live {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live
}

// Begin says that this process writes a session, whose log begins with what is
// stored of it. end says that it does so no longer.
func (c *Sessions) Begin(id string, l Live) (end func(), err error) {
	c.mu.Lock()
	s := c.open[id]
	if s == nil {
		s = &Session{id: id, all: c}
		c.open[id] = s
	}
	s.uses++
	c.mu.Unlock()
	s.work.Lock()
	defer s.work.Unlock()
	s.unfollow()
	index := folded.New(l.Session().Header())
	for r := range l.Session().Log().Records(0) {
		if err := index.Add(r); err != nil {
			c.leave(s)
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live, s.base, s.tail, s.index, s.problem, s.frozen = l, nil, nil, index, nil, false
	return sync.OnceFunc(func() {
		s.end()
		c.leave(s)
	}), nil
}

// end goes back to the store; until it was read again the log is what it was.
func (s *Session) end() {
	s.work.Lock()
	defer s.work.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base, s.tail = s.log(), nil
	s.live = nil
}

// Refresh takes in what is new.
func (s *Session) Refresh(ctx context.Context) error {
	s.work.Lock()
	defer s.work.Unlock()
	if s.live != nil {
		return s.take(s.live.Session())
	}
	if s.frozen {
		return nil
	}
	if s.following == nil {
		return s.load(ctx)
	}
	err := s.grow(ctx)
	if errors.Is(err, store.ErrMoved) {
		s.unfollow()
		return s.load(ctx)
	}
	return err
}

// take reads on in a session of this process.
func (s *Session) take(live *outcrop.Session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live.Len() == int(s.index.Len()) {
		return nil
	}
	for r := range live.Log().Records(s.index.Len()) {
		if err := s.index.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// load opens the log and reads it from its beginning.
func (s *Session) load(ctx context.Context) error {
	st, ok := s.all.o.Store.(store.Follower)
	if !ok {
		return store.Problem("read", s.id, outcrop.ErrUnsupported, "a log in "+s.all.o.Store.Address()+" cannot be followed", "")
	}
	select {
	case s.all.loads <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.all.loads }()
	in, err := st.Follow(ctx, s.id)
	if err != nil {
		return err
	}
	// The index takes each record as it passes by.
	index := folded.New(in.Header())
	var odd error
	read, problem := outcrop.Inspect(in.Header(), func(yield func(outcrop.Record, error) bool) {
		for r, err := range in.Next(ctx) {
			if err == nil && odd == nil {
				odd = index.Add(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}, outcrop.Options{})
	if err := ctx.Err(); err != nil {
		return errors.Join(err, in.Close())
	}
	if problem != nil && gone(problem) {
		return errors.Join(problem, in.Close())
	}
	if odd != nil || int(index.Len()) != read.Len() {
		// A record was refused: what is good is what stands before it.
		index = folded.New(read.Header())
		for r := range read.Log().Records(0) {
			if err := index.Add(r); err != nil {
				problem = errors.Join(problem, err)
				break
			}
		}
	}
	s.following, s.frozen = in, problem != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index, s.base, s.tail, s.problem = index, outcrop.Prefix(read.Log(), int(index.Len())), nil, problem
	return nil
}

func gone(err error) bool {
	return errors.Is(err, outcrop.ErrNotFound) || errors.Is(err, store.ErrMoved)
}

// grow reads what came to the log since the last time.
func (s *Session) grow(ctx context.Context) error {
	var fresh []outcrop.Record
	var problem error
	for r, err := range s.following.Next(ctx) {
		if err != nil {
			problem = err
			break
		}
		fresh = append(fresh, r)
	}
	if problem != nil && (gone(problem) || ctx.Err() != nil) {
		// What was yielded before is not yielded again.
		if ctx.Err() != nil {
			s.unfollow()
		}
		return problem
	}
	if len(fresh) == 0 && problem == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range fresh {
		if err := s.index.Add(r); err != nil {
			problem = errors.Join(problem, err)
			break
		}
		s.tail = append(s.tail, r)
	}
	s.problem, s.frozen = problem, problem != nil
	s.pack()
	return nil
}

// pack puts a long tail into the compact form that a loaded log has.
func (s *Session) pack() {
	if len(s.tail) < packAfter || len(s.tail) < s.base.Len()/4 {
		return
	}
	all := grown{s.base, s.tail}
	read, err := outcrop.Inspect(s.index.Header, func(yield func(outcrop.Record, error) bool) {
		for r := range all.Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil || read.Len() != all.Len() {
		s.all.o.Logger.Warn("a followed log cannot be packed", "session", s.id, "err", err)
		return
	}
	s.base, s.tail = read.Log(), nil
}

// packAfter is the least number of records that is worth packing.
const packAfter = 8192

// Check is a short check of an event, by which a log is known again.
func Check(log outcrop.Log, seq outcrop.Seq) uint32 {
	if seq < 0 || int(seq) >= log.Len() {
		return 0
	}
	ev := log.At(seq)
	b := append([]byte(ev.Type), 0)
	b = strconv.AppendInt(b, ev.Time, 10)
	return crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, ev.Data)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// grown is a log with records behind it.
type grown struct {
	base outcrop.Log
	tail []outcrop.Record
}

func (g grown) Len() int {
	if k := len(g.tail); k > 0 {
		return int(g.tail[k-1].Last()) + 1
	}
	return g.base.Len()
}

// find is the record of the tail that holds an event.
func (g grown) find(seq outcrop.Seq) int {
	i, _ := slices.BinarySearchFunc(g.tail, seq, func(r outcrop.Record, seq outcrop.Seq) int {
		if r.Last() < seq {
			return -1
		}
		return 1
	})
	return i
}

func (g grown) At(seq outcrop.Seq) outcrop.Event {
	if int(seq) < g.base.Len() {
		return g.base.At(seq)
	}
	r := g.tail[g.find(seq)]
	if r.Run != nil {
		return r.Run.At(int(seq - r.Run.First))
	}
	return r.Event
}

func (g grown) Records(from outcrop.Seq) iter.Seq[outcrop.Record] {
	return func(yield func(outcrop.Record) bool) {
		if int(from) < g.base.Len() {
			for r := range g.base.Records(from) {
				if !yield(r) {
					return
				}
			}
			from = outcrop.Seq(g.base.Len())
		}
		for i := g.find(from); i < len(g.tail); i++ {
			r := g.tail[i]
			if r.Run != nil && r.Run.First < from {
				// One by one: a row that is cut in its middle.
				for ev := range r.Run.Events() {
					if ev.Seq >= from && !yield(outcrop.Record{Event: ev}) {
						return
					}
				}
				continue
			}
			if !yield(r) {
				return
			}
		}
	}
}

// Len is the number of events that were read.
func (s *Session) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return int(s.index.Len())
}

// Open is how many sessions are open, and how many bytes they take, about.
func (c *Sessions) Open() (sessions int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.open {
		bytes += s.size
	}
	return len(c.open), bytes
}

// Bytes is how many bytes the session takes, about.
func (s *Session) Bytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes()
}
