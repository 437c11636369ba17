package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/cli"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// The test binary is also the command, and the least that a process does to look
// at a home: benchmarks of whole processes start it so.
const (
	processVariable = "OUTCROP_TEST_PROCESS"
	processCommand  = "command"
	processLooks    = "looks"
)

func TestMain(m *testing.M) {
	switch os.Getenv(processVariable) {
	case processCommand:
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Env{}))
	case processLooks:
		if err := lookAtHome(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lookAtHome finds the sessions of a genlog.Home, and looks at the folder and the
// log of each, by as many goroutines as there are processors.
func lookAtHome(root string) error {
	projects, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	type session struct{ dir, log string }
	var sessions []session
	for _, p := range projects {
		entries, err := os.ReadDir(filepath.Join(root, p.Name()))
		if err != nil {
			return err
		}
		for _, e := range entries {
			i, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "session-"))
			if err != nil {
				return err
			}
			dir := filepath.Join(root, p.Name(), e.Name())
			sessions = append(sessions, session{dir, dir + "/" + jsonl.FileName(i%(formats.Newest+1), wire.Zstd)})
		}
	}
	n := runtime.GOMAXPROCS(0)
	errs := make([]error, n)
	var wait sync.WaitGroup
	for w := range n {
		wait.Go(func() {
			for i := w; i < len(sessions); i += n {
				for _, path := range [...]string{sessions[i].dir, sessions[i].log} {
					if _, err := os.Stat(path); err != nil {
						errs[w] = err
					}
				}
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkListProcess runs outcrop ls as processes of their own, over a dsh home
// of 15,000 sessions of mixed age whose files are in the page cache: first without
// a catalogue, which is once, then with that of the time before. The limit is a
// process that looks at the same folders and logs. Each figure is the least of all
// runs; CPU time is that of all processors.
func BenchmarkListProcess(b *testing.B) {
	const sessions = 15_000
	home, root := b.TempDir(), filepath.Join(b.TempDir(), "sessions")
	old := time.Now().Add(-24 * time.Hour)
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	must(genlog.Home(sessions, func(_, format int, id, cwd string, file []byte) error {
		dir := filepath.Join(root, jsonl.ProjectKey(cwd), jsonl.EncodeSegment(id))
		path := filepath.Join(dir, jsonl.FileName(format, wire.Zstd))
		must(os.MkdirAll(dir, 0o700))
		must(os.WriteFile(path, file, 0o600))
		must(os.Chtimes(path, old, old))
		return os.Chtimes(dir, old, old)
	}))
	self, err := os.Executable()
	must(err)
	type cost struct{ wall, cpu time.Duration }
	process := func(kind string, least *cost, out io.Writer, args ...string) {
		c := exec.Command(self, args...)
		c.Env = append(os.Environ(), processVariable+"="+kind, "HOME="+home, "XDG_STATE_HOME=", "OUTCROP_HOME=", "OUTCROP_CONFIG=", "OUTCROP_STORE=jsonl:"+root)
		c.Stdout, c.Stderr = out, os.Stderr
		start := time.Now()
		must(c.Run())
		wall, cpu := time.Since(start), c.ProcessState.UserTime()+c.ProcessState.SystemTime()
		if least.wall == 0 || wall < least.wall {
			least.wall = wall
		}
		if least.cpu == 0 || cpu < least.cpu {
			least.cpu = cpu
		}
	}
	var first, again, floor cost
	file, err := os.Create(filepath.Join(b.TempDir(), "out"))
	must(err)
	defer file.Close()
	process(processCommand, &first, file, "ls")
	said, err := os.ReadFile(file.Name())
	must(err)
	for b.Loop() {
		must(file.Truncate(0))
		_, err := file.Seek(0, io.SeekStart)
		must(err)
		process(processCommand, &again, file, "ls")
		process(processLooks, &floor, nil, root)
	}
	if text, err := os.ReadFile(file.Name()); err != nil || string(text) != string(said) || strings.Count(string(said), "session-") != sessions {
		b.Fatalf("what is said again is not what was said at first: %v", err)
	}
	for name, d := range map[string]time.Duration{"first-ms": first.wall, "first-cpu-ms": first.cpu, "ms": again.wall, "cpu-ms": again.cpu, "floor-ms": floor.wall, "floor-cpu-ms": floor.cpu} {
		b.ReportMetric(float64(d.Microseconds())/1000, name)
	}
	b.ReportMetric(floor.wall.Seconds()/again.wall.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}
