package files_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
)

type place struct {
	t   *testing.T
	dir string
	w   *files.Workspace
	reg *tool.Registry
}

func newPlace(t *testing.T, readable ...string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	p.open(readable...)
	return p
}

func (p *place) open(readable ...string) {
	p.t.Helper()
	w, err := files.Open(p.dir, readable...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { w.Close() })
	tools, err := w.Tools()
	if err != nil {
		p.t.Fatal(err)
	}
	p.w = w
	if p.reg, err = tool.NewRegistry(tool.Options{}, tools...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) put(name, content string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) get(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// call runs a tool and returns its text and code.
func (p *place) call(name string, args map[string]any) (text, code string, out tool.Outcome) {
	p.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		p.t.Fatal(err)
	}
	tl, call, bad := p.reg.Check("c1", name, string(raw))
	if bad != nil {
		return bad.Msg, bad.Code, tool.Failed(bad)
	}
	out = p.reg.Run(context.Background(), tl, call)
	if out.Err != nil {
		code = out.Err.Code
	}
	return message.PlainText(out.Content), code, out
}

type args = map[string]any

func TestReadReturnsTheLinesThatAreAskedFor(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one\ntwo\nthree\nfour")
	p.put("empty.txt", "")
	p.put("sub/b.txt", "b\r\n")
	p.put("sub/a.txt", "a\n")
	p.put("bin", "a\x00b")
	p.put("mixed", "a\r\nb\n")
	p.put("bom", "\ufeffa\n")
	p.put("utf16le", "\xff\xfea\x00\r\x00\n\x00\xe9\x00")
	p.put("utf16be", "\xfe\xff\x00a\x00\n")
	p.put("latin", "caf\xe9 is mostly readable text all the same\n")
	for _, c := range []struct {
		name       string
		args       args
		text, code string
	}{
		{"whole", args{"path": "a.txt"}, "one\ntwo\nthree\nfour", ""},
		{"a part", args{"path": "a.txt", "offset": 2, "limit": 2}, "two\nthree\n[lines 2 to 3 of 4; go on with offset 4]", ""},
		{"the last line", args{"path": "a.txt", "offset": 4}, "four", ""},
		{"behind the end", args{"path": "a.txt", "offset": 5}, "Error: invalid arguments: offset 5 is behind the end: a.txt has 4 lines", "INVALID_ARGS"},
		{"empty", args{"path": "empty.txt"}, "(empty file)", ""},
		{"CRLF is said", args{"path": "sub/b.txt"}, "b\n[CRLF line ends, shown as LF; edit keeps them]", ""},
		{"mixed line ends stay", args{"path": "mixed"}, "a\r\nb\n[mixed line ends, CRLF and LF]", ""},
		{"a byte order mark is said", args{"path": "bom"}, "a\n[a byte order mark at the start, not shown]", ""},
		{"UTF-16 is said", args{"path": "utf16le"}, "a\né\n[UTF-16 LE, shown as UTF-8]\n[CRLF line ends, shown as LF; edit keeps them]", ""},
		{"the other UTF-16", args{"path": "utf16be"}, "a\n[UTF-16 BE, shown as UTF-8]", ""},
		{"line numbers", args{"path": "a.txt", "offset": 2, "limit": 2, "numbers": true}, "2\ttwo\n3\tthree\n[lines 2 to 3 of 4; go on with offset 4]", ""},
		{"an absolute path inside", args{"path": filepath.Join(p.dir, "a.txt"), "limit": 1}, "one\n[lines 1 to 1 of 4; go on with offset 2]", ""},
		{"dots inside", args{"path": "sub/../sub/./a.txt"}, "a\n", ""},
		{"binary", args{"path": "bin"}, "Error: bin is a binary file of 3 bytes; read shows text only", "BINARY"},
		{"another encoding", args{"path": "latin"}, "caf\uFFFD is mostly readable text all the same\n[not UTF-8: other bytes are shown as \uFFFD]", ""},
		{"missing", args{"path": "no.txt"}, "Error: no.txt does not exist; list shows what is there", "NOT_FOUND"},
		{"a directory", args{"path": "sub"}, "Error: sub is a directory; list shows what is in it", "IS_A_DIRECTORY"},
		{"no path", args{"path": ""}, "Error: invalid arguments: path is empty", "INVALID_ARGS"},
		{"negative", args{"path": "a.txt", "offset": -1}, "Error: invalid arguments: offset and limit count from 1", "INVALID_ARGS"},
		{"out by dots", args{"path": "../x"}, "Error: ../x is outside the workspace; only files inside it can be used", "OUTSIDE_WORKSPACE"},
		{"out by an absolute path", args{"path": "/etc/hosts"}, "Error: /etc/hosts is outside the workspace; only files inside it can be used", "OUTSIDE_WORKSPACE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.t = t
			text, code, _ := p.call("read", c.args)
			if text != c.text || code != c.code {
				t.Errorf("got %q %s, want %q %s", text, code, c.text, c.code)
			}
		})
	}
}

