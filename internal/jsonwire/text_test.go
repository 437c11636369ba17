package jsonwire

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainly is AppendString, one rune at a time.
func plainly(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch short := strings.IndexRune("\b\f\n\r\t\"\\", r); {
		case r == utf8.RuneError && n == 1:
			if i+2 < len(s) && s[i] == 0xed && s[i+1]&0xe0 == 0xa0 && s[i+2]&0xc0 == 0x80 {
				fmt.Fprintf(&b, `\ud%x%02x`, 0x8|s[i+1]>>2&7, s[i+1]&3<<6|s[i+2]&0x3f)
				n = 3
			} else {
				b.WriteString("\ufffd")
			}
		case short >= 0:
			b.WriteByte('\\')
			b.WriteByte(`bfnrt"\`[short])
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}

// FuzzTextIsWrittenByteByByte compares the writer of strings, which takes words,
// with one that takes runes, and reads back what it wrote.
func FuzzTextIsWrittenByteByByte(f *testing.F) {
	for n := range 110 {
		pad := strings.Repeat("x", n)
		for _, s := range []string{"", "\n", "\\", `"`, "\x00\x1f\x7f", "é", "𝄞", "\xed\xa0\xbd", "\xed\xa0", "\xff", "\t\t\t\t\t\t\t\t\t"} {
			f.Add(pad + s + pad)
			f.Add(pad + s)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := plainly(s)
		for _, dst := range [][]byte{nil, make([]byte, 0, 9), []byte("before"), make([]byte, 3, 4096)} {
			before := string(dst)
			got := string(AppendString(dst, s))
			if got != before+want {
				t.Fatalf("%q is written as %s, want %s", s, got[len(before):], want)
			}
		}
		if end, err := String([]byte(want), 0); err != nil || end != len(want) {
			t.Fatalf("%s: %d, %v", want, end, err)
		}
		back, ok := Text([]byte(want))
		// Two halves of a pair that stand side by side are one rune once they are read.
		if again := plainly(back); !ok || again != want && !strings.Contains(want, `\ud`) {
			t.Fatalf("%s is read as %q", want, back)
		}
		if utf8.ValidString(s) && back != s {
			t.Fatalf("%q is read as %q", s, back)
		}
	})
}
