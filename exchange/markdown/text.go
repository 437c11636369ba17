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
	open, info := "", ""
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
			code = append(code, line)
			continue
		}
		if marks, rest, ok := opens(line); ok {
			if !blank {
				d.w.WriteString("\n")
			}
			open, info = marks, rest
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
// tildes, indented by three columns at most. The info is a word without marks.
func opens(line string) (marks, info string, ok bool) {
	rest := strings.TrimLeft(line, " ")
	if len(line)-len(rest) > 3 || rest == "" || rest[0] != '`' && rest[0] != '~' {
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
	rest := strings.TrimLeft(line, " ")
	if len(line)-len(rest) > 3 {
		return false
	}
	rest = strings.TrimRight(rest, " \t")
	return len(rest) >= len(marks) && strings.Trim(rest, marks[:1]) == ""
}

// prose is a line of a message outside of code blocks.
func prose(line string) string {
	rest := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(rest)]
	if len(indent) <= 3 {
		n := 0
		for n < len(rest) && rest[n] == '#' {
			n++
		}
		switch trimmed := strings.TrimRight(rest, " \t"); {
		case n >= 1 && n <= 6 && (n == len(rest) || rest[n] == ' ' || rest[n] == '\t'):
			rest = strings.Repeat("#", min(6, n+3)) + rest[n:]
		case trimmed != "" && strings.Trim(trimmed, "=") == "":
			rest = `\` + rest // it would make a heading of the line before it
		case trimmed != "" && strings.Trim(trimmed, "-") == "" && len(trimmed) < 3:
			rest = `\` + rest
		case trimmed != "" && strings.Trim(trimmed, "-") == "":
			rest = "* * *" // a rule, and no heading either
		}
	}
	return indent + tagless(rest)
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
