package markdown

import (
	"strings"

	"github.com/outcrop-dev/outcrop/internal/term"
)

type kind int

const (
	none kind = iota
	paragraph
	item
	quote
	table
	fence
)

// block is what is being put together.
type block struct {
	kind   kind
	lines  []string
	size   int
	indent string // what stands before the further lines of an item
	first  string // what stands before its first one
	mark   string // what ends a fence
	inside bool   // a part of a line of the fence is shown already
}

func (b *block) empty() bool  { return b.kind == none || b.kind == fence }
func (b *block) fenced() bool { return b.kind == fence }

func (b block) clone() block {
	b.lines = append([]string(nil), b.lines...)
	return b
}

func (b *block) add(line string) {
	b.lines = append(b.lines, line)
	b.size += len(line) + 1
}

// line takes one complete line.
func (s *Stream) line(l string) {
	l = strings.TrimRight(l, " \r")
	if s.block.kind == fence {
		s.code(l)
		return
	}
	text := strings.TrimLeft(l, " ")
	depth := len(l) - len(text)
	switch {
	case text == "":
		s.endBlock()
		s.emit("")
	case fenceMark(text) != "":
		s.endBlock()
		s.block = block{kind: fence, mark: fenceMark(text)}
		if lang := strings.TrimSpace(strings.TrimLeft(text, "`~")); lang != "" {
			s.emit(s.style.Dim("  " + term.Cut(lang, s.width-2)))
		}
	case heading(text) > 0:
		s.endBlock()
		if !s.style {
			s.spread(text, "", "", 0)
			return
		}
		s.spread(strings.TrimSpace(strings.Trim(text, "#")), "", "", bold)
	case rule(text):
		s.endBlock()
		s.emit(s.style.Dim(strings.Repeat("─", min(s.width, 40))))
	case text[0] == '>':
		if s.block.kind != quote {
			s.endBlock()
			s.block = block{kind: quote, first: "│ ", indent: "│ "}
		}
		s.grow(strings.TrimPrefix(strings.TrimPrefix(text, ">"), " "))
	case text[0] == '|':
		if s.block.kind != table {
			s.endBlock()
			s.block = block{kind: table}
		}
		s.block.add(text)
		if len(s.block.lines) >= maxRows || s.block.size > 8*maxBlock {
			s.endBlock()
		}
	case marker(text) != "":
		s.endBlock()
		s.beginItem(text, depth)
	case s.block.kind == item && depth > 0, s.block.kind == paragraph:
		s.grow(text)
	default:
		s.endBlock()
		s.block = block{kind: paragraph}
		s.grow(text)
	}
}

// part takes a piece of a line that is too long to wait for.
func (s *Stream) part(l string) {
	if s.block.kind == fence {
		s.emit(s.style.Cyan("  " + l))
		s.block.inside = true
		return
	}
	if s.block.kind == none || s.block.kind == table {
		s.endBlock()
		s.block = block{kind: paragraph}
	}
	s.grow(l)
}

// grow adds a line to the block; of a long block what is before it is let go.
func (s *Stream) grow(l string) {
	if s.block.size+len(l) > maxBlock && len(s.block.lines) > 0 {
		s.flush()
	}
	s.block.add(l)
}

func (s *Stream) beginItem(text string, depth int) {
	m := marker(text)
	lead := strings.Repeat("  ", min(depth/2, 6))
	s.block = block{kind: item, first: lead + m + " ", indent: lead + strings.Repeat(" ", term.Columns(m)+1)}
	if len(s.block.indent) > s.width/2 {
		s.block.first, s.block.indent = m+" ", "  "
	}
	s.block.add(strings.TrimLeft(text[len(m):], " "))
}

// code takes a line inside a fence.
func (s *Stream) code(l string) {
	if text := strings.TrimLeft(l, " "); !s.block.inside && strings.HasPrefix(text, s.block.mark) && strings.Trim(text, s.block.mark[:1]) == "" {
		s.block = block{}
		return
	}
	s.block.inside = false
	if l == "" { // those of code all stay
		s.owed++
		return
	}
	s.emit(s.style.Cyan("  " + l))
}

// endBlock finishes the block that there is.
func (s *Stream) endBlock() {
	if s.block.kind == fence {
		return
	}
	s.flush()
	s.block = block{}
}

// flush shows the lines of the block.
func (s *Stream) flush() {
	b := &s.block
	if len(b.lines) == 0 {
		return
	}
	if b.kind == table {
		s.table(b.lines)
	} else {
		s.spread(strings.Join(b.lines, "\n"), b.first, b.indent, 0)
	}
	b.lines, b.size, b.first = nil, 0, b.indent
}

// spread shows text of several lines, wrapped: first stands before the first
// line, indent before each other.
func (s *Stream) spread(text, first, indent string, base attr) {
	lead := first
	for _, l := range wrap(parse(text, base, bool(s.style)), s.width-max(term.Columns(first), term.Columns(indent))) {
		s.emit(strings.TrimRight(s.paintLead(lead)+s.paint(l), " "))
		lead = indent
	}
}

func (s *Stream) paintLead(lead string) string {
	if strings.HasPrefix(lead, "│") {
		return s.style.Dim(lead)
	}
	return lead
}

// fenceMark is the mark that opens a block of code, or "".
func fenceMark(text string) string {
	for _, c := range [...]string{"`", "~"} {
		n := len(text) - len(strings.TrimLeft(text, c))
		if n >= 3 && (c == "~" || !strings.Contains(text[n:], "`")) {
			return strings.Repeat(c, n)
		}
	}
	return ""
}

// heading is the level of a heading, 0 for none.
func heading(text string) int {
	n := len(text) - len(strings.TrimLeft(text, "#"))
	if n > 6 || n > 0 && n < len(text) && text[n] != ' ' || n == len(text) {
		return 0
	}
	return n
}

func rule(text string) bool {
	c := text[0]
	if c != '-' && c != '*' && c != '_' {
		return false
	}
	bare := strings.ReplaceAll(text, " ", "")
	return len(bare) >= 3 && strings.Trim(bare, string(c)) == ""
}

// marker is what begins an item of a list, without the space behind it, or "".
func marker(text string) string {
	if len(text) > 1 && strings.IndexByte("-*+", text[0]) >= 0 && text[1] == ' ' {
		return text[:1]
	}
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n > 0 && n < 10 && n+1 < len(text) && (text[n] == '.' || text[n] == ')') && text[n+1] == ' ' {
		return text[:n+1]
	}
	return ""
}
