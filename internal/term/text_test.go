package term_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/term"
)

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
		if got := term.Line(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got := term.Text("a\n\tb\x1b"); got != "a\n\tb\\e" {
		t.Errorf("%q", got)
	}
}

func TestOneLineIsTheWordsOfATextWithSpacesBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "bc", " ", "  ", "\n", "\t", "\r", "\x1b", "\xff", "\x7f", "ü", "…", "漢",
			"\u00a0", "\u0085", "\u2028", "\u202e", "\u3000"})).Draw(t, "text"), "")
		if got, want := term.OneLine(s), term.Line(strings.Join(strings.Fields(s), " ")); got != want {
			t.Errorf("%q gives %q, want %q", s, got, want)
		}
	})
}

func TestAWordIsOneWordForAShell(t *testing.T) {
	for in, want := range map[string]string{
		"plain-word_1.txt": "plain-word_1.txt",
		"":                 "''",
		"two words":        "'two words'",
		"it's":             `'it'\''s'`,
		"$(rm)\n":          `'$(rm)\n'`,
	} {
		if got := term.Word(in); got != want {
			t.Errorf("%q gives %s, want %s", in, got, want)
		}
	}
}
