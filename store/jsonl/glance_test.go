package jsonl

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

// A glance sees what the file system says, in whichever folder and order it is
// asked for.
func TestAGlanceSeesWhatStatSays(t *testing.T) {
	root := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"p/s1", "p/s2/session.jsonl", "q/s1"} {
		must(os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	must(os.WriteFile(filepath.Join(root, "p/s1/session.jsonl"), []byte("text"), 0o600))
	must(os.WriteFile(filepath.Join(root, "q/s1/session.lock"), nil, 0o600))
	if runtime.GOOS != "windows" { // where a link needs a privilege
		must(os.Symlink("../../p/s1/session.jsonl", filepath.Join(root, "q/s1/session.jsonl")))
		must(os.Symlink("../p/s1", filepath.Join(root, "q/link")))
	}
	for _, disk := range []faultfs.FS{faultfs.Real, struct{ faultfs.FS }{faultfs.Real}} {
		g := &glancer{disk: disk}
		for range 2 {
			for _, dir := range []string{"p/s1", "p/s2", "q/s1", "p/none", "q/link", "none/s1", "p/s1"} {
				dir = filepath.Join(root, dir)
				for _, name := range []string{"", "session.jsonl", "session.lock"} {
					got, err := g.look(dir, name)
					fi, want := os.Stat(filepath.Join(dir, name))
					if (err == nil) != (want == nil) || want == nil && got != glanceOf(fi) {
						t.Errorf("%s %s: %+v, %v; stat says %v, %v", dir, name, got, err, fi, want)
					}
				}
			}
		}
		g.close()
	}
}
