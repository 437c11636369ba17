package agent

import (
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/outcrop-dev/outcrop"
)

// watchers tell functions of committed events. There is no queue of events:
// each watcher has a place in the log and reads on from there, so a slow one
// costs nothing but its own delay.
type watchers struct {
	s      *outcrop.Session
	remove func()

	mu   sync.Mutex
	more *sync.Cond
	len  outcrop.Seq // committed and announced
	done bool
}

// newWatchers watches a session. first hears of each event too, on the
// appender's goroutine.
func newWatchers(s *outcrop.Session, first func(outcrop.Event)) *watchers {
	w := &watchers{s: s, len: outcrop.Seq(s.Len())}
	w.more = sync.NewCond(&w.mu)
	w.remove = s.Observe(func(ev outcrop.Event) {
		first(ev)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.len = ev.Seq + 1
		w.more.Broadcast()
	})
	return w
}

// close lets every watcher read to the end and stop.
func (w *watchers) close() {
	w.remove()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	w.more.Broadcast()
}

func (w *watchers) add(f func(outcrop.Event), log *slog.Logger) (stop func()) {
	w.mu.Lock()
	at := w.len
	w.mu.Unlock()
	var end outcrop.Seq = -1 // where to stop; under mu
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			w.mu.Lock()
			for at >= w.len && end < 0 && !w.done {
				w.more.Wait()
			}
			to, last := w.len, w.done
			if end >= 0 {
				to, last = end, true
			}
			w.mu.Unlock()
			for ev := range outcrop.Events(w.s.Log(), at) {
				if ev.Seq >= to {
					break
				}
				tell(f, ev, log)
			}
			at = max(at, to)
			if last {
				return
			}
		}
	}()
	return func() {
		w.mu.Lock()
		if end < 0 {
			end = w.len
		}
		w.more.Broadcast()
		w.mu.Unlock()
		<-ended
	}
}

func tell(f func(outcrop.Event), ev outcrop.Event, log *slog.Logger) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("observer panicked", "seq", int64(ev.Seq), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f(ev)
}
