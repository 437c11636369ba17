// Package tty is a terminal that a program shares with its scrollback: finished
// output is printed and belongs to the terminal from then on, and below it a few
// lines stay live and are drawn again when they change.
//
// # Screen
//
//	finished output       printed once, with line wrap on, so that a long line
//	finished output       can be copied as one and is wrapped anew on a resize
//	live line             drawn with line wrap off: a line that is too long is
//	live line  [cursor]   cut and cannot push the others down
//
// A Screen writes what finished and what is live in one piece (a synchronized
// update, where the terminal knows it), so nothing flickers and nothing stands
// there twice. It is drawn at the cursor; no alternate screen, no absolute
// place: what was above stays above.
//
// # Keys
//
// A Decoder turns what a terminal sends into keys: text, control keys, the
// sequences of arrow and function keys, the key codes of terminals that send
// those (CSI u), and pastes, which come as one key and submit nothing.
//
// # Terminal
//
// A Terminal puts the two on a device in raw mode and tells when its size
// changed. Release gives the device back as it was.
package tty

import (
	"io"
	"os"
	"sync"
	"time"
)

// What the terminal is told at the beginning and at the end: bracketed paste,
// and key codes that tell Enter from Ctrl-Enter. A terminal that does not know
// one passes over it.
const (
	begin = "\x1b[?2004h\x1b[>1u"
	end   = "\x1b[<u\x1b[?2004l\x1b[?7h\x1b[?25h"
)

// escapeWait is how long an escape character may stand alone before it is the
// Escape key: sequences come in one piece.
const escapeWait = 40 * time.Millisecond

// Terminal is a device in raw mode. Keys and Resized are read by one goroutine.
type Terminal struct {
	in, out *os.File

	keys    chan Key
	resized chan struct{}
	done    chan struct{}
	once    sync.Once
	state   *rawState
	watch   func() // stops telling of resizes
}

// Open puts a terminal into raw mode and begins to read it.
func Open(in, out *os.File) (*Terminal, error) {
	t := &Terminal{in: in, out: out, keys: make(chan Key), resized: make(chan struct{}, 1), done: make(chan struct{})}
	if err := t.Take(); err != nil {
		return nil, err
	}
	go t.read()
	return t, nil
}

// Take puts the device into raw mode again after Release.
func (t *Terminal) Take() error {
	state, err := makeRaw(t.in, t.out)
	if err != nil {
		return err
	}
	t.state = state
	t.watch = watchSize(t.out, t.resized)
	_, err = io.WriteString(t.out, begin)
	return err
}

// Release gives the device back as it was. Take takes it again.
func (t *Terminal) Release() error {
	if t.state == nil {
		return nil
	}
	t.watch()
	_, err := io.WriteString(t.out, end)
	if rerr := t.state.restore(); err == nil {
		err = rerr
	}
	t.state = nil
	return err
}

// Close is Release for good. The read that is under way ends with the process.
func (t *Terminal) Close() error {
	t.once.Do(func() { close(t.done) })
	return t.Release()
}

// Keys is what is typed. It is closed when the terminal is gone.
func (t *Terminal) Keys() <-chan Key { return t.keys }

// Resized tells that the size may have changed.
func (t *Terminal) Resized() <-chan struct{} { return t.resized }

// Size is the size in columns and rows; 80 and 24 when nobody knows.
func (t *Terminal) Size() (cols, rows int) {
	cols, rows, err := sizeOf(t.out)
	if err != nil || cols <= 0 || rows <= 0 {
		return 80, 24
	}
	return cols, rows
}

// Write writes to the device.
func (t *Terminal) Write(b []byte) (int, error) { return t.out.Write(b) }

func (t *Terminal) read() {
	defer close(t.keys)
	var d Decoder
	bytes := make(chan []byte)
	go func() {
		defer close(bytes)
		for {
			b := make([]byte, 4096)
			n, err := t.in.Read(b)
			if n > 0 {
				select {
				case bytes <- b[:n]:
				case <-t.done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		var alone <-chan time.Time
		if d.Waiting() {
			alone = time.After(escapeWait)
		}
		var keys []Key
		select {
		case b, ok := <-bytes:
			if !ok {
				return
			}
			keys = d.Feed(b)
		case <-alone:
			keys = d.Flush()
		case <-t.done:
			return
		}
		for _, k := range keys {
			select {
			case t.keys <- k:
			case <-t.done:
				return
			}
		}
	}
}
