package stream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
)

// pump makes the stream of one session for all who listen.
type pump struct {
	set  *Set
	id   string
	s    *opened.Session
	done func()
	wake chan struct{} // capacity 1
	refs int           // under set.mu
	stop context.CancelFunc

	mu    sync.Mutex
	modes [modes]ring
	at    Mark // everything up to it is in frames
	told  told
	reset int // how many times the log was not what it was
	gone  bool

	// Under the pump's goroutine.
	draft  draft
	writer facts.Writer // as it was found last
	flood  bool         // the last frame had a batch
}

// told is what listeners were told besides the log. Frames lead up to it, never
// beyond: who begins with it, and takes the frames that come after, ends where
// everybody does.
type told struct {
	durable   outcrop.Seq      // the last event that is synced
	status    *facts.Status    // nil: there is no agent here
	questions []facts.Question // that wait
	writer    facts.Writer
	known     bool // writer is
}

// join joins the pump of a session, which is started when there is none.
func (s *Set) join(ctx context.Context, id string, md Mode) (*pump, error) {
	session, done, err := s.o.Open.Use(ctx, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pumps[id]
	if p != nil {
		done()
	} else {
		p = &pump{set: s, id: id, s: session, done: done, wake: make(chan struct{}, 1)}
		p.begin()
		started := make(chan struct{})
		if !s.o.Spawn(func(life context.Context) {
			life, p.stop = context.WithCancel(life)
			close(started)
			p.run(life)
		}) {
			done()
			return nil, context.Canceled
		}
		<-started
		s.pumps[id] = p
	}
	p.refs++
	p.mu.Lock()
	defer p.mu.Unlock()
	p.modes[md].join()
	p.nudge()
	return p, nil
}

// quit leaves the pump; the last one stops it.
func (p *pump) quit(md Mode) {
	p.mu.Lock()
	p.modes[md].listeners--
	p.mu.Unlock()
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	if p.refs--; p.refs == 0 {
		p.stop()
		p.forget()
	}
}

// forget makes who listens from now on get a pump of its own. set.mu is held.
func (p *pump) forget() {
	if p.set.pumps[p.id] == p {
		delete(p.set.pumps, p.id)
	}
}

func (p *pump) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// begin stands at the end of the log.
func (p *pump) begin() {
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		p.at = MarkOf(p.id, x, log, x.Len()-1)
		p.draft.begin(x, log)
	})
	p.told = tell(p.set.o.Running(p.id), p.at.seq)
}

// tell is what there is to tell of an agent, when a log ends with an event.
func tell(r Running, last outcrop.Seq) told {
	if r == nil {
		return told{durable: last, questions: []facts.Question{}}
	}
	// What is synced was committed before, so it is asked first.
	return told{durable: r.Durable() - 1, status: r.Status(), questions: r.Questions()}
}

// run looks for what is new until nobody listens.
func (p *pump) run(ctx context.Context) {
	defer p.done()
	defer func() {
		p.set.mu.Lock()
		defer p.set.mu.Unlock()
		p.forget()
	}()
	var observed *outcrop.Session
	unobserve := func() {}
	defer func() { unobserve() }()
	var writerAt time.Time
	for ctx.Err() == nil {
		r := p.set.o.Running(p.id)
		var now *outcrop.Session
		if r != nil {
			now = r.Session()
		}
		if now != observed {
			unobserve()
			unobserve = func() {}
			if observed = now; now != nil {
				unobserve = now.Observe(func(outcrop.Event) { p.nudge() })
			}
			writerAt = time.Time{}
		}
		if now := time.Now(); now.Sub(writerAt) >= WriterEvery {
			writerAt, p.writer = now, p.set.o.Writer(ctx, p.id)
		}
		if !p.look(ctx, r) {
			return
		}
		wait := followEvery
		if r != nil {
			wait = statusEvery
		}
		p.sleep(ctx, wait, p.wake)
	}
}

// sleep waits for a time, or until it is woken.
func (p *pump) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// look takes in what is new and tells it; then it rests, so that what comes
// meanwhile comes together. It is false when the session is gone.
func (p *pump) look(ctx context.Context, r Running) bool {
	err := p.s.Refresh(ctx)
	switch {
	case ctx.Err() != nil:
		return true
	case errors.Is(err, outcrop.ErrNotFound):
		p.mu.Lock()
		p.gone = true
		p.mu.Unlock()
		p.publish(func(_ *facts.Veil, _ Mode, was drafted) (frame, drafted) {
			return frame{rest: Event("gone", "", []byte("{}"))}, was
		})
		return false
	case err != nil:
		p.set.o.Logger.Warn("a session cannot be followed", "session", p.id, "err", err)
		return true
	}
	if p.tell(r) {
		n := time.Duration(p.listeners())
		rest := min(pause+n*pauseEach, mostPause)
		if p.flood {
			rest = min(pause+n*floodEach, mostFlood)
		}
		p.sleep(ctx, rest, nil)
	}
	return true
}

