package term

import (
	"strings"
	"unicode"
)

// Width is how many columns text for people takes at most.
const Width = 80

// Cut shortens a line of text to at most n columns, its last one an ellipsis.
func Cut(s string, n int) string {
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

// Columns is how many columns a line of text takes.
func Columns(s string) int {
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

// Pad fills a text with spaces to n columns.
func Pad(s string, n int) string {
	if w := Columns(s); w < n {
		return s + strings.Repeat(" ", n-w)
	}
	return s
}

// PadLeft is Pad with the text at the right.
func PadLeft(s string, n int) string {
	if w := Columns(s); w < n {
		return strings.Repeat(" ", n-w) + s
	}
	return s
}

// Wrap breaks text into lines of at most n columns, at spaces where there are
// any. Line breaks in it stay; tabs become spaces.
func Wrap(s string, n int) []string {
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
