package desk

import (
	"io"
	"sync"
)

// diverted is stderr, which a screen may take over for a while.
type diverted struct {
	mu sync.Mutex
	w  io.Writer
}

func (d *diverted) Write(b []byte) (int, error) {
	d.mu.Lock()
	w := d.w
	d.mu.Unlock()
	return w.Write(b)
}

// Divert sends what goes to stderr, the program's own log too, to w until back
// is called: a screen that is drawn must not be written into.
func (a *Desk) Divert(w io.Writer) (back func()) {
	d, ok := a.ErrOut.(*diverted)
	if !ok {
		return func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.w
	d.w = w
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.w = before
	}
}
