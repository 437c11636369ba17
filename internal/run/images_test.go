package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

// answering is a server whose every answer is "ok", and what it was asked.
func answering(t *testing.T) (url string, asked func() string) {
	t.Helper()
	var last []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last, _ = io.ReadAll(r.Body) // what is missing is seen by the test
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string { return string(last) }
}

func TestImagesThatTheModelDoesNotGetAreSaidOnce(t *testing.T) {
	dir := t.TempDir()
	url, asked := answering(t)
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 2, 3))); err != nil {
		t.Fatal(err)
	}
	config := "[providers.p]\nbase_url = \"" + url + "\"\n[providers.p.models.sees]\nwindow = 100000\nimages = true\n[providers.p.models.blind]\nwindow = 100000\n"
	for name, b := range map[string][]byte{"a.png": dot.Bytes(), "b.png": append(dot.Bytes(), 0), "c.toml": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (said string) {
		t.Helper()
		var o, e strings.Builder
		code := cli.Main(context.Background(), append([]string{"run", "--config", "c.toml"}, args...), cli.Env{
			Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Dir: dir, Program: "outcrop",
			Getenv: func(n string) string { return map[string]string{"OUTCROP_HOME": filepath.Join(dir, "home")}[n] },
		})
		if code != 0 || o.String() != "ok\n" {
			t.Fatalf("exit %d, %q, %s", code, o.String(), e.String())
		}
		return e.String()
	}
	const blind = "outcrop: p:blind takes no images: it is only told that there is one\n"
	if said := run("--model", "p:blind", "--attach", "a.png", "--attach", "b.png", "look"); strings.Count(said, blind) != 1 {
		t.Errorf("a model without images: %s", said)
	}
	said := run("--model", "p:sees", "--attach", "a.png", "--attach", "b.png", "look")
	if strings.Contains(said, "image") {
		t.Errorf("nothing is missing, but: %s", said)
	}
	if strings.Contains(asked(), "is missing") || !strings.Contains(asked(), "data:image/png") {
		t.Errorf("the model got %.300s", asked())
	}
	if err := filepath.WalkDir(filepath.Join(dir, "home"), func(path string, d os.DirEntry, err error) error {
		if b, rerr := os.ReadFile(path); rerr == nil && bytes.HasPrefix(b, []byte("\x89PNG")) {
			return os.Remove(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	said = run("--session", "last", "and now")
	if strings.Count(said, "outcrop: 2 images are missing in the store (sha256:") != 1 || strings.Count(said, "missing") != 1 {
		t.Errorf("missing images: %s", said)
	}
	if !json.Valid([]byte(asked())) || strings.Count(asked(), "is missing") != 2 {
		t.Errorf("the model got %.300s", asked())
	}
	if said := run("--session", "last", "--model", "p:blind", "again"); strings.Contains(said, "missing") {
		t.Errorf("a model that gets none anyway: %s", said)
	}
}
