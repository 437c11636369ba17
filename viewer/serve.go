package viewer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the server. Times are those that a request may take at most.
const (
	headerWithin = 10 * time.Second
	idleWithin   = 2 * time.Minute
	maxHeader    = 64 << 10
	// mostConnections are open at a time; further ones wait.
	mostConnections = 512
	// stopWithin is how long requests may go on when the server stops.
	stopWithin = 5 * time.Second
)

// Serve serves a Viewer on a listener, whose address is that of Options.Addr,
// until ctx ends. Then it ends the streams, lets agents save what they did, and
// returns nil. The listener is closed.
func Serve(ctx context.Context, l net.Listener, v *Viewer) error {
	s := &http.Server{
		Handler: v, ReadHeaderTimeout: headerWithin, IdleTimeout: idleWithin, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(v.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(&limited{Listener: l, room: make(chan struct{}, mostConnections)}) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	err = errors.Join(err, v.Close(stop))
	if s.Shutdown(stop) != nil {
		_ = s.Close()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// limited is a listener with a limit of connections.
type limited struct {
	net.Listener
	room chan struct{}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	l.room <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &counted{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// counted is a connection of a limited listener.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
