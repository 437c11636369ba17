//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

// Whoever opens a pipe waits for its writer, without end when there is none.
func TestAPipeInThePlaceOfALogIsNamedAndNotOpened(t *testing.T) {
	for _, name := range []string{"pipe.jsonl", "pipe.jsonl.zstd"} {
		pipe := filepath.Join(t.TempDir(), name)
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			args []string
			code int
		}{
			{[]string{"verify", pipe}, 3},
			{[]string{"verify", "x", "--store", pipe}, 3},
			{[]string{"show", pipe}, 3},
			{[]string{"show", pipe, "--raw"}, 3},
			{[]string{"surface", pipe}, 3},
			{[]string{"fork", pipe, "--store", t.TempDir()}, 3},
			{[]string{"convert", pipe, filepath.Join(t.TempDir(), "copy.jsonl")}, 3},
			{[]string{"ls", "--json", "--store", pipe}, 0},
			{[]string{"ls", "--json", "--full", "--store", pipe}, 0},
		} {
			var out bytes.Buffer
			code := cli.Main(context.Background(), c.args, cli.Env{Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }})
			if code != c.code || !strings.Contains(out.String(), "not a regular file but a pipe") {
				t.Errorf("%v: exit %d and not %d: %s", c.args, code, c.code, out.String())
			}
		}
	}
}
