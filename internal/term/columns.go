package term

import (
	"strings"
	"unicode"
)

// Width is how many columns text for people takes at most.
const Width = 80

// Cut shortens a line of text to at most n columns, its last one an ellipsis.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s // no character takes more columns than it has bytes
	}
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
	case r >= 0x1100 && unicode.Is(wide, r):
		return 2
	}
	return 1
}

// wide are the characters that take two columns: those of the classes W and F of
// Unicode's East Asian Width.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x2329, 0x232a, 1}, {0x23e9, 0x23ec, 1},
		{0x23f0, 0x23f3, 3}, {0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1}, {0x2648, 0x2653, 1},
		{0x267f, 0x2693, 0x14}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1},
		{0x26c4, 0x26c5, 1}, {0x26ce, 0x26d4, 6}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f3, 1},
		{0x26f5, 0x26fa, 5}, {0x26fd, 0x2705, 8}, {0x270a, 0x270b, 1}, {0x2728, 0x2728, 1},
		{0x274c, 0x274e, 2}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2795, 0x2797, 1},
		{0x27b0, 0x27bf, 0xf}, {0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 5}, {0x2e80, 0x303e, 1},
		{0x3041, 0x4dbf, 1}, {0x4e00, 0xa4cf, 1}, {0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe10, 0xfe19, 1}, {0xfe30, 0xfe6f, 1}, {0xff01, 0xff60, 1},
		{0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18cff, 1}, {0x1aff0, 0x1b2ff, 1}, {0x1f004, 0x1f0cf, 0xcb}, {0x1f18e, 0x1f18e, 1},
		{0x1f191, 0x1f19a, 1}, {0x1f200, 0x1f320, 1}, {0x1f32d, 0x1f335, 1}, {0x1f337, 0x1f37c, 1},
		{0x1f37e, 0x1f393, 1}, {0x1f3a0, 0x1f3ca, 1}, {0x1f3cf, 0x1f3d3, 1}, {0x1f3e0, 0x1f3f0, 1},
		{0x1f3f4, 0x1f3f4, 1}, {0x1f3f8, 0x1f43e, 1}, {0x1f440, 0x1f440, 1}, {0x1f442, 0x1f4fc, 1},
		{0x1f4ff, 0x1f53d, 1}, {0x1f54b, 0x1f54e, 1}, {0x1f550, 0x1f567, 1}, {0x1f57a, 0x1f57a, 1},
		{0x1f595, 0x1f596, 1}, {0x1f5a4, 0x1f5a4, 1}, {0x1f5fb, 0x1f64f, 1}, {0x1f680, 0x1f6c5, 1},
		{0x1f6cc, 0x1f6cc, 1}, {0x1f6d0, 0x1f6d2, 1}, {0x1f6d5, 0x1f6d7, 1}, {0x1f6dc, 0x1f6df, 1},
		{0x1f6eb, 0x1f6ec, 1}, {0x1f6f4, 0x1f6fc, 1}, {0x1f7e0, 0x1f7eb, 1}, {0x1f7f0, 0x1f7f0, 1},
		{0x1f90c, 0x1f93a, 1}, {0x1f93c, 0x1f945, 1}, {0x1f947, 0x1f9ff, 1}, {0x1fa70, 0x1faff, 1},
		{0x20000, 0x3fffd, 1},
	},
}

// RuneColumns is how many columns one character takes: 0, 1 or 2.
func RuneColumns(r rune) int { return runeWidth(r) }

// Visible is Columns for text that was coloured by a Style.
func Visible(s string) int {
	w := 0
	for {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			return w + Columns(s)
		}
		w += Columns(s[:i])
		end := strings.IndexByte(s[i:], 'm')
		if end < 0 {
			return w
		}
		s = s[i+end+1:]
	}
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
	if len(s) <= n && strings.IndexByte(s, '\n') < 0 && strings.IndexByte(s, '\t') < 0 {
		return []string{s}
	}
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
