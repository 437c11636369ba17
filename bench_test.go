package outcrop_test

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/benchsuite"
)

var benchFull = flag.Bool("full", false, "benchmarks: logs of 200 MB and 1 GB")

// BenchmarkSuite runs the suite of package benchsuite, the same that the
// command bench runs. A round is the work and its floor, one after the other;
// each figure is printed beside its floor, and how much of the floor's speed
// was reached is the metric x-floor of the first one.
//
//	go test -bench . -run '^$' .                        the suite
//	go test -bench . -run '^$' . -full                  with logs of 200 MB and 1 GB
//	go test -bench . -run '^$' . -short -benchtime 1x   does it run at all
func BenchmarkSuite(b *testing.B) {
	env := benchsuite.Env{Sizes: benchsuite.Medium, Dir: b.TempDir()}
	switch {
	case *benchFull:
		env.Sizes = benchsuite.Full
	case testing.Short():
		env.Sizes = benchsuite.Small
	}
	program := sync.OnceValues(func() (string, error) { return buildProgram(env.Dir) })
	for _, w := range benchsuite.Works() {
		b.Run(w.Name, func(b *testing.B) {
			env := env
			if w.Process || strings.HasPrefix(w.Name, "load") {
				var err error
				if env.Program, err = program(); err != nil {
					b.Fatal(err)
				}
			}
			r, err := w.Start(b.Context(), env)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := r.Close(); err != nil {
					b.Error(err)
				}
			}()
			for b.Loop() {
				if err := r.Round(); err != nil {
					b.Fatal(err)
				}
			}
			figures := r.Figures()
			if len(figures) > 0 && figures[0].FloorIs != "" {
				b.ReportMetric(figures[0].Share, "x-floor")
			}
			b.Log("\n" + strings.TrimSuffix(table(figures), "\n"))
		})
	}
}

func table(figures []benchsuite.Figure) string {
	var t strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&t, "%-34s %10.4g %-12s", f.Name, f.Value, f.Unit)
		if f.FloorIs != "" {
			fmt.Fprintf(&t, " floor %9.4g (%s), %.2f of it", f.Floor, f.FloorIs, f.Share)
		}
		if f.Reached != nil {
			fmt.Fprintf(&t, " [%s: %s]", f.Target, map[bool]string{true: "yes", false: "no"}[*f.Reached])
		}
		t.WriteByte('\n')
	}
	return t.String()
}

// buildProgram builds the command, for what a whole process costs.
func buildProgram(dir string) (string, error) {
	path := filepath.Join(dir, "outcrop.exe")
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/outcrop").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/outcrop: %w\n%s", err, out)
	}
	return path, nil
}
