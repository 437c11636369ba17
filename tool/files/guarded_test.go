package files_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop/tool"
)

func TestAChangeInAGuardedFolderCountsAsRunningSomething(t *testing.T) {
	p := newPlace(t)
	p.put(".git/config", "x")
	p.put("sub/a.txt", "x")
	for link, to := range map[string]string{"plain": ".git", "sub/up": "../.git/config"} {
		if err := os.Symlink(to, filepath.Join(p.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		want tool.Class
	}{
		{"a.txt", tool.Edit}, {"sub/a.txt", tool.Edit}, {".gitignore", tool.Edit}, {".github/workflows/x.yml", tool.Edit}, {"git/hooks/x", tool.Edit},
		{".git/../a.txt", tool.Edit}, {filepath.Join(p.dir, "a.txt"), tool.Edit},
		{".git/config", tool.Exec}, {".git/hooks/pre-commit", tool.Exec}, {".git", tool.Exec}, {"./.git//hooks/x", tool.Exec},
		{"sub/../.git/hooks/x", tool.Exec}, {".GIT/hooks/x", tool.Exec}, {".Git./x", tool.Exec}, {".git /x", tool.Exec},
		{".git::$INDEX_ALLOCATION/x", tool.Exec}, {filepath.Join(p.dir, ".git", "config"), tool.Exec},
		{".outcrop/config.toml", tool.Exec}, {".OutCrop/config.toml", tool.Exec}, {"sub/.git/hooks/x", tool.Exec},
		{"plain/hooks/x", tool.Exec}, {"sub/up", tool.Exec}, {"../x", tool.Exec}, {"", tool.Exec},
	} {
		for _, name := range []string{"write", "edit"} {
			raw, err := json.Marshal(args{"path": c.path, "content": "x", "edits": []args{{"old": "x", "new": "y"}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := tool.ClassOf(p.tool(name), tool.Call{Name: name, Arguments: raw}); got != c.want {
				t.Errorf("%s %q is %s, want %s", name, c.path, got, c.want)
			}
		}
	}
	if got := tool.ClassOf(p.tool("read"), tool.Call{Arguments: json.RawMessage(`{"path":".git/config"}`)}); got != tool.Read {
		t.Errorf("reading is %s", got)
	}
}

// tool is one of the tools by its name.
func (p *place) tool(name string) tool.Tool {
	p.t.Helper()
	tools, err := p.w.Tools()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, t := range tools {
		if t.Name() == name {
			return t
		}
	}
	p.t.Fatalf("there is no tool %s", name)
	return nil
}
