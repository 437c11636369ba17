package viewer_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/viewer"
)

// huge is a store with a session of 300,000 events.
func huge(b *testing.B, plain bool) store.Store {
	b.Helper()
	st, err := jsonl.New(b.TempDir(), jsonl.Options{Plain: plain})
	if err != nil {
		b.Fatal(err)
	}
	err = st.Put(context.Background(), genlog.Header(1), func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(1, 300_000) {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return st
}

func cold(b *testing.B, st store.Store) *viewer.Viewer {
	b.Helper()
	v, err := viewer.New(viewer.Options{Store: st, Addr: "127.0.0.1:7", Now: func() int64 { return 1 }, NewID: func() string { return "x" }, Random: func([]byte) {}})
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func ask(b *testing.B, v *viewer.Viewer, path string) {
	b.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.Host = "127.0.0.1:7"
	rec := httptest.NewRecorder()
	v.ServeHTTP(rec, r)
	if rec.Code != 200 {
		b.Fatalf("%s: %d %.300s", path, rec.Code, rec.Body)
	}
}

// BenchmarkFirstView opens a session of 300,000 events in a server that knows
// nothing yet, as far as a person sees it. The floor, measured in turn with it,
// is the bare load of the log; x-load says how many times that the view takes.
func BenchmarkFirstView(b *testing.B) {
	for name, plain := range map[string]bool{"plain": true, "zstd": false} {
		b.Run(name, func(b *testing.B) {
			st := huge(b, plain)
			var view, load time.Duration
			for b.Loop() {
				began := time.Now()
				if _, _, err := store.Inspect(context.Background(), st, "gen-1", outcrop.Options{}); err != nil {
					b.Fatal(err)
				}
				load += time.Since(began)
				began = time.Now()
				v := cold(b, st)
				ask(b, v, "/api/v1/sessions/gen-1")
				ask(b, v, "/api/v1/sessions/gen-1/conversation?from=-50")
				view += time.Since(began)
				if err := v.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(view.Seconds()*1000/float64(b.N), "ms/view")
			b.ReportMetric(load.Seconds()*1000/float64(b.N), "ms/load")
			b.ReportMetric(float64(view)/float64(load), "x-load")
		})
	}
}

// BenchmarkViews asks a warm server about a session of 300,000 events.
func BenchmarkViews(b *testing.B) {
	v := cold(b, huge(b, true))
	defer v.Close(context.Background())
	for _, path := range []string{"", "/conversation?from=10000", "/events?row=20000", "/events/200000", "/strata?at=150000", "/strata?at=150000&from=1000&to=3000",
		"/strata/table?at=150000", "/band", "/surface?at=150000", "/requests?from=4000", "/requests/200.1.1", "/numbers", "/find?q=nothing+like+this"} {
		ask(b, v, "/api/v1/sessions/gen-1"+path) // once, so that what is kept is there
		b.Run(strings.Trim(strings.NewReplacer("?", " ", "&", " ", "/", " ").Replace("session"+path), " "), func(b *testing.B) {
			for b.Loop() {
				ask(b, v, "/api/v1/sessions/gen-1"+path)
			}
		})
	}
}

// BenchmarkWriter is what 200 listeners cost the one who writes: steps of 30
// chunks, made durable one by one, as an agent makes them. It writes without and
// with them in turn, so that a machine that has other work slows both; the rate
// without them is the floor, and cost-% what they take of it.
func BenchmarkWriter(b *testing.B) {
	const listeners, steps = 200, 100
	w := newWorld(b, options{noToken: true, script: working})
	l := w.live("s1")
	if err := storetest.Turn(l.Session(), 1); err != nil {
		b.Fatal(err)
	}
	if err := l.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	run, err := w.run.Run(context.Background(), "s1", "", nil)
	if err != nil {
		b.Fatal(err)
	}
	end, err := w.v.Host(run, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		end()
		if err := run.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}()
	s, flush, n := run.Session(), run.(*ran).Flush, 1
	write := func() time.Duration {
		began := time.Now()
		for range steps {
			n++
			step(b, s, n)
			if err := flush(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	}
	host := strings.TrimPrefix(w.url, "http://")
	listen := func() (leave func()) {
		var conns []net.Conn
		var read sync.WaitGroup
		for range listeners {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(conn, "GET /api/v1/sessions/s1/live HTTP/1.1\r\nHost: %s\r\n\r\n", host)
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
			read.Go(func() { io.Copy(io.Discard, conn) })
			conns = append(conns, conn)
		}
		return func() {
			for _, c := range conns {
				c.Close()
			}
			read.Wait()
		}
	}
	write() // the store and the disk are warm
	var alone, listened time.Duration
	for b.Loop() {
		alone += write()
		leave := listen()
		listened += write()
		leave()
	}
	// 36 events a step.
	events := float64(b.N * steps * 36)
	b.ReportMetric(events/alone.Seconds(), "events/s-alone")
	b.ReportMetric(events/listened.Seconds(), "events/s-listened")
	b.ReportMetric(100*(1-alone.Seconds()/listened.Seconds()), "cost-%")
}

func step(b *testing.B, s *outcrop.Session, turn int) {
	b.Helper()
	add := func(p outcrop.LogPayload) {
		if _, err := s.Append(p); err != nil {
			b.Fatal(err)
		}
	}
	add(outcrop.TurnStart{Turn: turn})
	add(outcrop.StepStart{Turn: turn, Step: 1})
	if _, err := s.AppendSurface(user("Say something of some length, please."), outcrop.Tail, outcrop.NoSources); err != nil {
		b.Fatal(err)
	}
	first := outcrop.Seq(s.Len())
	for range 30 {
		add(outcrop.AssistantChunk{Turn: turn, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: "some words "}})
	}
	_, err := s.AppendSurface(outcrop.AssistantMessage{Turn: turn, Step: 1, Message: message.Message{ID: "a", Role: message.Assistant, Source: message.FromModel("p", "m"),
		Content: []message.Block{message.Text(strings.Repeat("some words ", 30))}}}, outcrop.Tail, outcrop.SourceRange(first, outcrop.Seq(s.Len()-1)))
	if err != nil {
		b.Fatal(err)
	}
	add(outcrop.StepEnd{Turn: turn, Step: 1})
	add(outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
}

// BenchmarkLiveEvent is how long an event takes from its commit to a listener.
// The limit is the pause between two frames, and for a session of another
// process the time between two looks at the log.
func BenchmarkLiveEvent(b *testing.B) {
	for _, here := range []bool{true, false} {
		b.Run(map[bool]string{true: "this process", false: "another process"}[here], func(b *testing.B) {
			w := newWorld(b, options{noToken: true, script: working})
			l := w.live("s1")
			if err := storetest.Turn(l.Session(), 1); err != nil {
				b.Fatal(err)
			}
			if err := l.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
			run, err := w.run.Run(context.Background(), "s1", "", nil)
			if err != nil {
				b.Fatal(err)
			}
			if here {
				end, err := w.v.Host(run, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer end()
			}
			s := w.listen("/api/v1/sessions/s1/live", "")
			s.until(named("hello"))
			for b.Loop() {
				if _, err := run.Session().Append(outcrop.OutcropTag{Tag: "a", Set: true}); err != nil {
					b.Fatal(err)
				}
				if !here {
					if err := run.(*ran).Flush(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				s.until(through(run.Session().Len() - 1))
			}
			s.close()
			if err := run.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
