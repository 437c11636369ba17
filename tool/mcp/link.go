package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// link is one connection to a server: a program that runs, or an HTTP session.
type link struct {
	s       *server
	session *sdk.ClientSession
	lost    chan struct{} // closed when the SDK's connection has ended
	suspect atomic.Bool   // a call was given up: it must show that it lives

	proc *process // one of these two
	web  *web
	left allowance

	changed sync.Once
}

// olderProtocol is what a server is greeted with when it does not take the
// newest greeting: some end at a first message that they do not know.
const olderProtocol = "2025-11-25"

// dial opens a connection. It tries the newest protocol first, for half the
// time.
func (s *server) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.times.connect)
	defer cancel()
	first, cancelFirst := context.WithTimeout(ctx, s.o.times.connect/2)
	defer cancelFirst()
	l, err := s.dialWith(first, "")
	var started *errStart
	var refused *errRefused
	if err == nil || errors.As(err, &started) || errors.As(err, &refused) || ctx.Err() != nil {
		return l, err
	}
	s.log.Debug("mcp server does not take the newest protocol; trying an older one", "server", s.Name, "err", err)
	return s.dialWith(ctx, olderProtocol)
}

func (s *server) dialWith(ctx context.Context, protocol string) (*link, error) {
	l := &link{s: s, lost: make(chan struct{})}
	l.left.refill()
	var transport sdk.Transport
	if s.URL != "" {
		w, err := newWeb(s.Server, s.transport, &l.left)
		if err != nil {
			return nil, err
		}
		l.web = w
		// Without a stream of its own nothing comes unasked, and no goroutine
		// waits for it.
		transport = &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: w.client(), DisableStandaloneSSE: true, MaxEventSize: maxLine, MaxRetries: 2}
	} else {
		p, err := start(s.Server, s.o, s.log)
		if err != nil {
			return nil, err
		}
		l.proc = p
		odd := 0
		transport = &sdk.IOTransport{
			Reader: readCloser{newLines(p.stdout, &l.left, l.notified, func(line []byte) {
				if odd++; odd <= 10 {
					s.log.Debug("mcp server wrote a line that is no message", "server", s.Name, "bytes", len(line))
				}
			}), p.stdout},
			Writer:        p.stdin,
			MaxLineLength: -1, // lines has its own
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "outcrop", Version: s.o.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // nothing that a server could ask for
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	client.AddReceivingMiddleware(l.receive)
	session, err := guarded(ctx, l, func() (*sdk.ClientSession, error) {
		return client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	})
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	l.session = session
	go func() {
		_ = session.Wait() // why it ended is told to the calls
		close(l.lost)
	}()
	return l, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// receive handles what a server sends by itself, instead of the SDK. A panic
// there would end this process.
func (l *link) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		if strings.HasPrefix(method, "notifications/") {
			l.notified(method)
			return nil, nil
		}
		defer func() {
			if p := recover(); p != nil {
				l.s.log.Error("a request of an mcp server panicked", "server", l.s.Name, "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		return next(ctx, method, req)
	}
}

func (l *link) notified(method string) {
	if method == "notifications/tools/list_changed" {
		l.changed.Do(func() {
			l.s.log.Info("the tools of an mcp server changed; they are taken at the next start", "server", l.s.Name)
		})
	}
}

// guarded runs a function of the SDK beside the caller, since it may block for
// as long as a server does not read what is written to it. Then the link is cut
// and the function ends. A panic becomes an error.
func guarded[T any](ctx context.Context, l *link, f func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				l.s.log.Error("the answer of an mcp server panicked", "server", l.s.Name, "panic", p, "stack", string(debug.Stack()))
				a.err = fmt.Errorf("its answer cannot be read: %v", p)
			}
			done <- a
		}()
		a.v, a.err = f()
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
	}
	t := time.NewTimer(l.s.o.times.stuck)
	defer t.Stop()
	select {
	case a := <-done:
		return a.v, a.err
	case <-t.C:
		l.cut()
		a := <-done
		return a.v, a.err
	}
}

