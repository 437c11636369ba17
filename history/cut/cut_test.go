package cut_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/history/cut"
	"github.com/outcrop-dev/outcrop/message"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, in   string
		head, tail int
		want       string
	}{
		{"short stays whole", "abcdef", 3, 3, "abcdef"},
		{"one too many", "abcdefg", 3, 3, "abc|efg"},
		{"no head", "abcdefg", 0, 2, "|fg"},
		{"no tail", "abcdefg", 2, 0, "ab|"},
		{"code points of several bytes", "äöü日本語😀😀", 2, 1, "äö|😀"},
		{"half of a surrogate pair counts as one", "\xed\xa0\xbdabc\xed\xb8\x80", 1, 1, "\xed\xa0\xbd|\xed\xb8\x80"},
	} {
		if got := cut.Text(c.in, c.head, c.tail, "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What is kept is head and tail of the whole text, blocks that are no text
// stay, and the marker stands there once.
func TestMiddleKeepsHeadAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var blocks []message.Block
		images := 0
		for range rapid.IntRange(0, 6).Draw(t, "blocks") {
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				images++
				blocks = append(blocks, message.Block{Type: message.ImageBlock, Attachment: []byte("{}")})
			} else {
				blocks = append(blocks, message.Text(rapid.StringOfN(rapid.RuneFrom([]rune("ab é日😀\n")), 0, 20, -1).Draw(t, "text")))
			}
		}
		all := func(blocks []message.Block) string {
			var s strings.Builder
			for _, b := range blocks {
				s.WriteString(b.Text)
			}
			return s.String()
		}
		head, tail := rapid.IntRange(0, 30).Draw(t, "head"), rapid.IntRange(0, 30).Draw(t, "tail")
		whole := []rune(all(blocks))
		if cut.Points(blocks) != len(whole) {
			t.Fatalf("%d code points, want %d", cut.Points(blocks), len(whole))
		}
		out := cut.Middle(blocks, head, tail, "|")
		want := string(whole)
		if len(whole) > head+tail {
			want = string(whole[:head]) + "|" + string(whole[len(whole)-tail:])
		}
		if got := all(out); got != want || !utf8.ValidString(got) {
			t.Fatalf("%q, want %q", got, want)
		}
		for _, b := range out {
			if b.Type == message.ImageBlock {
				images--
			}
		}
		if images != 0 {
			t.Fatal("an image is gone")
		}
	})
}

func TestMembersOfABlockStay(t *testing.T) {
	blocks, err := message.ParseBlocks([]byte(`[{"x":1e2,"type":"text","text":"abcdefgh\u0041","cache":{"a":[1]}}]`))
	if err != nil {
		t.Fatal(err)
	}
	got := string(message.AppendBlocks(nil, cut.Middle(blocks, 1, 1, "|")))
	if want := `[{"x":1e2,"type":"text","text":"a|A","cache":{"a":[1]}}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
