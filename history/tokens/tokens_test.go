package tokens_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/history/tokens"
)

func TestWhichCounterAModelGets(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-4o": "o200k_base", "gpt-4o-mini": "o200k_base", "gpt-4.1": "o200k_base", "gpt-5-codex": "o200k_base", "gpt-5.1": "o200k_base", "o3-mini": "o200k_base",
		"openai/gpt-4o": "o200k_base", "GPT-4": "cl100k_base", "gpt-4-turbo": "cl100k_base", "gpt-3.5-turbo": "cl100k_base",
		"deepseek-chat": "heuristic", "claude-sonnet-4": "heuristic", "o365": "heuristic", "gpt-40": "heuristic", "": "heuristic",
	} {
		if got := tokens.For(model).Name(); got != want {
			t.Errorf("%q is counted by %s, want %s", model, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	c := tokens.For("gpt-4o")
	for text, want := range map[string]int64{"": 0, "hello world": 2, "Hello, world!": 4, "日本語": 1} {
		if got := c.Text(text); got < want || got > want+1 {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
	long := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 2000)
	if got := c.Text(long); got < 19_900 || got > 20_200 {
		t.Errorf("a long text has %d tokens, want about 20,000", got)
	}
}

// A word without an end must not take the time that a tokenizer needs for it:
// the square of its length, hours for this one.
func TestALongWordIsCountedAtOnce(t *testing.T) {
	c := tokens.For("gpt-4o")
	for _, word := range []string{"a", "é", "=", "\x00", "1", "\xff", " "} {
		part := strings.Repeat(word, 4096/len(word))
		if got, want := c.Text(strings.Repeat(part, 4096)), 4096*c.Text(part); got < want*9/10 || got > want*11/10 {
			t.Errorf("%q: %d tokens, want about %d", word, got, want)
		}
	}
}

func TestEveryTextHasACount(t *testing.T) {
	c := tokens.For("gpt-4")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		if n := c.Text(s); n < 0 || n > int64(len(s)) || (n == 0) != (s == "") {
			t.Fatalf("%d tokens in %d bytes", n, len(s))
		}
		if n := c.Text(s); n != c.Text(s) {
			t.Fatal("counted twice, it differs")
		}
		if utf8.ValidString(s) {
			return
		}
		t.Fatal("not a text")
	})
}

// One character each that a table of the library may lack.
func TestEveryCharacterOfOneByteIsCounted(t *testing.T) {
	for _, model := range []string{"gpt-4", "gpt-4o"} {
		c := tokens.For(model)
		for b := range 128 {
			if n := c.Text(string(rune(b))); n != 1 {
				t.Errorf("%s: %d tokens in %q, want 1", model, n, rune(b))
			}
		}
		if n := c.Text("a\x7fb"); n != 3 {
			t.Errorf("%s: %d tokens in a delete between two letters, want 3", model, n)
		}
	}
}

// What a new node costs to price, for each kilobyte of its text.
func BenchmarkText(b *testing.B) {
	text := strings.Repeat("func main() { fmt.Println(\"hello, world\") } // say it\n", 200)
	c := tokens.For("gpt-4o")
	c.Text("load")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Text(text)
	}
}
