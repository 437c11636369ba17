package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Line makes text safe for one line of a terminal: control characters,
// format characters and bytes that are no UTF-8 become escapes, so that no log
// can move the cursor, colour the screen or reorder the line.
func Line(s string) string { return escape(s, false) }

// Text is Line for text of several lines; newlines and tabs stay.
func Text(s string) string { return escape(s, true) }

func escape(s string, lines bool) string {
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] < 0x7f {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == 0x1b:
			b.WriteString(`\e`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case acts(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// zeroWidthJoiner holds emoji together and changes nothing else.
const zeroWidthJoiner = 0x200d

// Quote puts what a person typed or a log holds into quotes, escaped and cut.
func Quote(s string) string { return `"` + Cut(Line(s), 60) + `"` }

// OneLine is text as one line: white space becomes single spaces.
func OneLine(s string) string { return Line(strings.Join(strings.Fields(s), " ")) }

// Word writes a word so that a shell reads it back.
func Word(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:+@%=,~", c)
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(Line(s), "'", `'\''`) + "'"
}
