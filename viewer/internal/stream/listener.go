package stream

import (
	"context"
	"slices"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

// Listener is one who listens to a session. One goroutine uses it.
type Listener struct {
	p    *pump
	md   Mode
	veil facts.Veil
	at   uint64      // number of the next frame
	sent outcrop.Seq // everything up to it was sent
	// reset is how many resets of the log it knows of.
	reset int
}

// Listen begins to listen; Close ends it. Begin comes before Run.
func (s *Set) Listen(ctx context.Context, id string, md Mode) (*Listener, error) {
	p, err := s.join(ctx, id, md)
	if err != nil {
		return nil, err
	}
	return &Listener{p: p, md: md, veil: facts.Veil{Show: md&ShowSecrets != 0}}, nil
}

// Close ends it.
func (l *Listener) Close() { l.p.quit(l.md) }

// hello says how things stand. It is the first event of a stream.
type hello struct {
	Cursor    string           `json:"cursor"`
	Events    outcrop.Seq      `json:"events"`
	Rows      int              `json:"rows"`
	Items     int              `json:"items"`
	Durable   outcrop.Seq      `json:"durable"`
	Writer    facts.Writer     `json:"writer"`
	Status    *facts.Status    `json:"status"`
	Questions []facts.Question `json:"questions"`
}

// Begin says what there is, and what was missed since the event with the id
// after; "": nothing was.
func (l *Listener) Begin(ctx context.Context, after string) []byte {
	p := l.p
	p.mu.Lock()
	known := p.told.known
	p.mu.Unlock()
	if !known {
		// The pump did not look yet.
		w := p.set.o.Writer(ctx, p.id)
		p.mu.Lock()
		if !p.told.known {
			p.told.writer, p.told.known = w, true
		}
		p.mu.Unlock()
	}
	reason := ""
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		l.sent = x.Len() - 1
		if after == "" {
			return
		}
		switch m, ok := ParseMark(after); {
		case !ok || m.id != p.id:
			reason = "foreign-id"
		case !m.holds(x, log):
			reason = "log-changed"
		default:
			l.sent = m.seq
		}
	})
	return l.greet(reason)
}

// greet says how things stand, and what of the log was not sent yet. The frames
// from here on are what comes after. reason, when there is one, makes the client
// load everything anew.
func (l *Listener) greet(reason string) []byte {
	p := l.p
	// The log is read after the state is: what the state speaks of is in it.
	p.mu.Lock()
	r := &p.modes[l.md]
	l.at = r.first + uint64(len(r.frames))
	state, draft := p.told, r.drafted
	l.reset = p.reset
	p.mu.Unlock()
	var now Mark
	h := hello{Durable: state.durable, Writer: state.writer, Status: state.status, Questions: state.questions}
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		now = MarkOf(p.id, x, log, x.Len()-1)
		h.Cursor, h.Events, h.Rows, h.Items = now.String(), x.Len(), len(x.Rows), len(x.Visible)
	})
	if state.status == nil {
		h.Durable = now.seq
	}
	out := event("hello", h)
	if reason != "" {
		out = append(out, resetEvent(reason, now)...)
		l.sent = now.seq
	}
	if l.sent < now.seq {
		for _, part := range p.records(l.sent+1, now.seq, h.Durable, mostSingle, &l.veil) {
			out = append(out, part.b...)
			l.sent = max(l.sent, part.last)
		}
	}
	// Behind the records, of which one may be the end of an earlier draft. When
	// this one has ended as well, the next frame says so.
	if len(draft.blocks) > 0 {
		out = append(out, draft.whole()...)
	}
	return out
}

// next is what is to be sent now, and what to wait for after that; last says
// that nothing comes any more.
func (l *Listener) next() (out []byte, more <-chan struct{}, last bool) {
	p := l.p
	p.mu.Lock()
	r := &p.modes[l.md]
	more, last = r.more, p.gone
	if l.at < r.first {
		reason := ""
		if l.reset != p.reset {
			reason = "log-changed"
		}
		p.mu.Unlock()
		return l.greet(reason), more, last
	}
	l.reset = p.reset
	frames := slices.Clone(r.frames[l.at-r.first:])
	l.at = r.first + uint64(len(r.frames))
	p.mu.Unlock()
	for _, f := range frames {
		for _, part := range f.parts {
			if part.last > l.sent || part.reset {
				out, l.sent = append(out, part.b...), part.last
			}
		}
		out = append(out, f.rest...)
	}
	return out, more, last
}

// Run sends what comes, until ctx ends, send fails, or the session is gone. Only
// this listener waits for send.
func (l *Listener) Run(ctx context.Context, send func([]byte) error) {
	ping := time.NewTicker(PingEvery)
	defer ping.Stop()
	for {
		out, more, last := l.next()
		if send(out) != nil || last {
			return
		}
		select {
		case <-more:
		case <-ping.C:
			if send(Ping(l.p.set.o.Now())) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// Ping is the event that says that a stream is there.
func Ping(now int64) []byte {
	return Event("ping", "", jsonwire.AppendInt([]byte(`{"time":`), now), []byte("}"))
}
