// Package cli is the outcrop command: one file a command, every one a function
// of app that returns a cobra command.
//
// # Streams
//
// Only data goes to stdout. Notes, progress and errors go to stderr. With
// --json every answer is one object with "schema":1; a list is JSON lines.
// docs/cli-json.md is the reference. Text is for people: at most 80 columns,
// colour only on a terminal and without NO_COLOR, control characters of the
// data as escapes.
//
// # Exit codes
//
//	0    done
//	1    the answer is no: not ok, refused, a failed or limited turn; output or
//	     storage that cannot be written
//	2    wrong use: flags, configuration, no model, no key, no such TARGET
//	3    the input is damaged, or newer than this program can read. Readers
//	     print the good prefix and say on stderr what is missing. A torn tail
//	     alone is no damage: 0, and a note
//	4    somebody else holds the session
//	130  interrupted
//
// # Targets
//
// A TARGET is the id of a session in the store, the start of one, "last", or
// the path of a log file. Commands show a log as it is stored, up to a torn
// tail: without closers.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Env is everything that a run of the command needs from outside. The zero
// value of a member stands for that of this process.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Terminal tells which of the streams is a terminal; nil asks the system
	// about those that are files.
	Terminal func(stream any) bool
	// Getenv reads the environment.
	Getenv func(string) string
	// Dir is the working directory: relative paths start there.
	Dir string
	// Now is the clock.
	Now func() time.Time
	// NewID makes session and message ids.
	NewID func() string
	// Program is how this program was started, as it is printed in commands
	// that a person may copy: "outcrop", or "go run ./cmd/outcrop".
	Program string
}

// app is one run of the command.
type app struct {
	env Env

	flags struct {
		store    string
		config   string
		cwd      string
		json     bool
		quiet    bool
		logFile  string
		logLevel string
	}

	out     *bufio.Writer // stdout; flushed at the end and where somebody waits
	errOut  io.Writer     // stderr
	logger  *slog.Logger
	logFile *os.File
	missing error // what a reader could not show: exit 3 after the good prefix
}

// Main runs the command line args, without the program's name, and returns the
// exit code. When ctx is cancelled the command ends in good order.
func Main(ctx context.Context, args []string, env Env) int {
	a := newApp(env)
	return a.main(ctx, args)
}

func newApp(env Env) *app {
	if env.Stdin == nil {
		env.Stdin = os.Stdin
	}
	if env.Stdout == nil {
		env.Stdout = os.Stdout
	}
	if env.Stderr == nil {
		env.Stderr = os.Stderr
	}
	if env.Terminal == nil {
		env.Terminal = isTerminal
	}
	if env.Getenv == nil {
		env.Getenv = os.Getenv
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.NewID == nil {
		env.NewID = randomID
	}
	if env.Program == "" {
		env.Program = startedAs()
	}
	return &app{env: env, out: bufio.NewWriterSize(env.Stdout, 64<<10), errOut: env.Stderr,
		logger: slog.New(slog.DiscardHandler)}
}

func (a *app) main(ctx context.Context, args []string) int {
	err := a.execute(ctx, args)
	if err == nil {
		err = a.missing
	}
	if flushErr := a.out.Flush(); flushErr != nil && (err == nil || code(err) == 0) {
		err = &exitError{1, fmt.Errorf("the output cannot be written: %w", flushErr)}
	}
	if a.logFile != nil {
		if closeErr := a.logFile.Close(); closeErr != nil && err == nil {
			err = &exitError{1, closeErr}
		}
	}
	if err == nil {
		return 0
	}
	if text := a.explain(err); text != "" {
		fmt.Fprintf(a.errOut, "outcrop: %s\n", text)
	}
	return code(err)
}

// now is the clock in Unix milliseconds.
func (a *app) now() int64 { return a.env.Now().UnixMilli() }

// path makes a path that a person gave absolute.
func (a *app) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	if a.env.Dir != "" {
		return filepath.Join(a.env.Dir, p)
	}
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

// workingDir is the directory that the process stands in.
func (a *app) workingDir() (string, error) {
	if a.env.Dir != "" {
		return a.env.Dir, nil
	}
	return os.Getwd()
}

// note tells a person something on stderr; --quiet silences it.
func (a *app) note(format string, args ...any) {
	if !a.flags.quiet {
		fmt.Fprintf(a.errOut, "outcrop: "+format+"\n", args...)
	}
}

// openLog sets up the program's own log: warnings and errors on stderr, and with
// --log-file everything from --log-level on in that file.
func (a *app) openLog() error {
	level := slog.LevelWarn
	if a.flags.logFile != "" {
		level = slog.LevelInfo
	}
	if a.flags.logLevel != "" {
		if err := level.UnmarshalText([]byte(a.flags.logLevel)); err != nil {
			return usagef("--log-level %s: use debug, info, warn or error", quote(a.flags.logLevel))
		}
	}
	if a.flags.logFile == "" {
		a.logger = slog.New(slog.NewTextHandler(a.errOut, &slog.HandlerOptions{Level: level}))
		return nil
	}
	f, err := os.OpenFile(a.path(a.flags.logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return usagef("--log-file: %v", err)
	}
	a.logFile = f
	a.logger = slog.New(twoHandlers{
		slog.NewTextHandler(f, &slog.HandlerOptions{Level: level}),
		slog.NewTextHandler(a.errOut, &slog.HandlerOptions{Level: slog.LevelWarn}),
	})
	return nil
}

// twoHandlers gives each record to both.
type twoHandlers struct{ a, b slog.Handler }

func (t twoHandlers) Enabled(ctx context.Context, l slog.Level) bool {
	return t.a.Enabled(ctx, l) || t.b.Enabled(ctx, l)
}

func (t twoHandlers) Handle(ctx context.Context, r slog.Record) error {
	var errs [2]error
	for i, h := range [...]slog.Handler{t.a, t.b} {
		if h.Enabled(ctx, r.Level) {
			errs[i] = h.Handle(ctx, r.Clone())
		}
	}
	return errors.Join(errs[:]...)
}

func (t twoHandlers) WithAttrs(as []slog.Attr) slog.Handler {
	return twoHandlers{t.a.WithAttrs(as), t.b.WithAttrs(as)}
}

func (t twoHandlers) WithGroup(name string) slog.Handler {
	return twoHandlers{t.a.WithGroup(name), t.b.WithGroup(name)}
}
