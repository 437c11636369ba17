package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

func decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

func TestDataCannotSteerATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                 "plain",
		"\x1b[2J":               `\e[2J`,
		"a\nb\tc\rd":            `a\nb\tc\rd`,
		"\x00\x07\x7f":          `\x00\x07\x7f`,
		"\u009b31m":             `\u{9b}31m`,
		"abc\u202egnp":          `abc\u{202e}gnp`,
		"\u2028":                `\u{2028}`,
		"\xff\xfe":              `\xff\xfe`,
		"grün 漢字 👩\u200d🔬":      "grün 漢字 👩\u200d🔬",
		"zero\u200bwidth\ufeff": `zero\u{200b}width\u{feff}`,
	} {
		if got := cli.EscapeLine(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got := cli.EscapeText("a\n\tb\x1b"); got != "a\n\tb\\e" {
		t.Errorf("%q", got)
	}
}

func TestCutAndWrapKeepTheirWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cli.EscapeText(rapid.String().Draw(t, "text"))
		n := rapid.IntRange(2, 40).Draw(t, "width")
		c := cli.Cut(strings.ReplaceAll(s, "\n", " "), n)
		if cli.Columns(c) > n || !utf8.ValidString(c) {
			t.Fatalf("cut to %d: %q", n, c)
		}
		lines := cli.Wrap(s, n)
		for _, l := range lines {
			if cli.Columns(l) > n {
				t.Fatalf("wrapped to %d: %q", n, l)
			}
		}
		letters := func(s string) string {
			return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }), "")
		}
		if got, want := letters(strings.Join(lines, "\n")), letters(s); got != want {
			t.Fatalf("wrapping lost something: %q, want %q", got, want)
		}
	})
	if got := cli.Wrap("one two three", 7); !slices.Equal(got, []string{"one two", "three"}) {
		t.Errorf("%q", got)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{cli.Count(0), "0"}, {cli.Count(999), "999"}, {cli.Count(1000), "1,000"}, {cli.Count(-1234567), "-1,234,567"},
		{cli.Size(9999), "9999 B"}, {cli.Size(10_000), "10 kB"}, {cli.Size(12_000_000), "12 MB"}, {cli.Size(12_000_000_000), "12 GB"},
		{cli.Age(1000, 2000), "now"}, {cli.Age(120_000, 0), "2m"}, {cli.Age(3*3600_000, 0), "3h"}, {cli.Age(10*86400_000, 0), "10d"}, {cli.Age(800*86400_000, 0), "2y"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
