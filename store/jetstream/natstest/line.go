package natstest

import (
	"io"
	"net"
	"sync"
)

// line passes bytes between one server and another one, until it is cut.
type line struct {
	in net.Listener
	to string

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

func newLine(to string) (*line, error) {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &line{in: in, to: to, conns: map[net.Conn]bool{}}
	go l.accept()
	return l, nil
}

func (l *line) address() string { return l.in.Addr().String() }

func (l *line) accept() {
	for {
		c, err := l.in.Accept()
		if err != nil {
			return
		}
		go l.pass(c)
	}
}

func (l *line) pass(c net.Conn) {
	defer c.Close()
	if !l.add(c) {
		return
	}
	defer l.drop(c)
	d, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer d.Close()
	if !l.add(d) {
		return
	}
	defer l.drop(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(d, c)
		d.Close()
	}()
	io.Copy(c, d)
	c.Close()
	<-done
}

func (l *line) add(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return false
	}
	l.conns[c] = true
	return true
}

func (l *line) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// cut ends what runs over the line and lets nothing new through, or mends it.
func (l *line) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	if down {
		for c := range l.conns {
			c.Close()
		}
	}
}

func (l *line) close() {
	l.in.Close()
	l.cut(true)
}
