package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// attr says how a character looks.
type attr uint8

const (
	bold attr = 1 << iota
	italic
	struck
	code
	link
)

// cell is one character of a line.
type cell struct {
	r rune
	a attr
}

// parse reads the markup of text. Without style all of it is text.
func parse(text string, base attr, style bool) []cell {
	p := inline{out: make([]cell, 0, len(text))}
	if !style {
		p.plain(text, base)
		return p.out
	}
	p.run(text, base, 0)
	return p.out
}

type inline struct {
	out []cell
	// failed are the marks of which the text that is being read has no closing
	// one any more, so that it is not searched for again and again.
	failed map[string]bool
}

func (p *inline) plain(s string, a attr) {
	for _, r := range s {
		p.out = append(p.out, cell{r, a})
	}
}

// maxNest is how deep markup may stand in markup.
const maxNest = 6

func (p *inline) run(s string, a attr, depth int) {
	outer := p.failed
	p.failed = map[string]bool{}
	defer func() { p.failed = outer }()
	before := rune(' ')
	for len(s) > 0 {
		n := p.markup(s, a, before, depth)
		if n == 0 {
			r, size := utf8.DecodeRuneInString(s)
			p.out = append(p.out, cell{r, a})
			before, n = r, size
		} else {
			before, _ = utf8.DecodeLastRuneInString(s[:n])
		}
		s = s[n:]
	}
}

// markup reads what stands at the beginning of s and returns its length, 0 when
// it is text.
func (p *inline) markup(s string, a attr, before rune, depth int) int {
	switch c := s[0]; c {
	case '\\':
		if len(s) > 1 && strings.IndexByte("\\`*_{}[]()#+-.!~|<>", s[1]) >= 0 {
			p.out = append(p.out, cell{rune(s[1]), a})
			return 2
		}
	case '`':
		return p.code(s, a)
	case '*', '_', '~':
		return p.emphasis(s, a, before, depth)
	case '[':
		return p.link(s, a, depth)
	case '&':
		for _, e := range entities {
			if strings.HasPrefix(s, e.name) {
				p.out = append(p.out, cell{e.r, a})
				return len(e.name)
			}
		}
	}
	return 0
}

var entities = [...]struct {
	name string
	r    rune
}{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}, {"&apos;", '\''}, {"&nbsp;", ' '}}

// code reads `code`. Marks that nothing closes are text, all of them.
func (p *inline) code(s string, a attr) int {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	mark := s[:n]
	for at := n; ; {
		i := strings.Index(s[at:], mark)
		if i < 0 || p.failed[mark] {
			p.failed[mark] = true
			p.plain(mark, a)
			return n
		}
		at += i
		run := len(s[at:]) - len(strings.TrimLeft(s[at:], "`"))
		if run == n {
			inner := s[n:at]
			if trimmed := strings.TrimSpace(inner); trimmed != "" && n > 1 {
				inner = trimmed
			}
			p.plain(inner, a|code)
			return at + n
		}
		at += run
	}
}

// emphasis reads **bold**, *italic*, _italic_ and ~~struck~~.
func (p *inline) emphasis(s string, a attr, before rune, depth int) int {
	if depth >= maxNest {
		return 0
	}
	c := s[:1]
	n := min(len(s)-len(strings.TrimLeft(s, c)), 3)
	how := [...]attr{0, italic, bold, bold | italic}[n]
	if c == "~" {
		if n != 2 {
			return 0
		}
		how = struck
	}
	after, _ := utf8.DecodeRuneInString(s[n:])
	mark := s[:n]
	if after == utf8.RuneError || unicode.IsSpace(after) || (c == "_" || n == 1) && wordRune(before) || p.failed[mark] {
		return 0
	}
	for at := n; ; {
		i := strings.Index(s[at:], mark)
		if i < 0 {
			p.failed[mark] = true
			return 0
		}
		at += i
		run := len(s[at:]) - len(strings.TrimLeft(s[at:], c))
		last, _ := utf8.DecodeLastRuneInString(s[:at])
		next, _ := utf8.DecodeRuneInString(s[at+run:])
		closes := run >= n && !unicode.IsSpace(last) && (c != "_" || !wordRune(next)) && (run == n || run > n && n < 3)
		if run != n && n == 1 && run == 2 { // the bold inside of an italic
			closes = false
		}
		if closes {
			at += run - n
			p.run(s[n:at], a|how, depth+1)
			return at + n
		}
		at += run
	}
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// maxLink is the longest link, in bytes.
const maxLink = 2000

// link reads [text](address) and shows the address too, where it differs.
func (p *inline) link(s string, a attr, depth int) int {
	s = s[:min(len(s), maxLink)]
	end := strings.Index(s, "](")
	if end < 2 || depth >= maxNest || strings.ContainsAny(s[1:end], "[\n") {
		return 0
	}
	stop := strings.IndexByte(s[end:], ')')
	if stop < 3 || strings.ContainsAny(s[end+2:end+stop], "\n(") {
		return 0
	}
	text, address := s[1:end], s[end+2:end+stop]
	p.run(text, a|link, depth+1)
	if address, _, _ = strings.Cut(address, " "); address != text {
		p.plain(" ("+address+")", a)
	}
	return end + stop + 1
}

// wrap breaks cells into lines of at most width columns, at spaces where there
// are any. Line breaks stay.
func wrap(cells []cell, width int) (lines [][]cell) {
	width = max(width, 4)
	for {
		end := 0
		for end < len(cells) && cells[end].r != '\n' {
			end++
		}
		lines = fold(lines, cells[:end], width)
		if end == len(cells) {
			return lines
		}
		cells = cells[end+1:]
	}
}

func fold(lines [][]cell, l []cell, width int) [][]cell {
	for {
		at, space, w := 0, 0, 0
		for ; at < len(l); at++ {
			w += term.RuneColumns(l[at].r)
			if w > width {
				break
			}
			if l[at].r == ' ' {
				space = at
			}
		}
		if at == len(l) {
			return append(lines, l)
		}
		if l[at].r != ' ' && space > 0 {
			at = space
		}
		at = max(at, 1)
		lines = append(lines, l[:at])
		l = l[at:]
		for len(l) > 0 && l[0].r == ' ' {
			l = l[1:]
		}
	}
}

// paint writes cells with their colours.
func (s *Stream) paint(cells []cell) string {
	var b strings.Builder
	now := attr(0)
	for _, c := range cells {
		if c.a != now && bool(s.style) {
			if now != 0 {
				b.WriteString("\x1b[0m")
			}
			b.WriteString(c.a.codes())
			now = c.a
		}
		b.WriteRune(c.r)
	}
	if now != 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

func (a attr) codes() string {
	var b strings.Builder
	for _, x := range [...]struct {
		is  attr
		sgr string
	}{{bold, "\x1b[1m"}, {italic, "\x1b[3m"}, {struck, "\x1b[9m"}, {code, "\x1b[36m"}, {link, "\x1b[4m"}} {
		if a&x.is != 0 {
			b.WriteString(x.sgr)
		}
	}
	return b.String()
}
