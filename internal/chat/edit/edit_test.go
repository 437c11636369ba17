package edit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/chat/edit"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// keys reads keys from a text: <left>, <c-w>, <a-b>, other characters as
// typed.
func keys(s string) (out []tty.Key) {
	names := map[string]tty.Name{"left": tty.Left, "right": tty.Right, "up": tty.Up, "down": tty.Down, "home": tty.Home, "end": tty.End,
		"bs": tty.Backspace, "wbs": tty.WordBackspace, "del": tty.Delete, "wleft": tty.WordLeft, "wright": tty.WordRight, "nl": tty.NewLine, "enter": tty.Enter}
	for s != "" {
		if end := strings.IndexByte(s, '>'); s[0] == '<' && end > 0 {
			word := s[1:end]
			s = s[end+1:]
			switch {
			case strings.HasPrefix(word, "c-"):
				out = append(out, tty.Key{Name: tty.Ctrl, Text: word[2:]})
			case strings.HasPrefix(word, "a-"):
				out = append(out, tty.Key{Name: tty.Alt, Text: word[2:]})
			default:
				out = append(out, tty.Key{Name: names[word]})
			}
			continue
		}
		r := []rune(s)[0]
		out = append(out, tty.Key{Name: tty.Text, Text: string(r)})
		s = s[len(string(r)):]
	}
	return out
}

// shown is the text with a bar where the cursor stands.
func shown(e *edit.Editor) string {
	lines, row, col := e.View(1000, 1000)
	at := 0
	for i, r := range lines[row] {
		if at == col {
			lines[row] = lines[row][:i] + "|" + lines[row][i:]
			return strings.Join(lines, "\n")
		}
		at += term.RuneColumns(r)
	}
	lines[row] += "|"
	return strings.Join(lines, "\n")
}

func TestEditing(t *testing.T) {
	for _, c := range []struct{ name, keys, want string }{
		{"typing", "ab<left>c", "ac|b"},
		{"home and end are those of the line", "one<nl>two<home>x<end>y<c-a>z<c-e>", "one\nzxtwoy|"},
		{"a backslash at the end of a line makes a new one", `one\<enter>two`, "one\ntwo|"},
		{"a backslash elsewhere does not", `a\b<left><enter>`, `a\|b`},
		{"a letter goes with its marks", "e\u0301x<left><left>y<del>", "y|x"},
		{"and is deleted with them", "ae\u0301<bs>", "a|"},
		{"an emoji of several parts is one", "a👩\u200d🔬b<left><bs>", "a|b"},
		{"words", "one two-three<wleft>x<c-w><c-w>", "one |three"},
		{"words forward", "one two<home><wright>x<a-f>y<a-b>", "onex |twoy"},
		{"delete the next word", "one two<home><a-d>", "| two"},
		{"delete to the beginning and put it back twice", "one two<left><c-u>x<c-y><c-y>", "xone twone tw|o"},
		{"delete to the end, then the line break", "one<nl>two<up><end><c-k>", "one|two"},
		{"up and down keep their column", "long line<nl>x<nl>other line<up><up>", "long line|\nx\nother line"},
		{"wide characters", "漢字<left>x", "漢x|字"},
		{"what could change the screen is shown as an escape", "a\u202eb<left>", "a\\u{202e}|b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e edit.Editor
			for _, k := range keys(c.keys) {
				e.Key(k)
				shown(&e)
			}
			if got := shown(&e); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAPasteIsTextAndNothingElse(t *testing.T) {
	var e edit.Editor
	e.Key(tty.Key{Name: tty.Paste, Text: "one\ntwo\\\n"})
	if got := e.Text(); got != "one\ntwo\\\n" {
		t.Errorf("%q", got)
	}
	if e.Key(tty.Key{Name: tty.Paste, Text: strings.Repeat("x", edit.MaxText)}) || e.Text() != "one\ntwo\\\n" {
		t.Error("a text that is too long was taken")
	}
}

func TestHistory(t *testing.T) {
	var e edit.Editor
	for _, s := range []string{"first", "two\nlines", "two\nlines", "  ", "last"} {
		e.Set(s)
		if got := e.Take(); got != s {
			t.Fatalf("%q", got)
		}
	}
	if diff := cmp.Diff([]string{"first", "two\nlines", "last"}, e.History.Entries()); diff != "" {
		t.Error(diff)
	}
	for _, step := range []struct{ keys, want string }{
		{"draft<up>", "last|"}, {"<up>", "two\nlines|"}, {"<up>", "two|\nlines"}, {"<up>", "first|"}, {"<up>", "first|"},
		{"<down>", "two\nlines|"}, {"<down>", "last|"}, {"x<down>", "draft|"}, {"<down>", "draft|"}, {"<c-p>", "last|"}, {"<c-n>", "draft|"},
	} {
		for _, k := range keys(step.keys) {
			shown(&e)
			e.Key(k)
		}
		if got := shown(&e); got != step.want {
			t.Errorf("after %s: %q, want %q", step.keys, got, step.want)
		}
	}
}

func TestAHistoryFileIsReadAgainAndWhatIsNoEntryIsPassedOver(t *testing.T) {
	var file []byte
	for i := range edit.MaxHistory + 5 {
		file = append(file, edit.Entry(fmt.Sprintf("entry %d\n\"\x1b", i))...)
	}
	file = append(file, "half a li\n{}\n7\n\"torn"...)
	var h edit.History
	if n := h.Load(file); n != edit.MaxHistory+5+4 {
		t.Errorf("%d lines", n)
	}
	if es := h.Entries(); len(es) != edit.MaxHistory || es[0] != "entry 5\n\"\x1b" {
		t.Errorf("%d entries, the first %q", len(es), es[0])
	}
}

// Any keys: the text is what a plain model says, the view fits its width and the
// cursor stands in it.
func TestAnyKeysKeepTextViewAndCursorTogether(t *testing.T) {
	key := rapid.SampledFrom(keys("ab 漢\u0301👩\u200d\t<left><right><up><down><home><end><bs><wbs><del><wleft><wright><nl><c-u><c-k><c-w><c-y><a-d><c-a>"))
	rapid.Check(t, func(t *rapid.T) {
		var e edit.Editor
		for _, k := range rapid.SliceOfN(key, 0, 80).Draw(t, "keys") {
			before := e.Text()
			e.Key(k)
			if n := len(e.Text()) - len(before); k.Name == tty.Text && n != len(k.Text) {
				t.Fatalf("%q grew by %d", k.Text, n)
			}
			width, most := rapid.IntRange(8, 20).Draw(t, "width"), rapid.IntRange(1, 6).Draw(t, "rows")
			lines, row, col := e.View(width, most)
			if len(lines) == 0 || len(lines) > most || row < 0 || row >= len(lines) || col < 0 || col >= width+1 {
				t.Fatalf("%d rows of %d, cursor %d,%d", len(lines), most, row, col)
			}
			for _, l := range lines {
				if term.Columns(l) > width {
					t.Fatalf("%q is wider than %d", l, width)
				}
			}
			if !strings.HasSuffix(e.Text(), e.Before()) && !strings.Contains(e.Text(), e.Before()) {
				t.Fatalf("%q is not in %q", e.Before(), e.Text())
			}
		}
	})
}
