package viewer

import (
	"context"
	"net/http"

	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
	"github.com/outcrop-dev/outcrop/viewer/internal/stream"
)

// mostListeners is how many streams there are at a time.
const mostListeners = 256

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

// live is the stream of a session.
func (v *Viewer) live(a *answerer, s *opened.Session) error {
	q := a.params()
	md := stream.WithDrafts
	if q.has("chunks") && !q.flag("chunks") {
		md = 0
	}
	if a.veil().Show {
		md |= stream.ShowSecrets
	}
	if q.err != nil {
		return q.err
	}
	leave, err := v.admit()
	if err != nil {
		return err
	}
	defer leave()
	// It ends with the request or with the server.
	ctx, stop := context.WithCancel(a.r.Context())
	defer stop()
	defer context.AfterFunc(v.life, stop)()
	l, err := v.streams.Listen(ctx, s.ID(), md)
	if err != nil {
		return err
	}
	defer l.Close()
	after := a.r.Header.Get("Last-Event-ID")
	if after == "" {
		after = q.q.Get("after")
	}
	a.stream()
	if a.send(l.Begin(ctx, after)) != nil {
		return nil // it is not there any more
	}
	l.Run(ctx, a.send)
	return nil
}
