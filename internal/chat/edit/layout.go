package edit

import (
	"strings"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// layout is the text as rows of a screen.
type layout struct {
	rows     []row
	row, col int // of the cursor
}

// row is a part of the text that is one row.
type row struct{ from, to int }

// View draws the text in rows of at most width columns and says where the
// cursor stands. Of a long text it shows most rows around the cursor.
func (e *Editor) View(width, most int) (lines []string, cursorRow, cursorCol int) {
	if width = max(width, 2); width != e.width {
		e.width, e.shaped = width, false
	}
	l := e.layout()
	first := 0
	if n := len(l.rows) - most; n > 0 {
		first = min(max(l.row-most/2, 0), n)
	}
	for _, r := range l.rows[first:min(first+most, len(l.rows))] {
		var b strings.Builder
		for _, c := range e.text[r.from:r.to] {
			b.WriteString(shown(c))
		}
		lines = append(lines, b.String())
	}
	return lines, l.row - first, l.col
}

// layout wraps the text; it is kept until the text, the cursor or the width
// changes.
func (e *Editor) layout() *layout {
	if e.shaped {
		return &e.shape
	}
	if e.width == 0 { // it was never drawn
		e.width = term.Width
	}
	var l layout
	width := e.width
	from, col := 0, 0
	end := func(i int) {
		l.rows = append(l.rows, row{from, i})
		from, col = i, 0
	}
	for i := 0; i <= len(e.text); i++ {
		w := 0
		if i < len(e.text) && e.text[i] != '\n' {
			w = columns(e.text[i])
		}
		// The cursor behind the last column stands at the beginning of the next
		// row.
		if col+w > width || i == len(e.text) && i == e.at && col == width {
			end(i)
		}
		if i == e.at {
			l.row, l.col = len(l.rows), col
			if col == width { // before a line break that stands in the last column
				l.col = width - 1
			}
		}
		if i == len(e.text) {
			break
		}
		if e.text[i] == '\n' {
			end(i)
			from = i + 1
			continue
		}
		col += w
	}
	end(len(e.text))
	e.shape, e.shaped = l, true
	return &e.shape
}

// vertical moves by a row; at the first and the last row it goes through the
// history.
func (e *Editor) vertical(up bool) bool {
	l := e.layout()
	to := l.row + 1
	if up {
		to = l.row - 1
	}
	if to < 0 {
		return e.recall(e.History.Older)
	}
	if to >= len(l.rows) {
		return e.recall(func(string) (string, bool) { return e.History.Newer() })
	}
	goal := e.goal
	if goal < 0 {
		goal = l.col
	}
	r, col := l.rows[to], 0
	i := r.from
	for i < r.to {
		w := columns(e.text[i])
		if col+w > goal {
			break
		}
		col += w
		i++
	}
	// A row that goes on in the next one has no place behind its last character.
	if i == r.to && i > r.from && to+1 < len(l.rows) && l.rows[to+1].from == i {
		i = e.prev(i)
	}
	e.at, e.goal, e.shaped = i, goal, false
	return true
}

// columns is how many columns a character takes as it is drawn.
func columns(r rune) int {
	if r >= 0x20 && r < 0x7f {
		return 1
	}
	return term.Columns(shown(r))
}
