package run_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

func TestAnImageGoesAlongByReferenceAndIsKeptBesideTheSessions(t *testing.T) {
	dir := t.TempDir()
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 2, 3))); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"dot.png": dot.Bytes(), "binary": {0, 1, 2, 3}, "s.jsonl": []byte(`{"text":"A dot."}` + "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (code int, out, errOut string) {
		var o, e strings.Builder
		code = cli.Main(context.Background(), args, cli.Env{
			Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Dir: dir, Program: "outcrop",
			Getenv: func(n string) string { return map[string]string{"OUTCROP_HOME": filepath.Join(dir, "home")}[n] },
		})
		return code, o.String(), e.String()
	}
	if code, _, said := run("run", "--script", "s.jsonl", "--attach", "binary", "look"); code != 2 || !strings.Contains(said, "cannot be attached") {
		t.Errorf("a binary file: exit %d, %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "home", "sessions")); err == nil {
		t.Error("a session was touched")
	}
	code, out, said := run("run", "--script", "s.jsonl", "--attach", "dot.png", "look")
	if code != 0 || out != "A dot.\n" {
		t.Fatalf("exit %d, %q, %s", code, out, said)
	}
	code, out, said = run("show", "last", "--log", "--json")
	if want := `"mediaType":"image/png","width":2,"height":3`; code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit %d, %s: no %s in\n%s", code, said, want, out)
	}
	objects := 0
	err := filepath.WalkDir(filepath.Join(dir, "home"), func(path string, d os.DirEntry, err error) error {
		if b, rerr := os.ReadFile(path); rerr == nil && bytes.Equal(b, dot.Bytes()) {
			objects++
		}
		return err
	})
	if err != nil || objects != 1 {
		t.Errorf("%d copies of the image are kept, %v", objects, err)
	}
}
