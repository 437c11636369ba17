package jsonwire

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The special bytes of a block are those that a look at each byte finds, with and
// without the instructions of the processor.
func TestSpecialBytesOfABlockAreFound(t *testing.T) {
	one := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\"\\\x00\x1f\x20\x21\x23\x5b\x5d\x7f\x80\xa2\xdc\xff")))
	rapid.Check(t, func(t *rapid.T) {
		var block [64]byte
		copy(block[:], rapid.SliceOfN(one, 64, 64).Draw(t, "block"))
		want := uint64(0)
		for k, c := range block {
			if c == '"' || c == '\\' || c < 0x20 {
				want |= 1 << k
			}
		}
		if got := specials(&block); got != want {
			t.Fatalf("%q: %b, want %b", block, got, want)
		}
		if got := specialsByWord(&block); got != want {
			t.Fatalf("%q word by word: %b, want %b", block, got, want)
		}
	})
}

// stringEnd is String, one byte at a time: where the string ends or stops being
// one.
func stringEnd(b []byte) (end int, ok bool) {
	for i := 1; i < len(b); i++ {
		switch {
		case b[i] == '"':
			return i + 1, true
		case b[i] < 0x20:
			return i, false
		case b[i] != '\\':
			continue
		case i+1 == len(b), bytes.IndexByte([]byte(`"\/bfnrtu`), b[i+1]) < 0:
			return i, false
		case b[i+1] != 'u':
			i++
		case i+6 > len(b) || !hex4ok(b[i+2:]):
			return i, false
		default:
			i += 5
		}
	}
	return len(b), false
}

// decoded is Key, one byte at a time.
func decoded(b []byte) string {
	out := []byte{}
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] != '\\':
			out = append(out, b[i])
		case b[i+1] != 'u':
			i++
			if at := strings.IndexByte("bfnrt", b[i]); at >= 0 {
				out = append(out, "\b\f\n\r\t"[at])
			} else {
				out = append(out, b[i])
			}
		default:
			u := rune(hex4(b[i+2:]))
			i += 5
			if rest := b[i+1:]; u>>10 == 0xd8>>2 && len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' && hex4(rest[2:])>>10 == 0xdc>>2 {
				u = 0x10000 + (u-0xd800)<<10 + rune(hex4(rest[2:])) - 0xdc00
				out = append(out, string(u)...)
				i += 6
				continue
			}
			out = appendUnit(out, uint32(u))
		}
	}
	return string(out)
}

// A string of any length ends, fails and is decoded in blocks as it is byte by
// byte.
func TestStringsInBlocksAreThoseByteByByte(t *testing.T) {
	good := rapid.OneOf(
		rapid.SampledFrom([]string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0041`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83d\u0041`, "é", "𝄞", "\xff"}),
		rapid.StringMatching(`[ !#-\[\]-~]{0,80}`))
	bad := rapid.SampledFrom([]string{"\n", "\x00", `\x`, `\u00g0`, `\u12`, `"`, `\`, "\x1f"})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(good).Draw(t, "parts")
		if rapid.Bool().Draw(t, "broken") {
			parts = append(parts, bad.Draw(t, "fault"), strings.Join(rapid.SliceOf(good).Draw(t, "behind it"), ""))
		}
		b := []byte(`"` + strings.Join(parts, "") + `"` + rapid.StringMatching(`[ -~]{0,90}`).Draw(t, "behind"))
		want, ok := stringEnd(b)
		end, err := String(b, 0)
		if (err == nil) != ok || end != want {
			t.Fatalf("%q: %d, %v; want %d, %v", b, end, err, want, ok)
		}
		if !ok {
			return
		}
		if got := SkipString(b, 0); got != want {
			t.Fatalf("%q is skipped to %d, want %d", b, got, want)
		}
		text, after, valid := TextAt(b, 0)
		if said := decoded(b[1 : want-1]); text != said || after != want || !valid {
			t.Fatalf("%q is read as %q, want %q", b, text, said)
		}
	})
}

// A text of any length is written so that it is read as it was, wherever in its
// blocks a character of several bytes stands.
func TestTextsInBlocksComeBack(t *testing.T) {
	for n := range 2 * 64 {
		for _, c := range []string{"é", "€", "𝄞"} {
			s := strings.Repeat("x", n) + strings.Repeat(c, 100) + strings.Repeat("\"", n%7)
			if got, _ := Text(AppendString(nil, s)); got != s {
				t.Fatalf("%q comes back as %q", s, got)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.SampledFrom([]string{"a", "\"", "\\", "\n", "\x01", "é", "€", "𝄞", strings.Repeat("b", 40)})
		s := strings.Join(rapid.SliceOf(one).Draw(t, "text"), "")
		if got, _ := Text(AppendString(nil, s)); got != s {
			t.Fatalf("%q comes back as %q", s, got)
		}
	})
}

// Bytes that are no text are written in blocks as they are one by one.
func TestAnyBytesAreWrittenAsOneByOne(t *testing.T) {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{"\n", `"`, `\`, "\x00", "日本", "𝄞", "\xff", "\xed\xa0\xbd", "\xe6\x9c"}),
		rapid.StringMatching(`[ -~]{0,80}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "")
		room := make([]byte, 3, 3+rapid.IntRange(0, 200).Draw(t, "room"))
		if got, want := string(AppendString(room, s)[3:]), plainly(s); got != want {
			t.Fatalf("%q is written as %s, want %s", s, got, want)
		}
	})
}
