package viewer_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/viewer"
)

// pipes is a listener whose connections are pipes, so that a test's clock counts
// for them.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7070} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// inTime runs f with a server over one session in memory, on a clock of its own.
func inTime(t *testing.T, f func(t *testing.T, p *pipes, l *store.Live)) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		l, err := store.Create(t.Context(), st, storetest.Header("s1"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := storetest.Turn(l.Session(), 1); err != nil {
			t.Fatal(err)
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, err := viewer.New(viewer.Options{Store: st, Addr: "127.0.0.1:7070", Now: func() int64 { return time.Now().UnixMilli() },
			NewID: func() string { return "x" }, Random: func([]byte) {}})
		if err != nil {
			t.Fatal(err)
		}
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- viewer.Serve(ctx, p, v) }()
		f(t, p, l)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// ending is when the other side ends a connection, and what it said before.
func ending(c net.Conn) (after time.Duration, said string) {
	began := time.Now()
	b, _ := io.ReadAll(c)
	return time.Since(began), string(b)
}

func TestWhatDoesNotComeEndsItsConnection(t *testing.T) {
	for _, c := range []struct {
		name, sent string
		after      time.Duration
		answer     string
	}{
		{"half a header", "GET / HTTP/1.1\r\nHost: ", 10 * time.Second, ""},
		{"half a body", "POST /api/v1/token HTTP/1.1\r\nHost: 127.0.0.1:7070\r\nX-Outcrop: 1\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n\r\n{", 30 * time.Second, "HTTP/1.1 400"},
		{"nothing behind an answer", "GET /favicon.svg HTTP/1.1\r\nHost: 127.0.0.1:7070\r\n\r\n", 120 * time.Second, "HTTP/1.1 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, p *pipes, _ *store.Live) {
				conn := p.dial()
				defer conn.Close()
				if _, err := conn.Write([]byte(c.sent)); err != nil {
					t.Fatal(err)
				}
				after, said := ending(conn)
				if after < c.after || after > c.after+time.Second || !strings.HasPrefix(said, c.answer) {
					t.Errorf("ended after %v with %.100q", after, said)
				}
			})
		})
	}
}

// A page that does not read is left behind, and then its connection ends; who
// writes the session never waits for it.
func TestAPageThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	inTime(t, func(t *testing.T, p *pipes, l *store.Live) {
		slow, fast := p.dial(), p.dial()
		defer slow.Close()
		defer fast.Close()
		for _, c := range []net.Conn{slow, fast} {
			if _, err := fmt.Fprint(c, "GET /api/v1/sessions/s1/live HTTP/1.1\r\nHost: 127.0.0.1:7070\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		in := bufio.NewReader(fast)
		until(t, in, "event: hello")
		began := time.Now()
		for n := 2; n < 100; n++ {
			if err := storetest.Turn(l.Session(), n); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the writer waited %v", waited)
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := fmt.Sprintf(`"last":%d`, l.Session().Len()-1)
		until(t, in, last)
		began = time.Now()
		for {
			// The fast page goes on to be told; the slow one is given up.
			until(t, in, "event: ping")
			if time.Since(began) > time.Minute {
				break
			}
		}
		_, said := ending(slow)
		if strings.Contains(said, last) {
			t.Error("the page that did not read was sent everything")
		}
	})
}

// until reads lines up to one that contains a text.
func until(t *testing.T, in *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%v while waiting for %s", err, text)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

func TestAStreamSaysThatItIsThereEveryTenSeconds(t *testing.T) {
	inTime(t, func(t *testing.T, p *pipes, _ *store.Live) {
		for _, path := range []string{"/api/v1/sessions/s1/live", "/api/v1/live"} {
			conn := p.dial()
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:7070\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			until(t, in, "event: hello")
			for range 5 {
				began := time.Now()
				until(t, in, "event: ping")
				if since := time.Since(began); since < 9*time.Second || since > 11*time.Second {
					t.Errorf("%s: a ping after %v", path, since)
				}
			}
			conn.Close()
		}
	})
}
