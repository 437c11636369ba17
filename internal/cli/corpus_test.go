package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop/internal/cli"
	"github.com/outcrop-dev/outcrop/internal/conformance"
)

// run runs a command line in dir and returns what it printed.
func run(t testing.TB, dir string, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = cli.Main(context.Background(), args, cli.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut,
		Getenv: func(name string) string { return env[name] },
		Dir:    dir,
	})
	return code, out.String(), errOut.String()
}

// realLog is a log of the corpus with what dsh reads from it.
type realLog struct {
	name, path string
	expected   expected
}

type expected struct {
	Error             any               `json:"error"`
	SurfaceNodes      []int64           `json:"surfaceNodes"`
	ReplaceGeneration int               `json:"replaceGeneration"`
	Messages          []json.RawMessage `json:"messages"`
}

func realLogs(t testing.TB) []realLog {
	t.Helper()
	corpus := filepath.Join(conformance.Dir(), "corpus")
	answers, err := filepath.Glob(filepath.Join(corpus, "*", "expected", "*", "*.json"))
	if err != nil || len(answers) == 0 {
		t.Fatalf("no corpus in %s: %v", corpus, err)
	}
	var all []realLog
	for _, a := range answers {
		kind := filepath.Base(filepath.Dir(a))
		dir := filepath.Dir(filepath.Dir(filepath.Dir(a)))
		id := strings.TrimSuffix(filepath.Base(a), ".json")
		found, err := filepath.Glob(filepath.Join(dir, kind, "*", id, "session.jsonl*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: log of %s: %v %v", dir, id, found, err)
		}
		l := realLog{name: filepath.Base(dir) + "/" + kind + "/" + id, path: found[0]}
		text, err := os.ReadFile(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &l.expected); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// damaged are the logs of the corpus that somebody damaged by hand, by the exit
// code that reading them gives.
func damaged(name string) (code int, yes bool) {
	if strings.HasPrefix(name, "corrupt-plain-") {
		return 3, true
	}
	return 0, false
}

func TestCorpusSurfaceAndMessagesAreWhatDshReads(t *testing.T) {
	for _, l := range realLogs(t) {
		t.Run(l.name, func(t *testing.T) {
			if _, bad := damaged(l.name); bad || l.expected.Error != nil {
				if l.expected.Error == nil {
					t.Fatal("dsh reads a log that is listed as damaged")
				}
				if code, _, errText := run(t, "", nil, "surface", l.path, "--json"); code != 3 || errText == "" {
					t.Errorf("surface: exit %d %q", code, errText)
				}
				return
			}
			code, out, errText := run(t, "", nil, "surface", l.path, "--closed", "--json")
			if code != 0 {
				t.Fatalf("surface: exit %d: %s", code, errText)
			}
			var surface struct {
				Nodes      []int64
				Generation int
				OpenTurn   bool
			}
			if err := json.Unmarshal([]byte(out), &surface); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(l.expected.SurfaceNodes, surface.Nodes); d != "" {
				t.Errorf("nodes (-dsh +ours):\n%s", d)
			}
			if surface.Generation != l.expected.ReplaceGeneration || surface.OpenTurn {
				t.Errorf("generation %d, openTurn %v; want %d, false", surface.Generation, surface.OpenTurn, l.expected.ReplaceGeneration)
			}
			code, out, errText = run(t, "", nil, "messages", l.path, "--closed", "--json")
			if code != 0 {
				t.Fatalf("messages: exit %d: %s", code, errText)
			}
			var messages struct{ Messages []json.RawMessage }
			if err := json.Unmarshal([]byte(out), &messages); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(values(t, l.expected.Messages), values(t, messages.Messages)); d != "" {
				t.Errorf("messages (-dsh +ours):\n%s", d)
			}
		})
	}
}

// values decodes messages; the explaining text of closers is each program's own.
func values(t *testing.T, raw []json.RawMessage) []any {
	t.Helper()
	out := []any{}
	for _, r := range raw {
		var v map[string]any
		if err := json.Unmarshal(r, &v); err != nil {
			t.Fatal(err)
		}
		if id, _ := v["id"].(string); strings.HasPrefix(id, "interrupted-tool-result-") {
			block := v["content"].([]any)[0].(map[string]any)
			block["content"].([]any)[0].(map[string]any)["text"] = "<text>"
		}
		out = append(out, v)
	}
	return out
}

func TestCorpusShowRawGivesTheStoredLines(t *testing.T) {
	for _, l := range realLogs(t) {
		t.Run(l.name, func(t *testing.T) {
			want := storedText(t, l.path)
			code, out, errText := run(t, "", nil, "show", l.path, "--raw")
			if strings.HasPrefix(l.name, "corrupt-plain-header/") {
				if code != 3 || out != "" {
					t.Errorf("exit %d, %d bytes", code, len(out))
				}
				return
			}
			wantCode, _ := damaged(l.name)
			if code != wantCode {
				t.Fatalf("exit %d, want %d: %s", code, wantCode, errText)
			}
			if errText == "" {
				if out != want {
					t.Errorf("%d bytes differ from the %d that are stored", len(out), len(want))
				}
				return
			}
			// A torn or damaged log gives its good lines, and says so.
			if !strings.HasPrefix(want, out) || !strings.HasSuffix(out, "\n") || len(out) == len(want) {
				t.Errorf("%d bytes are no proper beginning of the %d that are stored", len(out), len(want))
			}
		})
	}
}

// storedText is the text of a log file by the shortest way.
func storedText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".zstd") {
		d, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if b, err = d.DecodeAll(b, nil); err != nil {
			t.Fatal(err)
		}
	}
	return string(b)
}

