package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

// What a log holds acts on no terminal, and goes into a pipe as it is.
func TestNoLogActsOnATerminal(t *testing.T) {
	const evil = "a\u009b2Jb\u202ec\u2028d\u007fe"
	path := filepath.Join(t.TempDir(), "evil.jsonl")
	text := `{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0}` + "\r\n" +
		`{"type":"user/message","seq":0,"time":1,"data":{"role":"user","content":[{"type":"text","text":"` + evil + `"}],"source":{"kind":"user"},"id":"m` + evil + `"},"surfaceOp":"append"}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"show", path, "--raw"}, {"show", path, "--log", "--json"}, {"messages", path, "--json"}, {"surface", path, "--json"}, {"show", path}, {"show", path, "--log"}, {"messages", path}, {"lineage", path, "0"},
	} {
		for _, terminal := range []bool{true, false} {
			var out bytes.Buffer
			code := cli.Main(context.Background(), args, cli.Env{Stdout: &out, Stderr: io.Discard, Dir: t.TempDir(),
				Terminal: func(s any) bool { return terminal && s == any(&out) },
				Getenv:   func(n string) string { return map[string]string{"HOME": "/nowhere", "NO_COLOR": "1"}[n] }})
			if code != 0 {
				t.Errorf("%v: exit %d", args, code)
			}
			if terminal && strings.ContainsAny(out.String(), "\r\u009b\u202e\u2028\u007f") {
				t.Errorf("%v: the log acts on the terminal: %q", args, out.String())
			}
			isJSON := args[len(args)-1] == "--json" || args[len(args)-1] == "--raw"
			if terminal && isJSON {
				for line := range strings.Lines(out.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("%v: %q is no JSON", args, line)
					}
				}
			}
			if !terminal && args[len(args)-1] == "--raw" && out.String() != text {
				t.Errorf("%v: %q, the file has %q", args, out.String(), text)
			}
		}
	}
}
