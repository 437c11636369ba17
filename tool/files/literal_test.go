package files

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRequiredIsInEveryLineThatMatches(t *testing.T) {
	for _, c := range []struct {
		expr, literal string
		fold          bool
	}{
		{"needle", "needle", false},
		{`func \w+\(x`, "func ", false},
		{"(abc)+d?", "abc", false},
		{"(?:abc){2}", "abc", false},
		{"(?:abc){0,2}x", "x", false},
		{"ab|cd", "", false},
		{"a*", "", false},
		{"(?i)Header", "header", true},
		{"(?i)session", "ion", true},
		{"(?i)kiosk", "io", true},
		{"(?i)Éa", "a", true},
		{"é", "é", false},
		{"a\uFFFDbc", "bc", false},
		{"[a-z]+", "", false},
		{"(", "", false},
	} {
		if got, fold := required(c.expr); got != c.literal || fold != c.fold {
			t.Errorf("%s: %q %v, want %q %v", c.expr, got, fold, c.literal, c.fold)
		}
	}
}

// Whatever the pieces and lines are, a search finds what the expression finds
// in each line.
func TestASearchDoesNotDependOnHowAFileIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
			"\n", "\n", "\r\n", "needle", "x", "Needle ", strings.Repeat("y", chunk-3), strings.Repeat("z", maxLine-5), strings.Repeat("w", 5000),
		}), 0, 8).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		expr := rapid.SampledFrom([]string{"needle", "(?i)needle", "n.edle$", "^x", "^$", "eedl|zx"}).Draw(t, "expression")
		s := &searcher{re: regexp.MustCompile(expr), limit: 1000, context: rapid.IntRange(0, 2).Draw(t, "context")}
		s.literal, s.fold = required(expr)
		step := rapid.SampledFrom([]int{1000, 7777, chunk, 1 << 20}).Draw(t, "step")
		got, err := s.file(context.Background(), &stepped{text, step}, new(buffers))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text, "\n")
		if n := len(lines); lines[n-1] == "" {
			lines = lines[:n-1]
		}
		long := false
		var want []string
		for i, l := range lines {
			if i < len(lines)-1 || strings.HasSuffix(text, "\n") {
				l = strings.TrimSuffix(l, "\r")
			}
			if len(l) >= maxLine-1 {
				long = true // how much of it is searched is another matter
				continue
			}
			if s.re.MatchString(l) {
				want = append(want, fmt.Sprint(i+1))
			}
		}
		var have []string
		last := 0
		for _, l := range got.lines {
			if l.number <= last {
				t.Fatalf("line %d behind line %d", l.number, last)
			}
			last = l.number
			if l.match && len(lines[l.number-1]) < maxLine-1 {
				have = append(have, fmt.Sprint(l.number))
			}
		}
		if strings.Join(have, " ") != strings.Join(want, " ") {
			t.Fatalf("lines %v, want %v (long lines: %v)", have, want, long)
		}
		if got.long && !long {
			t.Fatal("a line is called too long")
		}
	})
}

// stepped gives a text in pieces of one size.
type stepped struct {
	rest string
	step int
}

func (s *stepped) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), s.step)], s.rest)
	s.rest = s.rest[n:]
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
