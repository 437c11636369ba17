package files_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
)

func edits(pairs ...string) []args {
	var out []args
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, args{"old": pairs[i], "new": pairs[i+1]})
	}
	return out
}

func TestEditReplacesExactText(t *testing.T) {
	for _, c := range []struct {
		name, before string
		edits        []args
		after        string // "" when it is refused
		code, text   string
	}{
		{"one place", "one\ntwo\n", edits("two", "2"), "one\n2\n", "", "edited f in 1 place: 6 bytes, 2 lines"},
		{"several, each in what the ones before left", "a\nb\n", edits("a", "b1", "b1\n", "c\n"), "c\nb\n", "", "2 places"},
		{"all places", "x y x\n", []args{{"old": "x", "new": "z", "all": true}}, "z y z\n", "", "2 places"},
		{"removed", "a\nb\n", edits("b\n", ""), "a\n", "", "1 place"},
		{"CRLF stays", "a\r\nb\r\nc\r\n", edits("a\nb", "1\n2\n3"), "1\r\n2\r\n3\r\nc\r\n", "", "1 place"},
		{"CRLF may be given", "a\r\nb\r\n", edits("a\r\nb", "1"), "1\r\n", "", "1 place"},
		{"mixed line ends are exact", "a\r\nb\n", edits("b\n", "c\n"), "a\r\nc\n", "", "1 place"},
		{"a byte order mark stays", "\ufeffa\n", edits("a", "b"), "\ufeffb\n", "", "1 place"},
		{"bytes that are no UTF-8 stay", "caf\xe9 and more text here\n", edits("more", "less"), "caf\xe9 and less text here\n", "", "1 place"},
		{"not there", "func alpha() {\n}\n", edits("func alphabet() {", "x"), "", "NOT_FOUND_IN_FILE", `the nearest line is 1: "func alpha() {"`},
		{"not there and nothing like it", "zzz\n", edits("func alphabet() {", "x"), "", "NOT_FOUND_IN_FILE", "no line is like it"},
		{"other white space", "a\n\tif x {\n", edits("  if x {", "x"), "", "NOT_FOUND_IN_FILE", `line 2 differs in white space only: "\tif x {"`},
		{"other white space in several lines", "a\n\tb\n\tc\n", edits("  b\n  c", "x"), "", "NOT_FOUND_IN_FILE", "lines 2 to 3 differ in white space only"},
		{"twice", "x\ny\nx\n", edits("x", "z"), "", "FOUND_TWICE", "old is found 2 times, at lines 1, 3"},
		{"twice, one over the other", "aaa\n", edits("aa", "b"), "", "FOUND_TWICE", "2 times, at lines 1, 1"},
		{"seven times", strings.Repeat("x\n", 7), edits("x", "z"), "", "FOUND_TWICE", "7 times, at lines 1, 2, 3, 4, 5 and more"},
		{"the second is wrong, the first is not made", "a\nb\n", edits("a", "1", "c", "2"), "", "NOT_FOUND_IN_FILE", "edit 2 of 2: old is not found"},
		{"empty", "a\n", edits("", "x"), "", "INVALID_ARGS", "old is empty"},
		{"the same", "a\n", edits("a", "a"), "", "INVALID_ARGS", "are the same"},
		{"the same but for line ends that do not count", "a\r\nb\r\n", edits("a\n", "a\r\n"), "", "INVALID_ARGS", "are the same"},
		{"there and back", "a\n", edits("a", "b", "b", "a"), "", "INVALID_ARGS", "change nothing"},
		{"no edits", "a\n", []args{}, "", "INVALID_ARGS", "edits holds 1 to 100"},
		{"UTF-16", "\xff\xfea\x00", edits("a", "b"), "", "NOT_UTF8", "UTF-16 LE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			p.put("f", c.before)
			p.call("read", args{"path": "f"})
			text, code, _ := p.call("edit", args{"path": "f", "edits": c.edits})
			want := c.after
			if c.code != "" {
				want = c.before
			}
			if got := p.get("f"); got != want {
				t.Errorf("file %q, want %q", got, want)
			}
			if code != c.code || !strings.Contains(text, c.text) {
				t.Errorf("%s %q, want %s %q", code, text, c.code, c.text)
			}
		})
	}
}

