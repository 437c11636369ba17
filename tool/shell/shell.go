// Package shell has the tool that runs commands.
//
// A command runs as /bin/sh -c (on Windows cmd /C) in the workspace, without
// input and without a terminal, in a process group of its own. It is not
// confined: it can do whatever the user can. When it ends, is cancelled or takes
// too long, the whole group is killed, so nothing that it started in the
// background stays; only a process that left the group by itself can. Where
// there are process groups the same happens when this program is gone, killed
// outright for instance.
//
// Output and errors come back in one text in the order in which they were
// written, of very long output the first and the last part. The meta of a
// result is
//
//	{"exitCode":0}
//
// with "timedOut":true after a time-out and "signal":"killed" when the command
// died of a signal.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/internal/group"
)

const (
	// DefaultTimeout ends a command that does not say how long it may take.
	DefaultTimeout = 120 * time.Second
	// MaxTimeout is the longest time that a call can ask for.
	MaxTimeout = 3600 * time.Second
	// maxCapture bounds what is kept of the output, in bytes.
	maxCapture = 10 << 20
	// drainTime is how long the output of a process that left the group is
	// waited for once the command itself has ended.
	drainTime = time.Second
)

// Options of the tool.
type Options struct {
	// Dir is where commands run: the workspace.
	Dir string
	// Env is the environment; nil means this process's own. Who holds keys
	// in variables passes a list without them: what a command prints is
	// logged. Each command also gets OUTCROP_CALL_KEY and OUTCROP_EPOCH, the key
	// and the epoch of its call (tool.Call).
	Env []string
	// Timeout ends commands that do not ask for their own; 0 means
	// DefaultTimeout.
	Timeout time.Duration
}

type args struct {
	Command string `json:"command" jsonschema:"the command line for the shell"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds after which the command is killed, at most 3600"`
}

// New makes the tool.
func New(o Options) (tool.Tool, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	return tool.Define(tool.Spec[args]{
		Name: "shell",
		Description: "Run a command with " + shellName + " in the workspace directory and return its output and exit code. " +
			"It has no input and no terminal. It is not confined to the workspace. It is killed after " + o.Timeout.String() +
			" unless timeout says otherwise; processes left in the background are killed when the command ends.",
		Class: tool.Exec,
		Run: func(ctx context.Context, call tool.Call, a args) (tool.Result, error) {
			timeout, err := o.timeout(a)
			if err != nil {
				return tool.Result{}, err
			}
			return run(ctx, o.telling(call), a.Command, timeout)
		},
		Preview: func(_ context.Context, _ tool.Call, a args) (tool.Preview, error) {
			if _, err := o.timeout(a); err != nil {
				return tool.Preview{}, err
			}
			return tool.Preview{Title: "shell", Dir: o.Dir, Body: a.Command}, nil
		},
	})
}

// telling puts what tells this call from all others into the environment, for a
// command that reaches another system.
func (o Options) telling(call tool.Call) Options {
	if call.Key == "" {
		return o
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.Env = append(slices.Clip(o.Env), "OUTCROP_CALL_KEY="+call.Key, "OUTCROP_EPOCH="+strconv.FormatUint(call.Epoch, 10))
	return o
}

func (o Options) timeout(a args) (time.Duration, error) {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return 0, tool.InvalidArgs("command is empty")
	case strings.IndexByte(a.Command, 0) >= 0:
		return 0, tool.InvalidArgs("command holds a NUL character")
	case a.Timeout < 0 || time.Duration(a.Timeout) > MaxTimeout/time.Second:
		return 0, tool.InvalidArgs(fmt.Sprintf("timeout must be 1 to %d seconds", MaxTimeout/time.Second))
	case a.Timeout == 0:
		return o.Timeout, nil
	}
	return time.Duration(a.Timeout) * time.Second, nil
}

// run runs one command to its end. The error is for what could not be started;
// everything else is a result.
func run(ctx context.Context, o Options, command string, timeout time.Duration) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return tool.Result{}, err
	}
	defer r.Close()
	cmd, watch, err := start(o, command, w)
	w.Close()
	if err != nil {
		return tool.Result{}, notStarted(o.Dir, err)
	}
	defer watch.Release()

	out := capture{half: maxCapture / 2}
	read := make(chan struct{})
	go func() {
		defer close(read)
		out.fill(r)
	}()
	ended := make(chan error, 1)
	go func() { ended <- group.Reap(cmd) }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	timedOut, cancelled := false, false
	select {
	case err = <-ended:
	case <-timer.C:
		timedOut = true
	case <-ctx.Done():
		cancelled = true
	}
	if timedOut || cancelled {
		group.Kill(cmd)
		err = <-ended
	}
	drained := true
	drain := time.NewTimer(drainTime)
	defer drain.Stop()
	select {
	case <-read:
	case <-drain.C:
		// A process that left the group still holds the pipe.
		drained = false
		r.Close()
		<-read
	}
	if cancelled {
		return tool.Result{}, ctx.Err()
	}
	return report(out.text(), cmd, err, timedOut, drained, timeout), nil
}

// notStarted is the error for a command that never ran. The system says the
// same of a missing directory and of a missing shell.
func notStarted(dir string, err error) error {
	if _, serr := os.Stat(dir); serr != nil {
		return fmt.Errorf("the workspace directory cannot be entered: %w", serr)
	}
	return fmt.Errorf("the shell could not be started: %w", err)
}

// report is the result of a command that ran.
func report(text string, cmd *exec.Cmd, err error, timedOut, drained bool, timeout time.Duration) tool.Result {
	var b strings.Builder
	b.WriteString(text)
	note := func(format string, args ...any) {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, format, args...)
	}
	code := cmd.ProcessState.ExitCode()
	meta := append([]byte(nil), '{')
	meta = jsonwire.AppendIntMember(meta, "exitCode", int64(code))
	failed := false
	var exit *exec.ExitError
	switch {
	case timedOut:
		note("[killed after %s]", timeout)
		meta = append(jsonwire.AppendMember(meta, "timedOut"), "true"...)
		failed = true
	case code > 0:
		note("[exit code %d]", code)
	case errors.As(err, &exit):
		sig := signalOf(cmd.ProcessState)
		note("[ended by signal: %s]", sig)
		meta = jsonwire.AppendStringMember(meta, "signal", sig)
	case err != nil:
		note("[%s]", err)
	}
	if !drained {
		note("[a process is still running and holds the output]")
	}
	meta = append(meta, '}')
	res := tool.Result{IsError: failed, Meta: json.RawMessage(meta)}
	if b.Len() > 0 {
		res.Content = []message.Block{message.Text(b.String())}
	}
	return res
}
