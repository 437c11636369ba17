package cli_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/outcrop-dev/outcrop/internal/cli"
	"github.com/outcrop-dev/outcrop/internal/conformance"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// TestScripts runs testdata/script/*.txtar. They have one more command,
//
//	outcrop [-code=N] [-stdin=FILE] ARG...
//
// which runs the command line in this process and expects the exit code N, 0
// when it is not given. Its input is FILE, or nothing. The clock stands at 2027-01-15 10:00:00 UTC, new ids
// are new-1, new-2, ...; $CORPUS is the folder of real logs, and sample.jsonl
// lies in the working folder.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("testdata", "script"),
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup:              setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"outcrop": outcropCommand,
			"mode":    modeCommand,
			"damage":  damageCommand,
			"dshdb":   dshdbCommand,
			"nats":    natsCommand,
		},
	})
}

type idsKey struct{}

func setupScript(e *testscript.Env) error {
	e.Vars = append(e.Vars, "CORPUS="+filepath.Join(conformance.Dir(), "corpus"),
		"HOME="+filepath.Join(e.WorkDir, "home"), "OUTCROP_HOME="+filepath.Join(e.WorkDir, "data"))
	var ids atomic.Int64
	e.Values[idsKey{}] = &ids
	if err := os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o700); err != nil {
		return err
	}
	sample, err := os.ReadFile(filepath.Join("testdata", "sample.jsonl"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.WorkDir, "sample.jsonl"), sample, 0o600)
}

// startTime is where the clock of scripts stands.
var startTime = time.Date(2027, 1, 15, 10, 0, 0, 0, time.UTC)

func outcropCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("say which exit code is expected: outcrop -code=N")
	}
	want, in := 0, ""
	for len(args) > 0 {
		if v, ok := strings.CutPrefix(args[0], "-code="); ok {
			n, err := strconv.Atoi(v)
			ts.Check(err)
			want = n
		} else if v, ok := strings.CutPrefix(args[0], "-stdin="); ok {
			in = ts.ReadFile(v)
		} else {
			break
		}
		args = args[1:]
	}
	ids := ts.Value(idsKey{}).(*atomic.Int64)
	got := cli.Main(context.Background(), args, cli.Env{
		Stdin:    strings.NewReader(in),
		Stdout:   ts.Stdout(),
		Stderr:   ts.Stderr(),
		Terminal: func(any) bool { return false },
		Getenv:   ts.Getenv,
		Dir:      ts.MkAbs("."),
		Now:      func() time.Time { return startTime },
		NewID:    func() string { return fmt.Sprintf("new-%d", ids.Add(1)) },
		Program:  "outcrop",
	})
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// modeCommand is chmod with one octal number: mode 0 FILE.
func modeCommand(ts *testscript.TestScript, _ bool, args []string) {
	mode, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	ts.Check(os.Chmod(ts.MkAbs(args[1]), os.FileMode(mode)))
}

// damageCommand changes a file: damage FILE cut N, damage FILE flip N, damage
// FILE add TEXT.
func damageCommand(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	switch args[1] {
	case "add":
		b = append(b, args[2]...)
	default:
		n, err := strconv.Atoi(args[2])
		ts.Check(err)
		if n < 0 {
			n += len(b)
		}
		if args[1] == "cut" {
			b = b[:n]
		} else {
			b[n] ^= 0x20
		}
	}
	ts.Check(os.WriteFile(path, b, 0o600))
}
