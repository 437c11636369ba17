package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/benchsuite"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newBenchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [WORK...]",
		Short: "Measure this machine: each figure beside its floor",
		Long: `Runs the benchmark suite, or the works whose names contain one of the words.
Every figure stands beside its floor, measured in the same rounds: the least
that any program would have to do for the same result. A share of 1.00 means as
fast as the floor. A target that is missed does not change the exit code.

` + benchList() + `
The files of the measurements lie in a new folder inside --dir and are removed
at the end; it should be on the disk that is to be measured.`,
		RunE: func(c *cobra.Command, args []string) error { return a.bench(c.Context(), f, args) },
	}
	fl := c.Flags()
	fl.StringVar(&f.size, "size", "", "text of the logs that are loaded and forked, as `SIZE`: 64MB, 1GB (default 64MB, fork 256MB)")
	fl.BoolVar(&f.full, "full", false, "the large sizes: load 200 MB, fork 1 GB, growth to 1 GB")
	fl.BoolVar(&f.quick, "quick", false, "small sizes and one round: does it run at all")
	fl.StringVar(&f.dir, "dir", "", "put the files into this `DIR` (default: the one for temporary files)")
	return c
}

type benchFlags struct {
	size, dir   string
	full, quick bool
}

func benchList() string {
	var b strings.Builder
	for _, w := range benchsuite.Works() {
		fmt.Fprintf(&b, "  %-15s %s\n", w.Name, w.About)
	}
	return b.String()
}

func (f benchFlags) sizes() (benchsuite.Sizes, time.Duration, error) {
	s, least := benchsuite.Medium, time.Second
	switch {
	case f.full && f.quick:
		return s, 0, exit.Usagef("--full and --quick are two sizes: give one of them")
	case f.full:
		s = benchsuite.Full
	case f.quick:
		s, least = benchsuite.Small, 0
	}
	if f.size != "" {
		n, ok := parseSize(f.size)
		if !ok || n < 64<<10 || n > 64<<30 {
			return s, 0, exit.Usagef("--size %s: give a size from 64KB to 64GB, as 64MB or 1GB", term.Quote(f.size))
		}
		s.Text, s.Fork = n, n
	}
	return s, least, nil
}

// parseSize reads a number of bytes with KB, MB or GB behind it, in powers of
// 1024.
func parseSize(s string) (int64, bool) {
	s = strings.ToUpper(strings.TrimSpace(s))
	unit := int64(1)
	for _, u := range [...]struct {
		name string
		n    int64
	}{{"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			s, unit = strings.TrimSpace(rest), u.n
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)/unit {
		return 0, false
	}
	return n * unit, true
}

func (a *app) bench(ctx context.Context, f benchFlags, words []string) (err error) {
	sizes, least, err := f.sizes()
	if err != nil {
		return err
	}
	works, unknown := benchsuite.Find(words...)
	if unknown != "" {
		return exit.Usagef("there is no work with %s in its name: outcrop bench --help lists them", term.Quote(unknown))
	}
	dir := a.Path(f.dir)
	if dir == "" {
		dir = a.Env.Getenv("TMPDIR")
	}
	if dir == "" {
		dir = os.TempDir()
	}
	if dir, err = os.MkdirTemp(dir, "outcrop-bench-"); err != nil {
		return exit.With(2, fmt.Errorf("--dir: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	env := benchsuite.Env{Sizes: sizes, Dir: dir, Program: programFile()}
	st, progress := a.Style(), a.Env.Terminal(a.Env.Stderr) && !a.Flags.Quiet
	missed := 0
	for i, w := range works {
		if progress {
			fmt.Fprintf(a.ErrOut, "\r\x1b[K%d of %d: %s", i+1, len(works), w.About)
		}
		if w.Process && env.Program == "" {
			a.Note("%s is left out: it measures the built program, and this is not it", w.Name)
			continue
		}
		figures, err := benchsuite.Measure(ctx, w, env, least)
		if progress {
			fmt.Fprint(a.ErrOut, "\r\x1b[K")
		}
		if err != nil {
			return err
		}
		if i == 0 && !a.Flags.JSON {
			a.Text(st.Bold(fmt.Sprintf("%-34s %16s %9s %6s  %s", "", "", "floor", "share", "target")) + "\n")
		}
		for _, fig := range figures {
			if fig.Reached != nil && !*fig.Reached {
				missed++
			}
			if err := a.figure(w, fig, st); err != nil {
				return err
			}
		}
		a.Out.Flush()
	}
	if missed > 0 {
		a.Note("%s missed on this machine at this moment; other programs that run count against it", term.Plural(missed, "target"))
	}
	return nil
}

// programFile is the file of this program, "" when it is a test of it.
func programFile() string {
	exe, err := os.Executable()
	if err != nil || strings.HasSuffix(strings.TrimSuffix(filepath.Base(exe), ".exe"), ".test") {
		return ""
	}
	return exe
}

func (a *app) figure(w benchsuite.Work, f benchsuite.Figure, st term.Style) error {
	if a.Flags.JSON {
		o := answer.New().Text("work", w.Name).Text("name", f.Name).Raw("value", decimal(f.Value)).Text("unit", f.Unit)
		if f.FloorIs != "" {
			o.Raw("floor", decimal(f.Floor)).Text("floorIs", f.FloorIs).Raw("share", decimal(f.Share))
		}
		if f.Reached != nil {
			o.Text("target", f.Target).Bool("reached", *f.Reached)
		}
		return a.Line(o.End())
	}
	floor, share, target := "", "", ""
	value := short(f.Value) + " " + f.Unit
	if f.FloorIs != "" {
		floor, share = short(f.Floor), fmt.Sprintf("%.2f", f.Share)
	}
	if f.Reached != nil {
		target = f.Target + ": " + st.Green("yes")
		if !*f.Reached {
			target = f.Target + ": " + st.Red("no")
		}
	}
	a.Text(strings.TrimRight(fmt.Sprintf("%-34s %16s %9s %6s  %s", term.Cut(f.Name, 34), value, floor, share, target), " ") + "\n")
	return nil
}

// short writes a figure in at most seven columns.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', 2, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'f', 1, 64) + "k"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// decimal is a JSON number.
func decimal(v float64) []byte { return []byte(strconv.FormatFloat(v, 'f', -1, 64)) }
