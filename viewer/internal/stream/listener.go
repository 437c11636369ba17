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
}

// Listen begins to listen; Close ends it.
func (s *Set) Listen(ctx context.Context, id string, md Mode) (*Listener, error) {
	p, at, err := s.join(ctx, id, md)
	if err != nil {
		return nil, err
	}
	return &Listener{p: p, md: md, veil: facts.Veil{Show: md&ShowSecrets != 0}, at: at}, nil
}

// Close ends it.
func (l *Listener) Close() { l.p.quit(l.md) }

// hello is the first event of a stream.
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
	h := hello{Questions: []facts.Question{}}
	var now Mark
	reason := ""
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		now = MarkOf(p.id, x, log, x.Len()-1)
		h.Cursor, h.Events, h.Rows, h.Items = now.String(), x.Len(), len(x.Rows), len(x.Visible)
		l.sent = now.seq
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
	h.Durable = now.seq
	if r := p.set.o.Running(p.id); r != nil {
		h.Status, h.Questions, h.Durable = r.Status(), r.Questions(), r.Durable()-1
	}
	h.Writer = p.set.o.Writer(ctx, p.id)
	b, err := jsonwire.Marshal(h)
	if err != nil {
		p.set.o.Logger.Error("a stream cannot be begun", "session", p.id, "err", err)
		return nil
	}
	out := Event("hello", "", b)
	if reason != "" {
		out = append(out, resetEvent(reason, now)...)
	}
	return append(out, l.caughtUp(now.seq, h.Durable)...)
}

// caughtUp is what was missed up to an event, from the log, and the draft.
func (l *Listener) caughtUp(to, durable outcrop.Seq) (out []byte) {
	if l.sent < to {
		for _, part := range l.p.records(l.sent+1, to, durable, mostSingle, &l.veil) {
			out = append(out, part.b...)
			l.sent = max(l.sent, part.last)
		}
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if d := l.p.modes[l.md].drafted; len(d.blocks) > 0 {
		out = append(out, d.whole()...)
	}
	return out
}

// next is what is to be sent now, and what to wait for after that; last says
// that nothing comes any more.
func (l *Listener) next() (out []byte, more <-chan struct{}, last bool) {
	p := l.p
	p.mu.Lock()
	r := &p.modes[l.md]
	lost := l.at < r.first
	var frames []frame
	if !lost {
		frames = slices.Clone(r.frames[l.at-r.first:])
	}
	l.at = r.first + uint64(len(r.frames))
	more, last = r.more, p.gone
	to, durable, status := p.at.seq, p.durable, p.status
	p.mu.Unlock()
	if lost {
		out = append(l.caughtUp(to, durable), durableEvent(durable)...)
		out = append(out, Event("status", "", []byte(status))...)
	}
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
