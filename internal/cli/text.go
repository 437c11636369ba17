package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// width is how many columns text for people takes at most.
const width = 80

// escapeLine makes text safe for one line of a terminal: control characters,
// format characters and bytes that are no UTF-8 become escapes, so that no log
// can move the cursor, colour the screen or reorder the line.
func escapeLine(s string) string { return escape(s, false) }

// escapeText is escapeLine for text of several lines; newlines and tabs stay.
func escapeText(s string) string { return escape(s, true) }

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
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != zeroWidthJoiner || r == 0x2028 || r == 0x2029:
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

// quote puts what a person typed or a log holds into quotes, escaped and cut.
func quote(s string) string { return `"` + cut(escapeLine(s), 60) + `"` }

// cut shortens a line of text to at most n columns, its last one an ellipsis.
func cut(s string, n int) string {
	w, short := 0, -1
	for i, r := range s {
		w += runeWidth(r)
		if w > n-1 && short < 0 {
			short = i
		}
		if w > n {
			return s[:short] + "…"
		}
	}
	return s
}

// columns is how many columns a line of text takes.
func columns(s string) int {
	w := 0
	for _, r := range s {
		w += runeWidth(r)
	}
	return w
}

// runeWidth is how many columns a character takes: two for the wide ones of
// East Asia and most emoji, none for marks that join the character before.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me) || r == zeroWidthJoiner || r >= 0xfe00 && r <= 0xfe0f:
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f900 && r <= 0x1f9ff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// pad fills a text with spaces to n columns.
func pad(s string, n int) string {
	if w := columns(s); w < n {
		return s + strings.Repeat(" ", n-w)
	}
	return s
}

// padLeft is pad with the text at the right.
func padLeft(s string, n int) string {
	if w := columns(s); w < n {
		return strings.Repeat(" ", n-w) + s
	}
	return s
}

// oneLine is text as one line: white space becomes single spaces.
func oneLine(s string) string { return escapeLine(strings.Join(strings.Fields(s), " ")) }

// wrap breaks text into lines of at most n columns, at spaces where there are
// any. Line breaks in it stay; tabs become spaces.
func wrap(s string, n int) []string {
	var out []string
	for l := range strings.SplitSeq(strings.ReplaceAll(s, "\t", "    "), "\n") {
		for {
			at, space := fit(l, n)
			if at == len(l) {
				break
			}
			if l[at] != ' ' && space > 0 {
				out = append(out, l[:space])
				l = l[space+1:]
			} else {
				out = append(out, l[:at])
				l = strings.TrimPrefix(l[at:], " ")
			}
		}
		out = append(out, l)
	}
	return out
}

// fit is how many bytes of a line stand in n columns, at least one character,
// and where the last space among them is, 0 when there is none.
func fit(l string, n int) (end, space int) {
	w := 0
	for i, r := range l {
		if w += runeWidth(r); w > n && i > 0 {
			return i, space
		}
		if r == ' ' {
			space = i
		}
	}
	return len(l), space
}

// count writes a number with separators between thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	from := 0
	if n < 0 {
		from = 1
	}
	for i := len(s) - 3; i > from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural is "1 event" or "2 events".
func plural[N ~int | ~int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(int64(n)) + " " + one + "s"
}

// size writes bytes in at most six columns.
func size(n int64) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 10_000_000:
		return strconv.FormatInt(n/1000, 10) + " kB"
	case n < 10_000_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + " MB"
	}
	return strconv.FormatInt(n/1_000_000_000, 10) + " GB"
}

// age writes how long ago a time is, in at most four columns.
func age(now, then int64) string {
	d := time.Duration(now-then) * time.Millisecond
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d < 366*24*time.Hour:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	return strconv.Itoa(int(d/(365*24*time.Hour))) + "y"
}

// when writes a time of a log.
func when(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z") }