func (p *pump) listeners() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.modes {
		n += p.modes[i].listeners
	}
	return n
}

// publish makes a frame for each mode that somebody listens to. compose is given
// the draft as those who listen have it, and says what they have after the frame.
func (p *pump) publish(compose func(veil *facts.Veil, md Mode, was drafted) (frame, drafted)) {
	for md := range Mode(modes) {
		p.mu.Lock()
		some, was := p.modes[md].listeners > 0, p.modes[md].drafted
		p.mu.Unlock()
		if !some {
			continue
		}
		f, is := compose(&facts.Veil{Show: md&ShowSecrets != 0}, md, was)
		// Together: who begins to listen has either both or none.
		p.mu.Lock()
		p.modes[md].drafted = is
		if f.size() > 0 {
			p.modes[md].add(f)
		}
		p.mu.Unlock()
	}
}

// tell makes frames of what is new; false when nothing is.
func (p *pump) tell(r Running) bool {
	p.mu.Lock()
	from, fresh := p.at, false
	for i := range p.modes {
		fresh = fresh || p.modes[i].fresh
		p.modes[i].fresh = false
	}
	p.mu.Unlock()
	now, reset := from, false
	state := tell(r, from.seq)
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		now = MarkOf(p.id, x, log, x.Len()-1)
		if reset = !from.holds(x, log); reset {
			p.draft.begin(x, log)
		} else {
			p.draft.add(log, from.seq+1, x.Len())
		}
	})
	if r == nil {
		state.durable = now.seq
	}
	rest := p.state(r, state)
	if reset {
		p.mu.Lock()
		p.reset++
		p.mu.Unlock()
	}
	if now == from && !reset && len(rest) == 0 && !fresh && !p.draft.dirty {
		return false
	}
	p.flood = false
	single := min(max(mostCopies/max(p.listeners(), 1), fewSingle), mostSingle)
	p.publish(func(veil *facts.Veil, md Mode, was drafted) (f frame, is drafted) {
		switch {
		case reset:
			f.parts = []part{{last: now.seq, reset: true, b: resetEvent("log-changed", now)}}
		case now.seq > from.seq:
			f.parts = p.records(from.seq+1, now.seq, state.durable, single, veil)
			p.flood = len(f.parts) > 0 && f.parts[0].batch
		}
		if md&WithDrafts != 0 {
			f.rest, is = p.draft.event(was, veil)
		}
		f.rest = append(f.rest, rest...)
		return f, is
	})
	p.draft.dirty = false
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = now
	return true
}

// state tells what changed besides the log.
func (p *pump) state(r Running, now told) (out []byte) {
	now.writer, now.known = p.writer, true
	p.mu.Lock()
	was := p.told
	p.told = now
	p.mu.Unlock()
	if now.durable != was.durable {
		out = append(out, durableEvent(now.durable)...)
	}
	if !same(now.status, was.status) {
		out = append(out, event("status", now.status)...)
	}
	for _, q := range now.questions {
		if !slices.ContainsFunc(was.questions, func(old facts.Question) bool { return old.ID == q.ID }) {
			out = append(out, event("question", q)...)
		}
	}
	if r != nil {
		for _, a := range r.Answered() {
			out = append(out, event("answered", a)...)
		}
	}
	if was.known && (now.writer.Where != was.writer.Where || !same(now.writer.Holder, was.writer.Holder)) {
		out = append(out, event("writer", now.writer)...)
	}
	return out
}

// same compares what two pointers point to.
func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// event is an event of the stream whose data is a value.
func event(name string, data any) []byte {
	b, err := jsonwire.Marshal(data)
	if err != nil {
		return nil // text that is no UTF-8 is mended before
	}
	return Event(name, "", b)
}

func durableEvent(seq outcrop.Seq) []byte {
	return Event("durable", "", jsonwire.AppendInt([]byte(`{"seq":`), int64(seq)), []byte("}"))
}

func resetEvent(reason string, now Mark) []byte {
	return Event("reset", now.String(), []byte(`{"reason":"`+reason+`","cursor":`), jsonwire.AppendString(nil, now.String()), []byte("}"))
}
