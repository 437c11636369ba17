package markdown_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/chat/markdown"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func show(style term.Style, width int, pieces ...string) []string {
	s := markdown.New(style, width)
	var lines []string
	for _, p := range pieces {
		s.Write(p)
		lines = append(lines, s.Lines()...)
	}
	s.Close()
	return append(lines, s.Lines()...)
}

func TestMarkdownOnATerminal(t *testing.T) {
	const (
		b, i, c, d, u, x, e = "\x1b[1m", "\x1b[3m", "\x1b[36m", "\x1b[2m", "\x1b[4m", "\x1b[9m", "\x1b[0m"
	)
	for _, tc := range []struct {
		name, text string
		width      int
		want       []string
	}{
		{"a paragraph is wrapped, its line breaks stay", "one two three four\nfive", 10, []string{"one two", "three four", "five"}},
		{"bold, italic, code, struck", "**a** *b* `c` ~~d~~ _e_", 40, []string{b + "a" + e + " " + i + "b" + e + " " + c + "c" + e + " " + x + "d" + e + " " + i + "e" + e}},
		{"markup over a line break", "**a\nb** c", 40, []string{b + "a" + e, b + "b" + e + " c"}},
		{"bold in italic", "*a **b** c*", 40, []string{i + "a " + e + b + i + "b" + e + i + " c" + e}},
		{"what is no markup stays", "2*3*4 snake_case_word a * b * c `x", 60, []string{"2*3*4 snake_case_word a * b * c `x"}},
		{"a backslash takes the meaning away", `\*a\* \x`, 40, []string{`*a* \x`}},
		{"a link shows its address", "[the page](https://x.example/y)", 60, []string{u + "the page" + e + " (https://x.example/y)"}},
		{"a link that is its address", "[https://x.y](https://x.y)", 60, []string{u + "https://x.y" + e}},
		{"a heading", "## The *end*", 40, []string{b + "The " + e + b + i + "end" + e}},
		{"no heading", "#hash", 40, []string{"#hash"}},
		{"lists, nested and numbered", "- one two three\n  - four\n10. five", 10, []string{"- one two", "  three", "  - four", "10. five"}},
		{"an item goes on in an indented line", "- one\n  two", 40, []string{"- one", "  two"}},
		{"code is not wrapped and not read", "```go\nif **a** {\n\n\tb := \"a long line of code\"\n}\n```\nafter", 10,
			[]string{d + "  go" + e, c + "  if **a** {" + e, "", c + "      b := \"a long line of code\"" + e, c + "  }" + e, "after"}},
		{"a fence of more marks holds one of less", "````\n```\n````", 40, []string{c + "  ```" + e}},
		{"a fence that does not end", "```\na", 40, []string{c + "  a" + e}},
		{"a quote", "> one\n> two", 40, []string{d + "│ " + e + "one", d + "│ " + e + "two"}},
		{"a rule", "a\n\n---", 5, []string{"a", "", d + "──────────" + e}},
		{"a table", "|a|b|\n|-|-|\n|`x`|漢字|\n", 40, []string{b + "a" + e + d + " │ " + e + b + "b" + e, d + "──┼─────" + e, c + "x" + e + d + " │ " + e + "漢字"}},
		{"a table that is too wide wraps its cells", "|a|b|\n|-|-|\n|x|one two three four|\n", 16,
			[]string{b + "a" + e + d + " │ " + e + b + "b" + e, d + "──┼─────────────" + e, "x" + d + " │ " + e + "one two", " " + d + " │ " + e + "three four"}},
		{"a line with a bar is no table", "| not a table", 40, []string{"| not a table"}},
		{"several empty lines are one, none at the ends", "\n\na\n\n\n\nb\n\n", 40, []string{"a", "", "b"}},
		{"wide characters are not cut", "漢字漢字漢字", 10, []string{"漢字漢字漢", "字"}},
		{"entities are those of XML", "&lt;b&gt; &amp; &#27;[31m &#x1b;", 60, []string{"<b> & &#27;[31m &#x1b;"}},
		{"control characters are escapes", "a\x1b[31mb\x07\u202ec\x9b", 60, []string{`a\e[31mb\x07\u{202e}c\x9b`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, show(true, tc.width, tc.text)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.want, show(true, tc.width, strings.Split(tc.text, "")...)); diff != "" {
				t.Error("character by character:", diff)
			}
		})
	}
}

