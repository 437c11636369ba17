package viewer

import (
	"net/http"
	"slices"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
)

const (
	// mostListeners is how many streams there are at a time.
	mostListeners = 256
	// pingEvery is how often a stream says that it is there.
	pingEvery = 10 * time.Second
)

// admit lets one more listener in.
func (v *Viewer) admit() (leave func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.listeners >= mostListeners {
		return nil, &problem{status: http.StatusTooManyRequests, code: "TOO_MANY", msg: "too many pages listen", hint: "close some of them"}
	}
	v.listeners++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.listeners--
	}, nil
}

// stream begins an answer that does not end.
func (a *answerer) stream() {
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	a.w.WriteHeader(http.StatusOK)
}

// send writes what is to be seen at once.
func (a *answerer) send(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := a.write(b); err != nil {
		return err
	}
	return a.rc.Flush()
}

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

// listener is one who listens to a session.
type listener struct {
	a    *answerer
	p    *pump
	md   mode
	veil facts.Veil
	at   uint64      // number of the next frame
	sent outcrop.Seq // everything up to it was sent
}

// live is the stream of a session.
func (v *Viewer) live(a *answerer, s *opened.Session) error {
	q := a.params()
	md := withDrafts
	if q.has("chunks") && !q.flag("chunks") {
		md = 0
	}
	if a.veil().Show {
		md |= showSecrets
	}
	if q.err != nil {
		return q.err
	}
	leave, err := v.admit()
	if err != nil {
		return err
	}
	defer leave()
	p, at, err := v.listen(a.r.Context(), s.ID(), md)
	if err != nil {
		return err
	}
	defer v.quit(p, md)
	l := &listener{a: a, p: p, md: md, veil: *a.veil(), at: at}
	after := a.r.Header.Get("Last-Event-ID")
	if after == "" {
		after = q.q.Get("after")
	}
	a.stream()
	if err := a.send(l.begin(after)); err != nil {
		return nil // it is not there any more
	}
	l.run()
	return nil
}

// begin says what there is, and what was missed since the event with the id
// after.
func (l *listener) begin(after string) []byte {
	p := l.p
	h := hello{Questions: []facts.Question{}}
	var now mark
	reason := ""
	p.s.Read(func(x *folded.Index, log outcrop.Log) {
		now = markOf(p.id, x, log, x.Len()-1)
		h.Cursor, h.Events, h.Rows, h.Items = now.String(), x.Len(), len(x.Rows), len(x.Visible)
		l.sent = now.seq
		if after == "" {
			return
		}
		switch m, ok := parseMark(after); {
		case !ok || m.id != p.id:
			reason = "foreign-id"
		case !m.holds(x, log):
			reason = "log-changed"
		default:
			l.sent = m.seq
		}
	})
	h.Durable = now.seq
	if r := p.v.runningOf(p.id); r != nil {
		h.Status, h.Questions, h.Durable = r.status(), r.asked.list(r.Dir()), r.Durable()-1
	}
	h.Writer = p.v.writerOf(l.a.r.Context(), p.id, &l.veil)
	b, err := jsonwire.Marshal(h)
	if err != nil {
		p.v.log.Error("a stream cannot be begun", "session", p.id, "err", err)
		return nil
	}
	out := event("hello", "", b)
	if reason != "" {
		out = append(out, event("reset", now.String(), []byte(`{"reason":"`+reason+`","cursor":`), jsonwire.AppendString(nil, now.String()), []byte("}"))...)
	}
	return append(out, l.caughtUp(now.seq, h.Durable)...)
}

// caughtUp is what was missed up to an event, from the log, and the draft.
func (l *listener) caughtUp(to, durable outcrop.Seq) (out []byte) {
	if l.sent < to {
		for _, part := range l.p.records(l.sent+1, to, durable, &l.veil) {
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

// run sends what comes, until the other side or the session is gone.
func (l *listener) run() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	p, ctx := l.p, l.a.r.Context()
	for {
		p.mu.Lock()
		st := &p.modes[l.md]
		var frames []frame
		lost := l.at < st.first
		if !lost {
			frames = slices.Clone(st.frames[l.at-st.first:])
		}
		l.at = st.first + uint64(len(st.frames))
		more, gone, to, durable, status := st.more, p.gone, p.at.seq, p.durable, p.status
		p.mu.Unlock()
		var out []byte
		if lost {
			out = l.caughtUp(to, durable)
			out = append(out, event("durable", "", jsonwire.AppendInt([]byte(`{"seq":`), int64(durable)), []byte("}"))...)
			out = append(out, event("status", "", []byte(status))...)
		}
		for _, f := range frames {
			for _, part := range f.parts {
				if part.last > l.sent || part.reset {
					out, l.sent = append(out, part.b...), part.last
				}
			}
			out = append(out, f.rest...)
		}
		if l.a.send(out) != nil || gone {
			return
		}
		select {
		case <-more:
		case <-ping.C:
			if l.a.send(event("ping", "", jsonwire.AppendInt([]byte(`{"time":`), p.v.o.Now()), []byte("}"))) != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-p.v.life.Done():
			return
		}
	}
}
