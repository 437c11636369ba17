package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

// importing runs an import of a path into a new store. at is called in the middle
// of it.
func importing(t testing.TB, path string, at func()) {
	t.Helper()
	dir := t.TempDir()
	var errOut bytes.Buffer
	code := cli.Main(context.Background(), []string{"import", path, "--store", "jsonl:" + filepath.Join(dir, "store")},
		cli.Env{Stdout: io.Discard, Stderr: &errOut, Dir: dir, Getenv: func(name string) string {
			return map[string]string{"HOME": dir}[name]
		}, Now: func() time.Time {
			at()
			return time.Unix(1_900_000_000, 0)
		}})
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
}

// aResult writes a Claude Code session whose one result is a text of n bytes.
func aResult(t testing.TB, n int) (path string) {
	t.Helper()
	var b bytes.Buffer
	line := func(id, parent, kind, message string) {
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"sessionId":"11111111-2222-4333-8444-555555555555","version":"1.0.30","cwd":"/home/dev","timestamp":"2026-03-01T10:00:00.000Z","type":%q,"uuid":%q,"message":%s}`+"\n", parent, kind, id, message)
	}
	line("u1", "null", "user", `{"role":"user","content":"go"}`)
	line("u2", `"u1"`, "assistant", `{"id":"m1","role":"assistant","model":"c","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}`)
	text, err := json.Marshal(strings.Repeat("a line of what a program printed, and not a short one\n", n/54))
	if err != nil {
		t.Fatal(err)
	}
	line("u3", `"u2"`, "user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":`+string(text)+`}]}`)
	path = filepath.Join(t.TempDir(), "11111111-2222-4333-8444-555555555555.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnImportBoundsItsMemoryUnlessAPersonDid(t *testing.T) {
	path := aResult(t, 1000)
	now := func() int64 { return debug.SetMemoryLimit(-1) }
	if now() != math.MaxInt64 {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	}
	var during int64
	importing(t, path, func() { during = now() })
	if during < 256<<20 || during > 257<<20 || now() != math.MaxInt64 {
		t.Errorf("the limit is %d meanwhile and %d behind it", during, now())
	}
	const own = 1 << 40
	debug.SetMemoryLimit(own)
	defer debug.SetMemoryLimit(math.MaxInt64)
	importing(t, path, func() { during = now() })
	if during != own || now() != own {
		t.Errorf("a person's limit is %d meanwhile and %d behind it", during, now())
	}
}

// BenchmarkALongLineInMemory imports a line of 100 MB. The floor is the line
// itself, so x-line is how many times its size the process had at most.
func BenchmarkALongLineInMemory(b *testing.B) {
	const size = 100 << 20
	path := aResult(b, size)
	for b.Loop() {
		debug.FreeOSMemory()
		stop := make(chan struct{})
		var most uint64
		var watch sync.WaitGroup
		watch.Go(func() {
			// All that was asked of the system and not given back.
			s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
			for {
				metrics.Read(s)
				most = max(most, s[0].Value.Uint64()-s[1].Value.Uint64())
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		importing(b, path, func() {})
		close(stop)
		watch.Wait()
		b.ReportMetric(float64(most)/size, "x-line")
	}
}
