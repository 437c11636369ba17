package viewer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Address is what a person opens in a browser to see a server that listens on
// HOST:PORT, with the token that the page trades for its cookie.
func Address(addr, token string) string {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
			host = "localhost"
		}
		addr = net.JoinHostPort(host, port)
	}
	url := "http://" + addr + "/"
	if token != "" {
		url += "#k=" + token
	}
	return url
}

// Companion shows the session of another part of the program, such as a chat in
// the terminal, in a browser. Its Ask asks the people there; with FirstOf both
// can be asked.
type Companion struct {
	Ask *Ask
	// URL is what a person opens.
	URL string

	v     *Viewer
	stop  context.CancelFunc
	ended chan error

	mu  sync.Mutex
	end func() // hides what is shown
}

// Beside serves o on a listener until Close. Its address is o.Addr, that of the
// listener when it is "".
func Beside(l net.Listener, o Options) (*Companion, error) {
	if o.Addr == "" {
		o.Addr = l.Addr().String()
	}
	v, err := New(o)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Companion{Ask: NewAsk(), URL: Address(o.Addr, o.Token), v: v, stop: stop, ended: make(chan error, 1)}
	go func() { c.ended <- Serve(ctx, l, v) }()
	return c, nil
}

// Show shows a session in the place of the one that was shown before; nil shows
// none. It must be hidden, by this or by Close, before it is closed.
func (c *Companion) Show(r Running) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		c.end()
		c.end = nil
	}
	if r == nil {
		return nil
	}
	end, err := c.v.Host(r, c.Ask)
	if err != nil {
		return err
	}
	c.v.beside.Store(&[]string{r.Session().ID()}[0])
	c.end = func() {
		c.v.beside.Store(nil)
		end()
	}
	return nil
}

// Close hides the session and ends the server.
func (c *Companion) Close() error {
	err := c.Show(nil)
	c.stop()
	return errors.Join(err, <-c.ended)
}
