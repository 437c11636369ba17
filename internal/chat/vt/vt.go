// Package vt is a terminal in memory for tests: it obeys what package tty sends
// and shows what a person would see, with the scrollback. Anything that it does
// not know is a fault: nothing that a model wrote may steer a terminal.
package vt

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// Terminal is the terminal. All methods may be called from any goroutine.
type Terminal struct {
	keys    chan tty.Key
	resized chan struct{}

	mu         sync.Mutex
	changed    chan struct{} // closed at the next write
	cols, rows int
	lines      [][]rune // all of them: scrollback, then the screen
	top        int      // the first line of the screen
	row, col   int      // of the cursor, on the screen
	noWrap     bool
	faults     []string
	torn       string // a piece that was cut
	writes     int
}

// New is an empty terminal.
func New(cols, rows int) *Terminal {
	return &Terminal{cols: cols, rows: rows, keys: make(chan tty.Key, 1000), resized: make(chan struct{}, 1),
		changed: make(chan struct{}), lines: make([][]rune, rows)}
}

// Keys, Resized, Size, Take and Release are those of tty.Terminal.
func (t *Terminal) Keys() <-chan tty.Key     { return t.keys }
func (t *Terminal) Resized() <-chan struct{} { return t.resized }
func (t *Terminal) Take() error              { return nil }
func (t *Terminal) Release() error           { return nil }

func (t *Terminal) Size() (cols, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cols, t.rows
}

// Resize gives the terminal another size. What stands there is not wrapped anew;
// the lines below the new height are gone.
func (t *Terminal) Resize(cols, rows int) {
	t.mu.Lock()
	if n := t.row - rows + 1; n > 0 {
		t.top += n
		t.row -= n
	}
	t.lines = t.lines[:min(len(t.lines), t.top+rows)]
	for len(t.lines) < t.top+rows {
		t.lines = append(t.lines, nil)
	}
	t.cols, t.rows = cols, rows
	t.mu.Unlock()
	t.resized <- struct{}{}
}

// Type presses keys.
func (t *Terminal) Type(keys ...tty.Key) {
	for _, k := range keys {
		t.keys <- k
	}
}

// Text types characters.
func (t *Terminal) Text(s string) {
	for _, r := range s {
		t.Type(tty.Key{Name: tty.Text, Text: string(r)})
	}
}

// Line types characters and Enter.
func (t *Terminal) Line(s string) {
	t.Text(s)
	t.Type(tty.Key{Name: tty.Enter})
}

// Write obeys.
func (t *Terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	s := t.torn + string(b)
	t.torn = ""
	for s != "" {
		n := t.obey(s)
		if n == 0 {
			t.torn = s
			break
		}
		s = s[n:]
	}
	close(t.changed)
	t.changed = make(chan struct{})
	return len(b), nil
}

// obey takes the first thing of s and returns its length, 0 when it is cut.
func (t *Terminal) obey(s string) int {
	switch c := s[0]; {
	case c == '\r':
		t.col = 0
	case c == '\n':
		t.down()
	case c == 0x1b:
		return t.sequence(s)
	case c < 0x20 || c == 0x7f:
		t.faults = append(t.faults, fmt.Sprintf("control character %#x", c))
	default:
		if !utf8.FullRuneInString(s) {
			return 0
		}
		r, n := utf8.DecodeRuneInString(s)
		t.put(r)
		return n
	}
	return 1
}

func (t *Terminal) down() {
	if t.row++; t.row == t.rows {
		t.row--
		t.top++
		t.lines = append(t.lines, nil)
	}
}

func (t *Terminal) put(r rune) {
	w := term.RuneColumns(r)
	if w == 0 {
		return // marks are not kept
	}
	if t.col+w > t.cols {
		if t.noWrap {
			return
		}
		t.col = 0
		t.down()
	}
	l := t.lines[t.top+t.row]
	for len(l) < t.col+w {
		l = append(l, ' ')
	}
	l[t.col] = r
	if w == 2 {
		l[t.col+1] = 0
	}
	t.lines[t.top+t.row] = l
	t.col += w
}

func (t *Terminal) sequence(s string) int {
	if len(s) < 2 {
		return 0
	}
	if s[1] != '[' {
		t.faults = append(t.faults, fmt.Sprintf("escape sequence %q", s[:2]))
		return 2
	}
	i := 2
	for i < len(s) && s[i] >= 0x20 && s[i] < 0x40 {
		i++
	}
	if i == len(s) {
		return 0
	}
	param, final := s[2:i], s[i]
	n, err := strconv.Atoi(param)
	if err != nil {
		n = 1
	}
	line := t.top + t.row
	switch {
	case final == 'm':
	case final == 'A':
		t.row = max(t.row-n, 0)
	case final == 'C':
		t.col = min(t.col+n, t.cols-1)
	case final == 'J' && param == "":
		t.lines[line] = t.lines[line][:min(t.col, len(t.lines[line]))]
		for j := line + 1; j < len(t.lines); j++ {
			t.lines[j] = nil
		}
	case final == 'J' && param == "2":
		for j := t.top; j < len(t.lines); j++ {
			t.lines[j] = nil
		}
	case final == 'H' && param == "":
		t.row, t.col = 0, 0
	case final == 'K' && param == "":
		t.lines[line] = t.lines[line][:min(t.col, len(t.lines[line]))]
	case param == "?7":
		t.noWrap = final == 'l'
	case param == "?25", param == "?2026", param == "?2004":
	default:
		t.faults = append(t.faults, fmt.Sprintf("sequence %q", s[:i+1]))
	}
	return i + 1
}

// String is everything that was shown, scrollback and screen, without the empty
// lines at the end.
func (t *Terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return text(t.lines)
}

// Screen is what is on the screen.
func (t *Terminal) Screen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return text(t.lines[t.top:])
}

// Cursor is where the cursor stands, counted from the first line of String.
func (t *Terminal) Cursor() (row, col int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.top + t.row, t.col
}

// Faults are what no terminal should have been sent.
func (t *Terminal) Faults() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.faults
}

// Writes is how often something was written.
func (t *Terminal) Writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

func text(lines [][]rune) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(strings.ReplaceAll(string(l), "\x00", ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Wait waits until what is shown is as wanted, and returns it; the error is
// that of ctx, with what is shown.
func (t *Terminal) Wait(ctx context.Context, wanted func(all string) bool) (string, error) {
	for {
		t.mu.Lock()
		all, changed := text(t.lines), t.changed
		t.mu.Unlock()
		if wanted(all) {
			return all, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return all, fmt.Errorf("%w; the terminal shows:\n%s", ctx.Err(), all)
		}
	}
}
