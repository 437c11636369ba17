package term

import (
	"fmt"
	"strings"
	"unicode"
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
	b := append(make([]byte, 0, len(s)+16), s[:i]...)
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if lines && (r == '\n' || r == '\t') {
			b = append(b, byte(r))
		} else {
			b = appendShown(b, r, s[i:i+n])
		}
		i += n
	}
	return string(b)
}

// appendShown appends a character, whose bytes are text, as Line shows it.
func appendShown(b []byte, r rune, text string) []byte {
	switch {
	case r >= 0x20 && r < 0x7f:
		return append(b, byte(r))
	case r == utf8.RuneError && len(text) == 1:
		return fmt.Appendf(b, `\x%02x`, text[0])
	case r == '\n':
		return append(b, `\n`...)
	case r == '\r':
		return append(b, `\r`...)
	case r == '\t':
		return append(b, `\t`...)
	case r == 0x1b:
		return append(b, `\e`...)
	case r < 0x20 || r == 0x7f:
		return fmt.Appendf(b, `\x%02x`, r)
	case acts(r):
		return fmt.Appendf(b, `\u{%x}`, r)
	}
	return append(b, text...)
}

// zeroWidthJoiner holds emoji together and changes nothing else.
const zeroWidthJoiner = 0x200d

// Quote puts what a person typed or a log holds into quotes, escaped and cut.
func Quote(s string) string { return `"` + Cut(Line(s), 60) + `"` }

// OneLine is text as one line: white space becomes single spaces, none at the
// ends.
func OneLine(s string) string {
	if isOneLine(s) {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	space := false
	for i := 0; i < len(s); {
		if c := s[i]; c > ' ' && c < 0x7f {
			if space && len(b) > 0 {
				b = append(b, ' ')
			}
			space = false
			from := i
			for i++; i < len(s) && s[i] > ' ' && s[i] < 0x7f; i++ {
			}
			b = append(b, s[from:i]...)
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.IsSpace(r) {
			space = true
		} else {
			if space && len(b) > 0 {
				b = append(b, ' ')
			}
			space = false
			b = appendShown(b, r, s[i:i+n])
		}
		i += n
	}
	return string(b)
}

// isOneLine reports whether OneLine leaves a text as it is, as far as one look
// at its bytes tells.
func isOneLine(s string) bool {
	last := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c < 0x20 || c >= 0x7f || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return s == "" || last != ' '
}

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
