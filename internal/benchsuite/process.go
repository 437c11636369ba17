package benchsuite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
)

var processWorks = []Work{
	{Name: "list", About: "list many sessions, a new process each time", Process: true, start: startList},
	{Name: "run", About: "one short turn with a scripted model, start to exit", Process: true, start: startRun},
}

// spent is what a process took.
type spent struct {
	wall, cpu time.Duration
	peak      float64 // most memory, bytes; 0 when it is not known
}

// process runs the program to its end, with nothing of this machine's
// configuration. watch asks for its peak, which takes a little of its time.
func process(ctx context.Context, program, home string, watch bool, args ...string) (spent, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "OUTCROP_HOME="+home, "OUTCROP_STORE=", "OUTCROP_CONFIG=", "OUTCROP_MODEL=", "XDG_CONFIG_HOME="+home, "NO_COLOR=1")
	cmd.Dir = home
	var problem bytes.Buffer
	cmd.Stderr = &problem
	cmd.Stdout = io.Discard
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return spent{}, err
	}
	peak := func() float64 { return 0 }
	if watch {
		peak = watchPeak(cmd)
	}
	err := cmd.Wait()
	s := spent{wall: time.Since(start), peak: peak()}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		return s, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), args[0], err, bytes.TrimSpace(problem.Bytes()))
	}
	return s, nil
}

func startList(ctx context.Context, env Env) (*trial, error) {
	root, err := os.MkdirTemp(env.Dir, "list-")
	if err != nil {
		return nil, err
	}
	recs := slices.Collect(genlog.Records(1, 200))
	enc := wire.NewEncoder(wire.Zstd)
	body, err := enc.Batch(nil, slices.Values(recs))
	if err != nil {
		return nil, err
	}
	var files []string
	for i := range env.Sizes.Sessions {
		h := genlog.Header(uint64(i))
		cwd := "/home/dev/project-" + strconv.Itoa(i%20)
		h.Cwd = &cwd
		h.CreatedAt += int64(i)
		err := place(root, h, wire.Zstd, func(w io.Writer) error {
			_, err := w.Write(append(enc.Header(nil, h), body...))
			return err
		})
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(root))
		}
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	sum := newSides()
	return &trial{
		round: func() error {
			p, err := process(ctx, env.Program, env.Dir, false, "ls", "--json", "--store", "jsonl:"+root)
			if err != nil {
				return err
			}
			floor, err := stopwatch(func() error { return readHeads(root) })
			sum.add(p.wall, floor)
			return err
		},
		figures: func() []Figure {
			f := sum.took(fmt.Sprintf("list %d sessions", len(files)), "read the folders, open each file, read its head")
			return []Figure{f.judged(atMost(max(150*float64(len(files))/2000, 50), "150 ms for 2,000"))}
		},
		close: func() error { return os.RemoveAll(root) },
	}, nil
}

// readHeads walks the folders and reads up to 8 KiB of each file.
func readHeads(root string) error {
	buf := make([]byte, 8<<10)
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := f.Read(buf)
		Sink += n
		if err == io.EOF {
			return nil
		}
		return err
	})
}

const shortScript = `{"script":1,"model":"bench"}
{"text":"A short answer of one line.","finish":"stop"}
`

func startRun(ctx context.Context, env Env) (*trial, error) {
	dir, err := os.MkdirTemp(env.Dir, "run-")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "short.jsonl")
	if err := os.WriteFile(script, []byte(shortScript), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	cpu, wall := newSides(), newSides()
	return &trial{
		round: func() error {
			p, err := process(ctx, env.Program, dir, false, "run", "--script", script, "a short question")
			if err != nil {
				return err
			}
			floor, err := process(ctx, env.Program, dir, false, "--version")
			cpu.add(p.cpu, floor.cpu)
			wall.add(p.wall, floor.wall)
			return err
		},
		figures: func() []Figure {
			return []Figure{
				cpu.took("run of one short turn, CPU", "start, print the version, exit").judged(atMost(40, "40 ms")),
				wall.took("run of one short turn, wall", "start, print the version, exit"),
			}
		},
		close: func() error { return os.RemoveAll(dir) },
	}, nil
}
