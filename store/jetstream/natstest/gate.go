package natstest

import (
	"net"
	"sync"
	"testing"
)

// Gate is a way to one server that a test can close, in one direction or both.
// What a closed direction swallows is lost, though the connection stays.
type Gate struct {
	in net.Listener
	to string

	mu         sync.Mutex
	mute, deaf bool
	down       bool
	lost       int64
	conns      map[net.Conn]bool
}

// Gate makes a way to a server; it ends with the test.
func (c *Cluster) Gate(t testing.TB, i int) *Gate {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{in: in, to: c.nodes[i].client, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		in.Close()
		g.Cut()
	})
	go func() {
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			go g.serve(c)
		}
	}()
	return g
}

// Address is the address of a realm by way of the gate.
func (g *Gate) Address(name string) string { return "nats://" + g.in.Addr().String() + "/" + name }

// Mute swallows what clients send.
func (g *Gate) Mute(on bool) { g.set(&g.mute, on) }

// Deaf swallows what the server sends.
func (g *Gate) Deaf(on bool) { g.set(&g.deaf, on) }

// Shut ends the connections and takes none, or takes them again.
func (g *Gate) Shut(on bool) {
	g.set(&g.down, on)
	if on {
		g.Cut()
	}
}

// Swallowed is how many bytes were lost in the gate.
func (g *Gate) Swallowed() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost
}

func (g *Gate) set(what *bool, on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*what = on
}

// Cut ends the connections. New ones can be made.
func (g *Gate) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		c.Close()
	}
}

func (g *Gate) add(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.down {
		g.conns[c] = true
	}
	return !g.down
}

func (g *Gate) serve(c net.Conn) {
	defer c.Close()
	d, err := net.Dial("tcp", g.to)
	if err != nil {
		return
	}
	defer d.Close()
	if !g.add(c) || !g.add(d) {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.pass(d, c, &g.mute)
		d.Close()
	}()
	g.pass(c, d, &g.deaf)
	c.Close()
	<-done
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
	delete(g.conns, d)
}

func (g *Gate) pass(to, from net.Conn, closed *bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		g.mu.Lock()
		swallow := *closed
		if swallow {
			g.lost += int64(n)
		}
		g.mu.Unlock()
		if n > 0 && !swallow {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
