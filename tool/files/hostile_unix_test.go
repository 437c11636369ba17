//go:build unix

package files_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// everyTool calls each tool on one path.
func everyTool(p *place, path string) map[string][2]string {
	out := map[string][2]string{}
	for name, a := range map[string]args{
		"read": {"path": path}, "list": {"path": path}, "glob": {"path": path, "pattern": "*"}, "grep": {"path": path, "pattern": "a"},
		"write": {"path": path, "content": "x"}, "edit": {"path": path, "edits": edits("a", "b")},
	} {
		text, code, _ := p.call(name, a)
		out[name] = [2]string{code, text}
	}
	return out
}

// Opening a pipe waits for its other end, which is never there.
func TestNoToolWaitsForAPipeOrASocket(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "a\n")
	if err := syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(p.dir, "link to pipe")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(p.dir, ".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(p.dir) // the name of a socket has a short limit
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, kind := range map[string]string{"pipe": "a named pipe", "link to pipe": "a named pipe", "socket": "a socket"} {
		for name, got := range everyTool(p, path) {
			code, says := "NOT_A_FILE", kind
			if name == "list" || name == "glob" {
				code, says = "NOT_A_DIRECTORY", "is not a directory"
			}
			if got[0] != code || !strings.Contains(got[1], says) {
				t.Errorf("%s %s: %s %q", name, path, got[0], got[1])
			}
		}
	}
	if text, _, _ := p.call("grep", args{"pattern": "a"}); text != "a.txt\n1:a\n" {
		t.Errorf("grep beside them: %q", text)
	}
	if text, _, _ := p.call("glob", args{"pattern": "*"}); text != "a.txt\nlink to pipe\n" {
		t.Errorf("glob beside them: %q", text)
	}
}

func TestHostilePathsAreRefused(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "a\n")
	for name, to := range map[string]string{"loop1": "loop2", "loop2": "loop1", "self": "self/x", "up": "../../..", "root": "/", "dangling": "nowhere/x"} {
		if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, code string }{
		{"two links in a circle", "loop1", "LINK_LOOP"},
		{"a link to what is below itself", "self", "LINK_LOOP"},
		{"up by a link", "up", "OUTSIDE_WORKSPACE"},
		{"up by a link and down again", "up/" + strings.TrimPrefix(p.dir, "/") + "/a.txt", "OUTSIDE_WORKSPACE"},
		{"an absolute link", "root/etc/passwd", "OUTSIDE_WORKSPACE"},
		{"up by dots", "x/../../y", "OUTSIDE_WORKSPACE"},
		{"up by dots behind what is not there", "no/no/../../../y", "OUTSIDE_WORKSPACE"},
		{"absolute", "/etc/passwd", "OUTSIDE_WORKSPACE"},
		{"absolute with dots", p.dir + "/../x", "OUTSIDE_WORKSPACE"},
		{"a folder with the same beginning", p.dir + "x/a", "OUTSIDE_WORKSPACE"},
		{"NUL", "a\x00b", "INVALID_ARGS"},
		{"empty", "", "INVALID_ARGS"},
	} {
		for name, got := range everyTool(p, c.path) {
			if c.path == "" && name != "read" && name != "write" && name != "edit" {
				continue // the workspace itself
			}
			if got[0] != c.code {
				t.Errorf("%s, %s: %s %q", c.name, name, got[0], got[1])
			}
			if strings.Contains(got[1], "root:") {
				t.Errorf("%s, %s: shows what is outside", c.name, name)
			}
		}
	}
	for name, got := range everyTool(p, strings.Repeat("long", 100)) {
		if !strings.HasPrefix(got[1], "Error: ") {
			t.Errorf("a name that is too long, %s: %q", name, got[1])
		}
	}
	// Through a link that leads nowhere a file can be made, inside.
	if _, code, _ := p.call("write", args{"path": "dangling", "content": "x"}); code != "" || p.get("nowhere/x") != "x" {
		t.Errorf("write through a dangling link: %s", code)
	}
	// A name with control characters is a name like any other.
	if _, code, _ := p.call("write", args{"path": "a\nb\x1b[31m", "content": "x"}); code != "" || p.get("a\nb\x1b[31m") != "x" {
		t.Errorf("write: %s", code)
	}
	if text, _, _ := p.call("list", args{}); strings.Contains(text, "\x1b") || !strings.Contains(text, `"a\nb\x1b[31m"  1`) {
		t.Errorf("list: %q", text)
	}
}

func TestADirectoryThatCannotBeReadIsSaid(t *testing.T) {
	p := newPlace(t)
	p.put("open/a", "x\n")
	p.put("shut/b", "x\n")
	shut := filepath.Join(p.dir, "shut")
	if err := os.Chmod(shut, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(shut, 0o755); err != nil {
			t.Error(err)
		}
	})
	want, code := "open/a\n[1 directories could not be read]\n", "NO_PERMISSION"
	if os.Geteuid() == 0 { // may read everything
		want, code = "open/a\nshut/b\n", ""
	}
	if text, _, _ := p.call("glob", args{"pattern": "*"}); text != want {
		t.Errorf("glob: %q", text)
	}
	if text, got, _ := p.call("list", args{"path": "shut"}); got != code {
		t.Errorf("list: %s %q", got, text)
	}
}

// A tree as deep as the system lets it be.
func TestAVeryDeepTreeIsNotFollowedForEver(t *testing.T) {
	p := newPlace(t)
	deep := strings.Repeat("d/", 250)
	if err := os.MkdirAll(filepath.Join(p.dir, deep), 0o755); err != nil {
		t.Fatal(err)
	}
	p.put(deep+"f", "x")
	p.put("d/g", "x")
	text, _, _ := p.call("glob", args{"pattern": "*"})
	if !strings.HasPrefix(text, "d/g\n[not everything was looked at") {
		t.Errorf("%q", text)
	}
}
