package term_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/term"
)

func TestCutAndWrapKeepTheirWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := term.Text(rapid.String().Draw(t, "text"))
		n := rapid.IntRange(2, 40).Draw(t, "width")
		c := term.Cut(strings.ReplaceAll(s, "\n", " "), n)
		if term.Columns(c) > n || !utf8.ValidString(c) {
			t.Fatalf("cut to %d: %q", n, c)
		}
		lines := term.Wrap(s, n)
		for _, l := range lines {
			if term.Columns(l) > n {
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
	if got := term.Wrap("one two three", 7); !slices.Equal(got, []string{"one two", "three"}) {
		t.Errorf("%q", got)
	}
}
