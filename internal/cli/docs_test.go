package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop/internal/cli"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
)

// TestJSONReference runs every example of docs/cli-json.md, in order and in one
// folder, and compares members and kinds of what is printed with what is
// written there.
func TestJSONReference(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(conformance.Dir(), "..", "docs", "cli-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"sample.jsonl": log, "torn.jsonl": log[:len(log)-10],
		"hello.jsonl": []byte("{\"script\":1}\n{\"text\":\"Hello.\"}\n"), "rollout-new.jsonl": []byte(rollout),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// These talk to a person and answer nothing.
	documented := map[string]bool{"chat": true, "serve": true}
	var servers *natstest.Cluster
	for _, ex := range examples(t, string(text)) {
		documented[ex.args[0]] = true
		var out, errOut bytes.Buffer
		ids := 0
		code := cli.Main(context.Background(), realmAddress(t, &servers, ex.args), cli.Env{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut, Dir: dir,
			Getenv: func(n string) string { return map[string]string{"HOME": dir}[n] },
			Now:    func() time.Time { return startTime },
			NewID:  func() string { ids++; return fmt.Sprintf("new-%d", ids) },
		})
		if code != 0 {
			t.Errorf("outcrop %s: exit %d: %s", strings.Join(ex.args, " "), code, errOut.String())
			continue
		}
		compare(t, ex, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"))
	}
	// A command that answers in JSON must stand in the reference.
	_, help, _ := run(t, "", nil, "--help")
	for line := range strings.Lines(help) {
		f := strings.Fields(line)
		if len(f) > 2 && strings.HasPrefix(line, "  ") && line[2] != ' ' && line[2] != '-' && f[0] != "outcrop" && f[0] != "completion" && f[0] != "help" && !documented[f[0]] {
			t.Errorf("%s has no example in docs/cli-json.md", f[0])
		}
	}
}

// rollout is a session of another program.
const rollout = `{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/home/ada","cli_version":"0.80.0"}}
{"timestamp":"2026-03-01T10:00:01.000Z","type":"turn_context","payload":{"model":"m1"}}
{"timestamp":"2026-03-01T10:00:02.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello"}]}}
{"timestamp":"2026-03-01T10:00:03.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi."}]}}
{"timestamp":"2026-03-01T10:00:04.000Z","type":"event_msg","payload":{"type":"new"}}
`

// example is a command with the lines that it prints; "…" stands for some.
type example struct {
	args  []string
	lines []string
}

func examples(t *testing.T, text string) (all []example) {
	t.Helper()
	for i, block := range strings.Split(text, "```console\n") {
		if i == 0 {
			continue
		}
		block, _, ok := strings.Cut(block, "\n```")
		lines := strings.Split(block, "\n")
		if !ok || !strings.HasPrefix(lines[0], "$ outcrop ") {
			t.Fatalf("an example that runs nothing: %q", lines[0])
		}
		all = append(all, example{words(lines[0][len("$ outcrop "):]), lines[1:]})
	}
	if len(all) < 15 {
		t.Fatalf("%d examples", len(all))
	}
	return all
}

// words splits a command line; double quotes hold words together.
func words(s string) (out []string) {
	for i, part := range strings.Split(s, `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

func compare(t *testing.T, ex example, got []string) {
	t.Helper()
	name := strings.Join(ex.args, " ")
	at := 0
	for i, want := range ex.lines {
		if want == "…" {
			at = len(got) - (len(ex.lines) - i - 1)
			continue
		}
		if at >= len(got) {
			t.Errorf("outcrop %s prints %d lines", name, len(got))
			return
		}
		if d := cmp.Diff(shape(t, want), shape(t, got[at])); d != "" {
			t.Errorf("outcrop %s, line %d (-documented +printed):\n%s", name, at+1, d)
		}
		at++
	}
	if at != len(got) {
		t.Errorf("outcrop %s prints %d lines, documented are %d", name, len(got), at)
	}
}

// logged are members whose value is JSON of the log, not of the command line.
var logged = []string{"messages", "message", "removed", "added", "config", "tools", "data"}

// shape is every member of a JSON text with its kind, in order of their paths.
func shape(t *testing.T, text string) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	found := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		kind := fmt.Sprintf("%T", v)
		found[path+" "+map[string]string{"string": "text", "float64": "number", "bool": "boolean", "<nil>": "null",
			"map[string]interface {}": "object", "[]interface {}": "list"}[kind]] = true
		switch v := v.(type) {
		case map[string]any:
			for name, m := range v {
				if slices.Contains(logged, name) {
					found[path+"."+name] = true
					continue
				}
				walk(path+"."+name, m)
			}
		case []any:
			for _, m := range v {
				walk(path+"[]", m)
			}
		}
	}
	walk("", v)
	return slices.Sorted(maps.Keys(found))
}