func TestEditRefusesWhatTheModelDoesNotKnow(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one")
	if _, code, _ := p.call("edit", args{"path": "a.txt", "edits": edits("one", "1")}); code != "NOT_READ" {
		t.Errorf("never read: %s", code)
	}
	if _, code, _ := p.call("edit", args{"path": "b.txt", "edits": edits("one", "1")}); code != "NOT_FOUND" {
		t.Errorf("not there: %s", code)
	}
	p.call("read", args{"path": "a.txt"})
	p.put("a.txt", "one and more")
	if _, code, _ := p.call("edit", args{"path": "a.txt", "edits": edits("one", "1")}); code != "CHANGED_ON_DISK" {
		t.Errorf("changed: %s", code)
	}
	p.call("read", args{"path": "a.txt"})
	if err := os.Remove(filepath.Join(p.dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if _, code, _ := p.call("edit", args{"path": "a.txt", "edits": edits("one", "1")}); code != "CHANGED_ON_DISK" {
		t.Errorf("removed: %s", code)
	}
	// Its own write is known, and its own edits.
	p.call("write", args{"path": "new.txt", "content": "one"})
	for _, e := range [][]args{edits("one", "two"), edits("two", "three")} {
		if text, code, _ := p.call("edit", args{"path": "new.txt", "edits": e}); code != "" {
			t.Errorf("%s %s", code, text)
		}
	}
}

func TestEditKnowsWhatALogSaysWasRead(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one")
	_, _, out := p.call("read", args{"path": "a.txt"})
	s, err := outcrop.New(outcrop.NewHeader("s", 1, "/w"), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res := outcrop.NewToolResult(1, 1, "c1", false, out.Content...)
	res.Meta = out.Meta
	if _, err := s.AppendSurface(res, outcrop.Tail, outcrop.NoSources); err != nil {
		t.Fatal(err)
	}
	p.open() // a new process
	p.w.Learn(s.Log())
	if text, code, _ := p.call("edit", args{"path": "a.txt", "edits": edits("one", "two")}); code != "" || p.get("a.txt") != "two" {
		t.Errorf("%s %s", code, text)
	}
}

func TestEditGoesThroughLinksAndKeepsTheMode(t *testing.T) {
	p := newPlace(t)
	p.put("sub/target", "one\n")
	if err := os.Chmod(filepath.Join(p.dir, "sub/target"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "sub/target", "sub/up": "../link", "abs": filepath.Join(p.dir, "sub", "target"), "dir": "sub"} {
		if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// Read by one name, changed by another: it is one file.
	p.call("read", args{"path": "sub/up"})
	old := "one"
	for _, name := range []string{"link", "sub/up", "abs", "dir/target", "dir/../link", "sub/target"} {
		text, code, _ := p.call("edit", args{"path": name, "edits": edits(old, name)})
		if code != "" || p.get("sub/target") != name+"\n" {
			t.Errorf("%s: %s %s", name, code, text)
		}
		old = name
	}
	info, err := os.Lstat(filepath.Join(p.dir, "link"))
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	info, err = os.Stat(filepath.Join(p.dir, "sub/target"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Join(p.dir, "sub")); err != nil || len(left) != 2 {
		t.Errorf("left over: %v", left)
	}
}

func TestAReadOnlyFileIsNotChanged(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one")
	p.call("read", args{"path": "a.txt"})
	if err := os.Chmod(filepath.Join(p.dir, "a.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]args{"write": {"path": "a.txt", "content": "x"}, "edit": {"path": "a.txt", "edits": edits("one", "x")}} {
		if text, code, _ := p.call(name, a); code != "NO_PERMISSION" || !strings.Contains(text, "read-only (mode 0444)") || p.get("a.txt") != "one" {
			t.Errorf("%s: %s %s", name, code, text)
		}
	}
}

func TestPreviewOfEditIsADiff(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one\ntwo\nthree\n")
	preview := func(old string) (tool.Preview, error) {
		raw, err := json.Marshal(args{"path": "a.txt", "edits": edits(old, "2")})
		if err != nil {
			t.Fatal(err)
		}
		tl, call, bad := p.reg.Check("c", "edit", string(raw))
		if bad != nil {
			t.Fatal(bad)
		}
		return p.reg.Preview(context.Background(), tl, call)
	}
	if _, err := preview("two"); err == nil {
		t.Error("a file that was not read has a preview")
	}
	p.call("read", args{"path": "a.txt"})
	pre, err := preview("two")
	want := "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
	if err != nil || pre.Title != "edit a.txt" || pre.Body != want || pre.Dir != p.w.Dir() {
		t.Errorf("%+v, %v", pre, err)
	}
	if _, err := preview("four"); err == nil {
		t.Error("an edit that is refused has a preview")
	}
	if p.get("a.txt") != "one\ntwo\nthree\n" {
		t.Error("the preview wrote")
	}
}

// A replacement and its reverse give back the bytes.
func TestAReplacementCanBeTakenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		piece := rapid.SampledFrom([]string{"a", "b", "ab", "é", "\xff", " ", "\t", "{", ""})
		text := "a" + strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "text"), rapid.SampledFrom([]string{"", end}).Draw(t, "between"))
		from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(text)).Draw(t, "to")
		// A line end is not cut in two.
		if strings.HasPrefix(text[from:], "\n") && strings.HasSuffix(text[:from], "\r") {
			from--
		}
		if strings.HasPrefix(text[to:], "\n") && strings.HasSuffix(text[:to], "\r") {
			to++
		}
		old := text[from:to]
		// A text that stands nowhere yet, so that the way back is clear.
		new := "<" + rapid.SampledFrom([]string{"", "x", "x\ny", "a"}).Draw(t, "new") + ">"
		there, n, err := files.Replace(text, []files.Replacement{{Old: old, New: new}})
		if strings.Count(text, old) > 1 || strings.Contains(text[strings.Index(text, old)+1:], old) {
			if err == nil {
				t.Fatalf("%q stands in %q more than once", old, text)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		back, m, err := files.Replace(there, []files.Replacement{{Old: new, New: old}})
		if err != nil || back != text || n != 1 || m != 1 {
			t.Fatalf("%q to %q to %q, %v", text, there, back, err)
		}
	})
}