func TestWithoutColoursMarkupStaysAsItWasWritten(t *testing.T) {
	want := []string{"# Title", "", "Some **bold** and `code`, [a](b).", "", "- item", "  code"}
	if diff := cmp.Diff(want, show(false, 40, "# Title\n\nSome **bold** and `code`, [a](b).\n\n- item\n```\ncode\n```\n")); diff != "" {
		t.Error(diff)
	}
}

func TestTheTailIsWhatIsNotFinished(t *testing.T) {
	s := markdown.New(false, 20)
	for _, c := range []struct {
		text  string
		lines []string
		tail  []string
	}{
		{"one", nil, []string{"one"}},
		{" two", nil, []string{"one two"}},
		{"\n\n", []string{"one two"}, nil},
		{"| a | b |\n", nil, []string{"", "| a | b |"}},
		{"|---|---|\n| 1 ", nil, []string{"", "a │ b", "──┼──", "1 │"}},
		{"| 2 |\n\n```\nco", []string{"", "a │ b", "──┼──", "1 │ 2"}, []string{"", "  co"}},
		{"de\n", []string{"", "  code"}, nil},
	} {
		s.Write(c.text)
		if diff := cmp.Diff(c.lines, s.Lines()); diff != "" {
			t.Errorf("after %q, lines: %s", c.text, diff)
		}
		if diff := cmp.Diff(c.tail, s.Tail(10)); diff != "" {
			t.Errorf("after %q, tail: %s", c.text, diff)
		}
	}
	s.Write("```\na\nb\nc\nd")
	if diff := cmp.Diff([]string{"c", "d"}, s.Tail(2)); diff != "" {
		t.Error(diff)
	}
}

var ours = regexp.MustCompile(`\x1b\[[0-9]+m`)

// Whatever a model writes, in whatever pieces: the same lines, no control
// characters but our colours, nothing wider than the screen except code.
func TestAnyAnswerIsShownSafelyAndThePiecesDoNotMatter(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "word ", " ", "\n", "\n\n", "**", "*", "_", "`", "```", "~~", "# ", "- ", "1. ", "> ", "|", "|-|-|\n", "[x](y)", "\\", "&lt;", "&#27;", "\x1b[31m", "\u202e", "\x9b", "漢", "\xff", "\r\n", "\t", "---", "  "})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(part, 0, 60).Draw(t, "parts")
		width := rapid.IntRange(10, 60).Draw(t, "width")
		style := term.Style(rapid.Bool().Draw(t, "style"))
		whole := show(style, width, strings.Join(parts, ""))
		if diff := cmp.Diff(whole, show(style, width, parts...)); diff != "" {
			t.Fatal(diff)
		}
		for _, l := range whole {
			if bad := strings.IndexFunc(ours.ReplaceAllString(l, ""), unicode.IsControl); bad >= 0 {
				t.Fatalf("a control character in %q", l)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add("# a\n**b** `c` [d](e)\n\n|x|y|\n|-|-|\n|1|2|\n", 20)
	f.Add(strings.Repeat("*a ", 300), 40)
	f.Fuzz(func(t *testing.T, text string, width int) {
		s := markdown.New(true, width%200)
		s.Write(text[:len(text)/2])
		s.Tail(5)
		s.Write(text[len(text)/2:])
		s.Close()
		for _, l := range s.Lines() {
			if strings.IndexFunc(ours.ReplaceAllString(l, ""), unicode.IsControl) >= 0 {
				t.Errorf("a control character in %q", l)
			}
		}
	})
}

// An answer that does not end a block is let go in parts.
func TestABlockThatDoesNotEndIsLetGo(t *testing.T) {
	for _, text := range []string{"word ", "x", "*a ", "[", "word\n", "|a|b|\n", "`", "> q\n", "- i\n  more\n"} {
		s := markdown.New(true, 80)
		kept := 0
		for range 20 {
			s.Write(strings.Repeat(text, 20_000/len(text)))
			s.Lines()
			kept = max(kept, len(strings.Join(s.Tail(1000000), "")))
		}
		if kept > 256<<10 {
			t.Errorf("of %q %d bytes are kept", text, kept)
		}
	}
}

// The limit: an answer of 1 MB must not cost a second.
func BenchmarkAnswer(b *testing.B) {
	text := strings.Repeat("Some **bold** words and `code` in a paragraph that is not very long.\n\n- an item\n\n```\ncode := 1\n```\n\n", 12_000)[:1<<20]
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := markdown.New(true, 80)
		for i := 0; i < len(text); i += 12 {
			s.Write(text[i:min(i+12, len(text))])
			s.Lines()
		}
		s.Close()
	}
}
