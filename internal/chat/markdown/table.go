package markdown

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// table shows the rows of a table. What is no table (one row, no line below the
// head) is shown as it is.
func (s *Stream) table(rows []string) {
	if len(rows) < 2 || !separator(rows[1]) {
		for _, r := range rows {
			s.spread(r, "", "", 0)
		}
		return
	}
	var cells [][][]cell
	most := 0
	for i, r := range rows {
		if i == 1 {
			continue
		}
		base := attr(0)
		if i == 0 && bool(s.style) {
			base = bold
		}
		var row [][]cell
		for _, c := range split(r) {
			row = append(row, parse(c, base, bool(s.style)))
		}
		cells = append(cells, row)
		most = max(most, len(row))
	}
	widths := fitColumns(cells, most, s.width)
	if widths == nil { // too many columns for this screen
		for _, row := range cells {
			for i, c := range row {
				lead := "  "
				if i == 0 {
					lead = ""
				}
				for _, l := range wrap(c, s.width-2) {
					s.emit(lead + s.paint(l))
				}
			}
		}
		return
	}
	for i, row := range cells {
		s.row(row, widths)
		if i == 0 {
			var line []string
			for _, w := range widths {
				line = append(line, strings.Repeat("─", w))
			}
			s.emit(s.style.Dim(strings.Join(line, "─┼─")))
		}
	}
}

// row shows one row; cells that are too long take several lines.
func (s *Stream) row(row [][]cell, widths []int) {
	var parts [][][]cell
	height := 1
	for i, c := range row {
		lines := wrap(c, widths[i])
		parts = append(parts, lines)
		height = max(height, len(lines))
	}
	bar := s.style.Dim(" │ ")
	for y := range height {
		var b strings.Builder
		for i, w := range widths {
			if i > 0 {
				b.WriteString(bar)
			}
			var c []cell
			if i < len(parts) && y < len(parts[i]) {
				c = parts[i][y]
			}
			b.WriteString(s.paint(c))
			if i < len(widths)-1 {
				b.WriteString(strings.Repeat(" ", max(w-columns(c), 0)))
			}
		}
		s.emit(strings.TrimRight(b.String(), " "))
	}
}

// minColumn is the least width of a column of a table.
const minColumn = 5

// fitColumns gives each column its width: what its cells need, or, when that is
// more than there is, less for the widest. nil when there is no room at all.
func fitColumns(cells [][][]cell, n, width int) []int {
	room := width - 3*(n-1)
	if n == 0 || room < n*minColumn {
		return nil
	}
	widths := make([]int, n)
	for i := range widths {
		widths[i] = 1
	}
	total := 0
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], columns(c))
		}
	}
	for _, w := range widths {
		total += w
	}
	for total > room {
		i := slices.Index(widths, slices.Max(widths))
		cut := min(total-room, max(widths[i]-minColumn, 0), max(widths[i]/4, 1))
		if cut == 0 {
			return nil
		}
		widths[i] -= cut
		total -= cut
	}
	return widths
}

func columns(cells []cell) int {
	var b strings.Builder
	for _, c := range cells {
		b.WriteRune(c.r)
	}
	return term.Columns(b.String())
}

// split takes a row apart at its bars; one behind a backslash or in code is
// text.
func split(row string) (cells []string) {
	row = strings.TrimSpace(row)
	row = strings.TrimPrefix(row, "|")
	var b strings.Builder
	inCode := false
	for i := 0; i < len(row); {
		_, size := utf8.DecodeRuneInString(row[i:])
		switch {
		case strings.HasPrefix(row[i:], `\|`):
			b.WriteByte('|')
			i += 2
			continue
		case row[i] == '`':
			inCode = !inCode && strings.Contains(row[i+1:], "`")
		case row[i] == '|' && !inCode:
			cells = append(cells, strings.TrimSpace(b.String()))
			b.Reset()
			i++
			continue
		}
		b.WriteString(row[i : i+size])
		i += size
	}
	if last := strings.TrimSpace(b.String()); last != "" {
		cells = append(cells, last)
	}
	return cells
}

// separator reports the line below the head of a table.
func separator(row string) bool {
	return strings.Contains(row, "-") && strings.Trim(row, "|-: ") == ""
}
