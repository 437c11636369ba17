package markdown

import (
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// text writes what a message says. It is Markdown as a rule, so it stays
// Markdown: but its headings come below those of the document, its HTML is
// text, and a code block that it leaves open is closed.
//
// The dangerous thing is a document that is read in another way than it was
// meant. So only what a fence of ours surrounds is left as it is; in all the
// rest no < of the message survives that could begin a tag, whatever the reader
// takes for code.
func (d *document) text(s string) {
	s = strings.Trim(clean(s), "\n")
	if s == "" {
		return
	}
	var code []string
	open, info, indent := "", "", 0
	flush := func() {
		d.codeBlock(info, strings.Join(code, "\n"))
		open, code = "", nil
	}
	blank := true
	for line := range strings.SplitSeq(s, "\n") {
		if open != "" {
			if closes(line, open) {
				flush()
				blank = true
				continue
			}
			n := 0
			for n < indent && n < len(line) && line[n] == ' ' {
				n++
			}
			code = append(code, line[n:])
			continue
		}
		if marks, rest, ok := opens(line); ok {
			if !blank {
				d.w.WriteString("\n")
			}
			open, info, indent = marks, rest, len(line)-len(strings.TrimLeft(line, " "))
			continue
		}
		blank = strings.TrimSpace(line) == ""
		d.w.WriteString(prose(line))
		d.w.WriteString("\n")
	}
	if open != "" {
		flush()
		return
	}
	d.w.WriteString("\n")
}

// codeBlock writes code with a fence that it cannot end.
func (d *document) codeBlock(info, text string) {
	marks := strings.Repeat("`", max(3, longest(text, '`')+1))
	d.w.WriteString(marks + info + "\n" + text)
	if text != "" {
		d.w.WriteString("\n")
	}
	d.w.WriteString(marks + "\n\n")
}

// longest is the length of the longest run of c.
func longest(s string, c byte) int {
	most, n := 0, 0
	for i := range len(s) {
		if s[i] != c {
			n = 0
			continue
		}
		n++
		most = max(most, n)
	}
	return most
}

// opens reports a line that begins a code block: at least three backticks or
// tildes. In a list they may be indented by any width, so every width counts.
// The info is a word without marks.
func opens(line string) (marks, info string, ok bool) {
	rest := strings.TrimLeft(line, " \t")
	if rest == "" || rest[0] != '`' && rest[0] != '~' {
		return "", "", false
	}
	n := 0
	for n < len(rest) && rest[n] == rest[0] {
		n++
	}
	if n < 3 || rest[0] == '`' && strings.Contains(rest[n:], "`") {
		return "", "", false
	}
	if f := strings.Fields(rest[n:]); len(f) > 0 {
		info = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+-._#", r) {
				return r
			}
			return -1
		}, f[0])
	}
	return rest[:n], info, true
}

// closes reports a line that ends the code block that marks began.
func closes(line, marks string) bool {
	rest := strings.Trim(line, " \t")
	return len(rest) >= len(marks) && strings.Trim(rest, marks[:1]) == ""
}

// prose is a line of a message outside of code blocks: its headings come below
// those of the document, also in quotes and lists.
func prose(line string) string {
	var b strings.Builder
	rest := line
	for {
		text := strings.TrimLeft(rest, " \t")
		b.WriteString(rest[:len(rest)-len(text)])
		rest = text
		trimmed := strings.TrimRight(rest, " \t")
		n := len(rest) - len(strings.TrimLeft(rest, "#"))
		switch {
		case n >= 1 && n <= 6 && (n == len(rest) || rest[n] == ' ' || rest[n] == '\t'):
			b.WriteString(strings.Repeat("#", min(6, n+3)))
			rest = rest[n:]
		case trimmed != "" && strings.Trim(trimmed, "=") == "":
			b.WriteString(`\`) // it would make a heading of the line before it
		case len(trimmed) >= 3 && strings.Trim(trimmed, "-") == "":
			rest = "* * *" // a rule, and no heading either
		case trimmed != "" && strings.Trim(trimmed, "-") == "":
			b.WriteString(`\`)
		case strings.HasPrefix(rest, "```") || strings.HasPrefix(rest, "~~~"):
			b.WriteString(`\`) // it opens no block here, and must not when what follows is written in another way
		default:
			if n := marker(rest); n > 0 {
				b.WriteString(rest[:n])
				rest = rest[n:]
				continue
			}
		}
		b.WriteString(tagless(rest))
		return b.String()
	}
}

// marker is the length of the mark of a quote or of a list item that s begins
// with.
func marker(s string) int {
	if s == "" {
		return 0
	}
	if s[0] == '>' {
		return 1
	}
	n := 0
	if s[0] == '-' || s[0] == '*' || s[0] == '+' {
		n = 1
	} else {
		for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n == 0 || n == len(s) || s[n] != '.' && s[n] != ')' {
			return 0
		}
		n++
	}
	if n < len(s) && s[n] != ' ' && s[n] != '\t' {
		return 0
	}
	return n
}

// tagless writes every < that could begin a tag as an entity. In a code span
// entities are not read, so a span that holds one becomes a code element.
func tagless(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "<`\\")
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		switch s[0] {
		case '\\':
			if len(s) > 1 && s[1] != '<' && s[1] != '`' {
				b.WriteString(s[:1])
				s = s[1:]
				continue
			}
			if len(s) > 1 && s[1] == '`' {
				b.WriteString(s[:2])
				s = s[2:]
				continue
			}
			if len(s) > 1 {
				b.WriteString("&#92;")
				s = s[1:]
				continue
			}
			b.WriteString(s)
			s = ""
		case '<':
			b.WriteString(bracket(s))
			s = s[1:]
		case '`':
			n := len(s) - len(strings.TrimLeft(s, "`"))
			end := spanEnd(s, n)
			if end < 0 {
				b.WriteString(s[:n])
				s = s[n:]
				continue
			}
			inner := s[n : end-n]
			if strings.Contains(inner, "<") {
				b.WriteString("<code>" + entities(inner) + "</code>")
			} else {
				b.WriteString(s[:end])
			}
			s = s[end:]
		}
	}
	b.WriteString(s)
	return b.String()
}

// bracket is the < at the beginning of s: as it is where no tag, comment or
// link can begin with it.
func bracket(s string) string {
	if len(s) > 1 && (s[1] == ' ' || s[1] == '=' || s[1] == '-' || s[1] >= '0' && s[1] <= '9') {
		return "<"
	}
	return "&lt;"
}

// spanEnd is where the code span ends that n backticks begin, -1 when it does
// not end on the line.
func spanEnd(s string, n int) int {
	for i := n; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		j := i
		for j < len(s) && s[j] == '`' {
			j++
		}
		if j-i == n {
			return j
		}
		i = j
	}
	return -1
}

// entities writes text so that neither Markdown nor HTML reads anything in it.
func entities(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case strings.ContainsRune("\\`*_{}[]()#+-.!|~:@\"'", r):
			b.WriteString("&#" + strconv.Itoa(int(r)) + ";")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// inline is text on one line of which Markdown reads nothing.
func inline(s string) string {
	s = term.OneLine(s)
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_{}[]<>#|~&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// codeSpan is text on one line as code.
func codeSpan(s string) string {
	s = term.OneLine(s)
	if s == "" {
		return ""
	}
	marks := strings.Repeat("`", longest(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return marks + s + marks
}

// clean shows control characters as escapes; the ends of lines are \n.
func clean(s string) string { return term.Text(strings.ReplaceAll(s, "\r\n", "\n")) }
