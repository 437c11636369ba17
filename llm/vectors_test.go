package llm

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

// vectors yields the lines of a vector file.
func vectors(t *testing.T, name string, each func(line []byte)) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", "vectors", name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		each(append([]byte(nil), lines.Bytes()...))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestEverySurfaceOfTheVectorsCanBeSent(t *testing.T) {
	n := 0
	vectors(t, "surface", func(line []byte) {
		var v struct {
			Name   string
			Expect struct{ Messages []message.Message }
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		n += len(v.Expect.Messages)
		if err := Check(Request{Messages: Build(nodes(v.Expect.Messages...))}); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	})
	if n < 1000 {
		t.Errorf("only %d messages were seen", n)
	}
}

// A session that ran in order needs no change but its end.
func TestSessionsOfTheCorpusCanBeSent(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "testdata", "corpus", "*", "expected", "sessions", "*.json"))
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d sessions, %v", len(paths), err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var v struct{ Messages []message.Message }
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		out := Build(nodes(v.Messages...))
		if err := Check(Request{Messages: out}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if n := len(out); out[n-1].ID == "outcrop-continue" {
			out = out[:n-1]
		}
		if len(out) != len(v.Messages) {
			t.Errorf("%s: %d messages became %d", path, len(v.Messages), len(out))
		}
	}
}

func TestHeadersOfTheVectors(t *testing.T) {
	// A header of ours is made from values: it has no marks without their value,
	// no members that nobody knows, no empty stop, and one order of members.
	differ := map[string]bool{
		"canonical/defaults-with-extra": true, "canonical/config-verbatim": true,
		"equals/stop-empty-vs-absent": true, "equals/tool-key-order": true,
	}
	build := func(raw json.RawMessage) string {
		cfg, system, tools, err := ParseHeader(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		return string(HeaderJSON(cfg, system, tools))
	}
	n := 0
	vectors(t, "request", func(line []byte) {
		var v struct {
			Name, Kind   string
			Header, A, B json.RawMessage
			Expect       json.RawMessage
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		switch v.Kind {
		case "canonical":
			n++
			if got := build(v.Header); got != string(v.Expect) && !differ[v.Name] {
				t.Errorf("%s: %s\nwant %s", v.Name, got, v.Expect)
			}
		case "equals":
			n++
			var e struct{ CanonicalEqual bool }
			if err := json.Unmarshal(v.Expect, &e); err != nil {
				t.Fatal(err)
			}
			if got := build(v.A) == build(v.B); got != e.CanonicalEqual && !differ[v.Name] {
				t.Errorf("%s: equal is %t, want %t\n%s\n%s", v.Name, got, e.CanonicalEqual, build(v.A), build(v.B))
			}
		}
	})
	if n < 30 {
		t.Errorf("only %d headers were seen", n)
	}
}
