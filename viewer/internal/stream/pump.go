package stream

import (
	"context"
	"errors"
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

	mu      sync.Mutex
	modes   [modes]ring
	at      Mark        // everything up to it is in frames
	durable outcrop.Seq // the last event that is told to be synced
	status  string      // JSON, as it was told
	writer  facts.Writer
	gone    bool

	// Under the pump's goroutine.
	draft      draft
	writerTold string
	flood      bool            // the last frame had a batch
	asked      map[string]bool // questions that were told and wait
}

// join joins the pump of a session, which is started when there is none.
func (s *Set) join(ctx context.Context, id string, md Mode) (p *pump, at uint64, err error) {
	session, done, err := s.o.Open.Use(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p = s.pumps[id]; p != nil {
		done()
	} else {
		p = &pump{set: s, id: id, s: session, done: done, wake: make(chan struct{}, 1), asked: map[string]bool{}}
		p.begin()
		started := make(chan struct{})
		if !s.o.Spawn(func(life context.Context) {
			life, p.stop = context.WithCancel(life)
			close(started)
			p.run(life)
		}) {
			done()
			return nil, 0, context.Canceled
		}
		<-started
		s.pumps[id] = p
	}
	p.refs++
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.modes[md].join()
	p.nudge()
	return p, at, nil
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
	p.durable, p.status = p.at.seq, "null"
	if r := p.set.o.Running(p.id); r != nil {
		p.durable = r.Durable() - 1
	}
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
			writerAt = now
			w := p.set.o.Writer(ctx, p.id)
			p.mu.Lock()
			p.writer = w
			p.mu.Unlock()
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
		p.publish(func(*facts.Veil, Mode) frame { return frame{rest: Event("gone", "", []byte("{}"))} })
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

// publish makes a frame for each mode that somebody listens to.
func (p *pump) publish(compose func(veil *facts.Veil, md Mode) frame) {
	for md := range Mode(modes) {
		p.mu.Lock()
		some := p.modes[md].listeners > 0
		p.mu.Unlock()
		if !some {
			continue
		}
		f := compose(&facts.Veil{Show: md&ShowSecrets != 0}, md)
		if f.size() == 0 {
			continue
		}
		p.mu.Lock()
		p.modes[md].add(f)
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
	// What is synced was committed before, so it is asked first.
	durable := outcrop.Seq(-1)
	if r != nil {
		durable = r.Durable() - 1
	}
	now, reset := from, false
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		now = MarkOf(p.id, x, log, x.Len()-1)
		if reset = !from.holds(x, log); reset {
			p.draft.begin(x, log)
		} else {
			p.draft.add(log, from.seq+1, x.Len())
		}
	})
	if r == nil {
		durable = now.seq
	}
	rest := p.state(r, durable)
	if now == from && !reset && len(rest) == 0 && !fresh && !p.draft.dirty {
		return false
	}
	p.flood = false
	single := min(max(mostCopies/max(p.listeners(), 1), fewSingle), mostSingle)
	p.publish(func(veil *facts.Veil, md Mode) frame {
		var f frame
		switch {
		case reset:
			f.parts = []part{{last: now.seq, reset: true, b: resetEvent("log-changed", now)}}
		case now.seq > from.seq:
			f.parts = p.records(from.seq+1, now.seq, durable, single, veil)
			p.flood = len(f.parts) > 0 && f.parts[0].batch
		}
		if md&WithDrafts != 0 {
			p.mu.Lock()
			was := p.modes[md].drafted
			p.mu.Unlock()
			var is drafted
			f.rest, is = p.draft.event(was, veil)
			p.mu.Lock()
			p.modes[md].drafted = is
			p.mu.Unlock()
		}
		f.rest = append(f.rest, rest...)
		return f
	})
	p.draft.dirty = false
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = now
	return true
}

// state tells what changed besides the log.
func (p *pump) state(r Running, durable outcrop.Seq) (out []byte) {
	p.mu.Lock()
	wasDurable, wasStatus, writer := p.durable, p.status, p.writer
	p.mu.Unlock()
	if durable != wasDurable {
		out = append(out, durableEvent(durable)...)
	}
	status := "null"
	if r != nil {
		if b, err := jsonwire.Marshal(r.Status()); err == nil {
			status = string(b)
		}
	}
	if status != wasStatus {
		out = append(out, Event("status", "", []byte(status))...)
	}
	out = append(out, p.questions(r)...)
	if b, err := jsonwire.Marshal(writer); err == nil && string(b) != p.writerTold {
		if p.writerTold != "" {
			out = append(out, Event("writer", "", b)...)
		}
		p.writerTold = string(b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.durable, p.status = durable, status
	return out
}

// questions tells which questions came and went.
func (p *pump) questions(r Running) (out []byte) {
	if r == nil {
		clear(p.asked)
		return nil
	}
	still := map[string]bool{}
	for _, q := range r.Questions() {
		still[q.ID] = true
		if p.asked[q.ID] {
			continue
		}
		if b, err := jsonwire.Marshal(q); err == nil {
			out = append(out, Event("question", "", b)...)
		}
	}
	p.asked = still
	for _, a := range r.Answered() {
		if b, err := jsonwire.Marshal(a); err == nil {
			out = append(out, Event("answered", "", b)...)
		}
	}
	return out
}

func durableEvent(seq outcrop.Seq) []byte {
	return Event("durable", "", jsonwire.AppendInt([]byte(`{"seq":`), int64(seq)), []byte("}"))
}

func resetEvent(reason string, now Mark) []byte {
	return Event("reset", now.String(), []byte(`{"reason":"`+reason+`","cursor":`), jsonwire.AppendString(nil, now.String()), []byte("}"))
}