// alive reports whether the connection has not ended yet.
func (l *link) alive() bool {
	select {
	case <-l.lost:
		return false
	default:
		return l.proc == nil || l.proc.how() == ""
	}
}

// answers asks for a sign of life, when there is reason to. An error of the
// protocol is one.
func (l *link) answers(ctx context.Context) bool {
	if !l.suspect.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, l.s.o.times.probe)
	defer cancel()
	_, err := guarded(ctx, l, func() (struct{}, error) { return struct{}{}, l.session.Ping(ctx, nil) })
	if _, said := answered(err); err != nil && !said {
		return false
	}
	l.suspect.Store(false)
	return true
}

// cut ends the connection without ceremony.
func (l *link) cut() {
	if l.web != nil {
		l.web.end()
		return
	}
	_ = l.proc.stop(0) // stop reports it when it is called again
}

// stop ends the connection in good order, within the grace time and a little.
func (l *link) stop() error {
	var err error
	if l.proc != nil {
		err = l.proc.stop(l.s.o.times.grace)
	}
	if l.session != nil {
		closed := make(chan struct{})
		go func() {
			_ = l.session.Close() // the server may be gone
			close(closed)
		}()
		within(closed, l.s.o.times.grace)
	}
	if l.web != nil {
		l.web.end()
	}
	return err
}

// failed describes why a connection could not be made, and ends what there is
// of it. What the program said last is part of it: a person reads this.
func (l *link) failed(ctx context.Context, err error) error {
	text := l.reason(ctx, err)
	if l.proc != nil {
		if ctx.Err() == nil {
			within(l.proc.silent, l.s.o.times.stuck)
		}
		if last := l.proc.said.lastLine(); last != "" {
			text = fmt.Errorf("%w: %s", text, last)
		}
	}
	return errors.Join(text, l.stop())
}

// answered returns the server's own error, when err is one.
func answered(err error) (*jsonrpc.Error, bool) {
	var said *jsonrpc.Error
	if !errors.As(err, &said) || rejected(said) {
		return nil, false
	}
	return said, true
}

// rejected reports the SDK's mark on what its transport did not take or the
// other end refused.
func rejected(err error) bool {
	var said *jsonrpc.Error
	return errors.As(err, &said) && said.Code == -32005 && said.Message == "rejected by transport"
}

// unreadable reports an answer that came and could not be decoded: the
// connection has not ended, and the SDK does not say that anything is missing.
func (l *link) unreadable(err error) bool {
	const missing = "terminated without response"
	return !rejected(err) && !strings.Contains(err.Error(), missing) && !errors.Is(err, sdk.ErrConnectionClosed) &&
		!within(l.lost, l.s.o.times.stuck) && l.alive()
}

// unreachable reports that a server was not there to be asked.
func unreachable(err error) bool {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &cert)
}

// reason is why a connection failed: short, without addresses and layers. A
// program is given a moment to end, so that it can be said how.
func (l *link) reason(ctx context.Context, err error) error {
	var refused *errRefused
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	var errno syscall.Errno
	var u *url.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errors.New("it did not answer in time")
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, errTooMuch):
		return errTooMuch
	case l.proc != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || !l.alive()) && within(l.proc.exited, l.s.o.times.stuck):
		return errors.New("it ended (" + l.proc.how() + ")")
	case errors.As(err, &cert):
		return fmt.Errorf("certificate not trusted: %w", cert.Err)
	case errors.As(err, &u) && l.web != nil:
		cause := u.Err
		if errors.As(err, &dns) {
			cause = errors.New(dns.Err)
		} else if errors.As(err, &errno) {
			cause = errno
		}
		if unreachable(err) {
			return fmt.Errorf("cannot reach %s: %w", l.web.host, cause)
		}
		return fmt.Errorf("the connection broke: %w", cause)
	}
	return errors.New(clip(printable(err.Error()), 400))
}
