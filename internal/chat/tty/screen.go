package tty

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// Frame is what is live: lines, and where the cursor stands in them. Lines hold
// nothing but text that is safe to print and colours.
type Frame struct {
	Lines    []string
	Row, Col int
}

// Screen draws frames below what it printed. It belongs to one goroutine.
type Screen struct {
	w          io.Writer
	cols, rows int

	drawn  []string // the live lines that stand there
	at     int      // the one with the cursor
	atCol  int
	forget bool // what stands there is not known: draw everything
}

// NewScreen makes a screen whose cursor stands at the beginning of a free line.
func NewScreen(w io.Writer, cols, rows int) *Screen {
	return &Screen{w: w, cols: max(cols, 1), rows: max(rows, 1)}
}

// Size is the size in columns and rows.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// MaxLive is how many live lines have room.
func (s *Screen) MaxLive() int { return max(s.rows-1, 1) }

const (
	syncOn   = "\x1b[?2026h"
	syncOff  = "\x1b[?2026l"
	hide     = "\x1b[?25l"
	show     = "\x1b[?25h"
	wrapOn   = "\x1b[?7h"
	wrapOff  = "\x1b[?7l"
	eraseEnd = "\x1b[J" // to the end of the screen
	eraseRow = "\x1b[K" // to the end of the row
)

// Draw prints finished lines above and makes f the live lines. With nothing new
// it writes nothing.
func (s *Screen) Draw(above []string, f Frame) error {
	f = s.fit(f)
	if len(above) == 0 && !s.forget && equal(s.drawn, f.Lines) && s.at == f.Row && s.atCol == f.Col {
		return nil
	}
	var b bytes.Buffer
	b.WriteString(syncOn + hide)
	up(&b, s.at)
	b.WriteByte('\r')
	if len(above) > 0 || s.forget {
		b.WriteString(eraseEnd + wrapOn)
		for _, l := range above {
			b.WriteString(l)
			b.WriteString("\r\n")
		}
		s.drawn = nil
	}
	b.WriteString(wrapOff)
	for i, l := range f.Lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if i < len(s.drawn) && s.drawn[i] == l {
			continue
		}
		b.WriteString(l)
		if i < len(s.drawn) {
			b.WriteString(eraseRow)
		}
	}
	if len(s.drawn) > len(f.Lines) {
		if len(f.Lines) > 0 {
			b.WriteString("\r\n" + eraseEnd)
			up(&b, 1)
		} else {
			b.WriteString(eraseEnd)
		}
	}
	up(&b, max(len(f.Lines)-1, 0)-f.Row)
	b.WriteByte('\r')
	if f.Col > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(f.Col) + "C")
	}
	b.WriteString(wrapOn + show + syncOff)
	s.drawn, s.at, s.atCol, s.forget = f.Lines, f.Row, f.Col, false
	_, err := s.w.Write(b.Bytes())
	return err
}

// fit cuts a frame to the room that there is: the lines around the cursor stay.
func (s *Screen) fit(f Frame) Frame {
	f.Row = min(max(f.Row, 0), max(len(f.Lines)-1, 0))
	f.Col = min(max(f.Col, 0), s.cols-1)
	if n := len(f.Lines) - s.MaxLive(); n > 0 {
		first := min(n, f.Row)
		f.Lines = f.Lines[first : first+s.MaxLive()]
		f.Row -= first
	}
	return f
}

// Resize takes the new size. Terminals wrap anew what stands there; the rows
// that the live lines take now are counted, so that they can be taken away.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = max(cols, 1), max(rows, 1)
	if cols == s.cols && rows == s.rows {
		return
	}
	above := 0
	for i, l := range s.drawn {
		width := min(term.Visible(l), s.cols)
		if i == s.at {
			// A cursor behind the text stays in the text's last row.
			above += min(s.atCol, max(width-1, 0)) / cols
			break
		}
		above += max((width+cols-1)/cols, 1)
	}
	s.at = min(above, rows-1)
	s.cols, s.rows, s.forget = cols, rows, true
}

// Redraw makes the next Draw write everything again.
func (s *Screen) Redraw() { s.forget = true }

// Clear empties the screen; the scrollback stays.
func (s *Screen) Clear() error {
	s.drawn, s.at, s.atCol, s.forget = nil, 0, 0, true
	_, err := io.WriteString(s.w, "\x1b[H\x1b[2J")
	return err
}

// End takes the live lines away: the cursor stands where they began.
func (s *Screen) End() error {
	var b bytes.Buffer
	up(&b, s.at)
	b.WriteString("\r" + eraseEnd)
	s.drawn, s.at, s.atCol = nil, 0, 0
	_, err := s.w.Write(b.Bytes())
	return err
}

func up(b *bytes.Buffer, n int) {
	if n > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
}

func equal(a, b []string) bool {
	return len(a) == len(b) && strings.Join(a, "\n") == strings.Join(b, "\n")
}