func TestCorpusShowLogExpandsPackedRows(t *testing.T) {
	for _, l := range realLogs(t) {
		if l.expected.Error != nil {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			_, out, _ := run(t, "", nil, "show", l.path, "--log", "--json")
			stored := map[string]bool{}
			for line := range strings.Lines(storedText(t, l.path)) {
				stored[line] = true
			}
			seq := 0
			for line := range strings.Lines(out) {
				var ev struct {
					Seq  int
					Type string
				}
				if err := json.Unmarshal([]byte(line), &ev); err != nil {
					t.Fatal(err)
				}
				if ev.Seq != seq {
					t.Fatalf("event %d where %d should be", ev.Seq, seq)
				}
				seq++
				if ev.Type != "assistant/chunk" && !stored[line] {
					t.Errorf("event %d is not the stored line", ev.Seq)
				}
				if ev.Type == "assistant/chunk" && !stored[line] && !strings.HasPrefix(line, `{"type":"assistant/chunk","seq":`) {
					t.Errorf("event %d is not in the key order of dsh: %s", ev.Seq, line)
				}
			}
		})
	}
}

func TestCorpusVerify(t *testing.T) {
	for _, l := range realLogs(t) {
		t.Run(l.name, func(t *testing.T) {
			want := 0
			switch {
			case strings.HasPrefix(l.name, "corrupt-plain-header/"):
				want = 3
			case strings.HasPrefix(l.name, "corrupt-plain-committed/"):
				want = 1
			}
			if code, out, errText := run(t, "", nil, "verify", l.path, "--json"); code != want {
				t.Errorf("exit %d, want %d: %s%s", code, want, out, errText)
			}
		})
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	_, out, _ := run(t, "", nil, "--help")
	var names []string
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); strings.HasPrefix(line, "  ") && len(f) > 2 && line[2] != ' ' && line[2] != '-' && f[0] != "outcrop" {
			names = append(names, f[0])
		}
	}
	if len(names) < 12 {
		t.Fatalf("commands in the help: %v", names)
	}
	for _, name := range append(names, "") {
		_, out, errText := run(t, "", nil, append(strings.Fields(name), "--help")...)
		for line := range strings.Lines(out + errText) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 && name != "completion" {
				t.Errorf("%s --help: %d columns: %s", name, n, line)
			}
		}
	}
}

// Every text command must print any real log without a control character that
// a terminal would act on, in lines of at most 80 columns.
func TestTextOfRealLogsFitsATerminal(t *testing.T) {
	for _, l := range realLogs(t) {
		if l.expected.Error != nil {
			continue
		}
		for _, args := range [][]string{{"surface", l.path}, {"show", l.path}, {"show", l.path, "--log"}, {"request", l.path}, {"lineage", l.path, "30"}} {
			_, out, _ := run(t, "", nil, args...)
			for line := range strings.Lines(out) {
				line = strings.TrimSuffix(line, "\n")
				if n := len([]rune(line)); n > 80 {
					t.Errorf("%s %s: %d columns: %s", args[0], l.name, n, line)
				}
				if strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
					t.Errorf("%s %s: control character in %q", args[0], l.name, line)
				}
			}
		}
	}
}