func TestNoToolFollowsALinkOutOfTheWorkspace(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	for name, target := range map[string]string{"file": filepath.Join(outside, "secret"), "dir": outside, "new": filepath.Join(outside, "made")} {
		if err := os.Symlink(target, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		tool string
		args args
	}{
		{"read", args{"path": "file"}}, {"read", args{"path": "dir/secret"}}, {"list", args{"path": "dir"}},
		{"glob", args{"path": "dir", "pattern": "*"}}, {"grep", args{"path": "dir", "pattern": "s"}}, {"grep", args{"path": "file", "pattern": "s"}},
		{"edit", args{"path": "file", "edits": []args{{"old": "s", "new": "x"}}}},
		{"write", args{"path": "file", "content": "x"}}, {"write", args{"path": "dir/made", "content": "x"}}, {"write", args{"path": "new", "content": "x"}},
	} {
		text, code, _ := p.call(c.tool, c.args)
		if code != "OUTSIDE_WORKSPACE" || strings.Contains(text, "secret\n") || !strings.Contains(text, "the link ") {
			t.Errorf("%s %v: %s %q", c.tool, c.args, code, text)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside has %v now, %v", entries, err)
	}
}

func TestReadLooksIntoTheFoldersOfLongOutputs(t *testing.T) {
	spill := filepath.Join(t.TempDir(), "made later")
	p := newPlace(t, spill)
	path, err := tool.DirSpill{Dir: spill}.Save(context.Background(), tool.Call{ID: "c1", Name: "shell"}, "whole output")
	if err != nil {
		t.Fatal(err)
	}
	if text, code, _ := p.call("read", args{"path": path}); text != "whole output" {
		t.Errorf("%q %s", text, code)
	}
	if _, code, _ := p.call("write", args{"path": path, "content": "x"}); code != "OUTSIDE_WORKSPACE" {
		t.Errorf("write into it: %s", code)
	}
}

func TestListShowsADirectorySorted(t *testing.T) {
	p := newPlace(t)
	if text, _, _ := p.call("list", args{}); text != "(empty directory)" {
		t.Errorf("%q", text)
	}
	p.put("b.txt", "12345")
	p.put("a/x", "")
	p.put("odd\nname", "1")
	if err := os.Symlink("b.txt", filepath.Join(p.dir, "link")); err != nil {
		t.Fatal(err)
	}
	want := "a/\nb.txt  5\nlink@\n\"odd\\nname\"  1\n"
	if text, _, _ := p.call("list", args{"path": "."}); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if _, code, _ := p.call("list", args{"path": "b.txt"}); code != "NOT_A_DIRECTORY" {
		t.Errorf("list of a file: %s", code)
	}
	for i := range files.MaxEntries {
		p.put("many/"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26), "")
	}
	p.put("many/zzz", "")
	text, _, _ := p.call("list", args{"path": "many"})
	if lines := strings.Count(text, "\n"); lines != files.MaxEntries+1 || !strings.HasSuffix(text, "[1 more entries]\n") {
		t.Errorf("%d lines, end %q", lines, text[len(text)-40:])
	}
}

func TestWriteMakesAndReplacesFiles(t *testing.T) {
	p := newPlace(t)
	text, code, out := p.call("write", args{"path": "new/dir/a.txt", "content": "one\ntwo"})
	if text != "created new/dir/a.txt: 7 bytes, 2 lines" || code != "" || p.get("new/dir/a.txt") != "one\ntwo" {
		t.Errorf("%q %s", text, code)
	}
	var meta struct{ Path, Digest string }
	if err := json.Unmarshal(out.Meta, &meta); err != nil || meta.Path != "new/dir/a.txt" || !strings.HasPrefix(meta.Digest, "sha256:") {
		t.Errorf("meta %s", out.Meta)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(filepath.Join(p.dir, "new/dir/a.txt"), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	// Its own write is known, so it may write again.
	if text, _, _ := p.call("write", args{"path": "new/dir/a.txt", "content": ""}); text != "replaced new/dir/a.txt: 0 bytes, 0 lines" {
		t.Errorf("%q", text)
	}
	info, err := os.Stat(filepath.Join(p.dir, "new/dir/a.txt"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Join(p.dir, "new/dir"))
	if err != nil || len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
	if _, code, _ := p.call("write", args{"path": "new", "content": "x"}); code != "IS_A_DIRECTORY" {
		t.Errorf("write over a directory: %s", code)
	}
	p.put("target", "t")
	if err := os.Symlink("target", filepath.Join(p.dir, "link")); err != nil {
		t.Fatal(err)
	}
	p.call("read", args{"path": "target"})
	if _, code, _ := p.call("write", args{"path": "link", "content": "through"}); code != "" || p.get("target") != "through" {
		t.Errorf("write through a link: %s, target %q", code, p.get("target"))
	}
}

func TestWriteRefusesAFileThatWasNeverRead(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "somebody's")
	text, code, _ := p.call("write", args{"path": "a.txt", "content": "mine"})
	if want := "Error: a.txt exists and was not read yet; read it first, or write to a new name"; text != want || code != "NOT_READ" || p.get("a.txt") != "somebody's" {
		t.Errorf("%q %s, content %q", text, code, p.get("a.txt"))
	}
	// Nobody is asked about a call that would fail.
	tl, call, bad := p.reg.Check("c", "write", `{"path":"a.txt","content":"mine"}`)
	if bad != nil {
		t.Fatal(bad)
	}
	if _, err := p.reg.Preview(t.Context(), tl, call); err == nil {
		t.Error("there is a preview")
	}
	// A part that was read is enough: the model knows that there is something.
	p.call("read", args{"path": "a.txt", "limit": 1})
	if text, code, _ := p.call("write", args{"path": "a.txt", "content": "x\n"}); code != "" || text != "replaced a.txt: 2 bytes, 1 line" {
		t.Errorf("after reading: %q %s", text, code)
	}
	if text, _, _ := p.call("write", args{"path": "b.txt", "content": "x"}); text != "created b.txt: 1 byte, 1 line" {
		t.Errorf("%q", text)
	}
}

func TestTheApprovalOfAWriteThatChangesNothingSaysSo(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one\n")
	p.call("read", args{"path": "a.txt"})
	tl, call, bad := p.reg.Check("c", "write", `{"path":"a.txt","content":"one\n"}`)
	if bad != nil {
		t.Fatal(bad)
	}
	pre, err := p.reg.Preview(t.Context(), tl, call)
	if err != nil || pre.Title != "write a.txt (no change)" || pre.Body != "" {
		t.Errorf("%+v, %v", pre, err)
	}
}

func TestTextInAnotherEncodingIsNotCalledBinary(t *testing.T) {
	p := newPlace(t)
	for name, content := range map[string]string{"latin1": "\xe4\xf6\xfc \xdf\n", "bin": "\xff\x01\x02\xfe\x03"} {
		p.put(name, content)
	}
	for name, want := range map[string]string{
		"latin1": "Error: latin1 is text that is not UTF-8 (6 bytes); read shows UTF-8 and UTF-16: use shell, as in iconv -f latin1 -t utf-8",
		"bin":    "Error: bin is a binary file of 5 bytes; read shows text only",
	} {
		if text, _, _ := p.call("read", args{"path": name}); text != want {
			t.Errorf("got  %q\nwant %q", text, want)
		}
	}
}

func TestWriteRefusesAFileThatChangedSinceItWasRead(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one")
	p.call("read", args{"path": "a.txt"})
	p.put("a.txt", "someone else was here")
	if _, code, _ := p.call("write", args{"path": "a.txt", "content": "mine"}); code != "CHANGED_ON_DISK" || p.get("a.txt") != "someone else was here" {
		t.Errorf("code %s, content %q", code, p.get("a.txt"))
	}
	if err := os.Remove(filepath.Join(p.dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if _, code, _ := p.call("write", args{"path": "a.txt", "content": "mine"}); code != "CHANGED_ON_DISK" {
		t.Errorf("removed meanwhile: %s", code)
	}
	// Reading tells the model that it is gone; then it may be made anew.
	p.call("read", args{"path": "a.txt"})
	if _, code, _ := p.call("write", args{"path": "a.txt", "content": "mine"}); code != "" || p.get("a.txt") != "mine" {
		t.Errorf("after reading: %s", code)
	}
}

func TestLearnTakesWhatASessionKnewFromItsLog(t *testing.T) {
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
	p.put("a.txt", "two")
	p.open() // a new process
	p.w.Learn(s.Log())
	if _, code, _ := p.call("write", args{"path": "a.txt", "content": "mine"}); code != "CHANGED_ON_DISK" {
		t.Errorf("code %q", code)
	}
}

func TestPreviewOfWriteIsADiff(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one\ntwo\nthree\n")
	p.call("read", args{"path": "a.txt"})
	tl, call, bad := p.reg.Check("c", "write", `{"path":"a.txt","content":"one\n2\nthree\n"}`)
	if bad != nil {
		t.Fatal(bad)
	}
	pre, err := p.reg.Preview(context.Background(), tl, call)
	want := "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
	if err != nil || pre.Body != want || pre.Dir != p.w.Dir() {
		t.Errorf("%+v, %v", pre, err)
	}
	if p.get("a.txt") != "one\ntwo\nthree\n" {
		t.Error("the preview wrote")
	}
}

func TestDiffIsUnified(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"equal", "a\n", "a\n", ""},
		{"new file", "", "a\nb\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"emptied", "a\n", "", "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n"},
		{"no newline at the end", "a", "b", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"},
		{"two hunks", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "1x\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12x\n",
			"--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+1x\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+12x\n"},
		{"an insertion in the middle", "a\nb\nc\n", "a\nb\nx\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n b\n+x\n c\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := files.Diff("f", c.old, c.new); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// The lines of a diff give back both texts, hunks taken in their places.
func TestDiffGivesBackBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 0, 40).Draw(t, "lines"), "\n")
			if rapid.Bool().Draw(t, "newline") {
				s += "\n"
			}
			return s
		})
		old, new := text.Draw(t, "old"), text.Draw(t, "new")
		got, err := apply(old, files.Diff("f", old, new))
		if err != "" || got != new {
			t.Fatalf("%s: %q, want %q; diff\n%s", err, got, new, files.Diff("f", old, new))
		}
	})
}
