// Package desk is what every command works with: streams, environment, clock,
// the flags that all commands have, the program's own log, and the way from them
// to a store, a session that a person named, a configuration and a model.
//
// Stdout is buffered in Out: who waits for somebody to read flushes it, and the
// command flushes it in the end. Errors of writing are told then.
//
// # Targets
//
// A TARGET is the id of a session in the store, the start of one, "last", or the
// path of a log file. The store is --store, else OUTCROP_STORE, else the folder
// sessions in $OUTCROP_HOME, $XDG_DATA_HOME/outcrop or ~/.local/share/outcrop.
package desk

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
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

// Desk is one run of a command. New makes it.
type Desk struct {
	Env Env

	Flags Flags

	Out     *bufio.Writer // stdout; flushed at the end and where somebody waits
	ErrOut  io.Writer     // stderr, or where Divert sends it
	Logger  *slog.Logger
	LogFile *os.File

	shared   store.Store // what OpenStore gives, nil: it opens one
	unsynced *sync.Once  // it was said that a realm may not sync
}

// Flags are the flags of every command.
type Flags struct {
	Store    string
	Config   string
	Cwd      string
	JSON     bool
	Quiet    bool
	LogFile  string
	LogLevel string
	// Creds is a credentials file for the servers of a realm.
	Creds string
}

// New fills in what env leaves open.
func New(env Env) *Desk {
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
		env.Terminal = term.Is
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
	return &Desk{Env: env, Out: bufio.NewWriterSize(env.Stdout, 64<<10), ErrOut: &diverted{w: env.Stderr},
		Logger: slog.New(slog.DiscardHandler), unsynced: new(sync.Once)}
}

// Now is the clock in Unix milliseconds.
func (a *Desk) Now() int64 { return a.Env.Now().UnixMilli() }

// Path makes a path that a person gave absolute.
func (a *Desk) Path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	if a.Env.Dir != "" {
		return filepath.Join(a.Env.Dir, p)
	}
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

// WorkingDir is the directory that the process stands in.
func (a *Desk) WorkingDir() (string, error) {
	if a.Env.Dir != "" {
		return a.Env.Dir, nil
	}
	return os.Getwd()
}

// Note tells a person something on stderr; --quiet silences it.
func (a *Desk) Note(format string, args ...any) {
	if !a.Flags.Quiet {
		fmt.Fprintf(a.ErrOut, "outcrop: "+format+"\n", args...)
	}
}

// Problem says an error at once, where Main would say it later.
func (a *Desk) Problem(err error) { fmt.Fprintf(a.ErrOut, "outcrop: %s\n", exit.Explain(err)) }

// OpenLog sets up the program's own log: warnings and errors on stderr, and with
// --log-file everything from --log-level on in that file.
func (a *Desk) OpenLog() error {
	level := slog.LevelWarn
	if a.Flags.LogFile != "" {
		level = slog.LevelInfo
	}
	if a.Flags.LogLevel != "" {
		if err := level.UnmarshalText([]byte(a.Flags.LogLevel)); err != nil {
			return exit.Usagef("--log-level %s: use debug, info, warn or error", term.Quote(a.Flags.LogLevel))
		}
	}
	if a.Flags.LogFile == "" {
		a.Logger = slog.New(slog.NewTextHandler(a.ErrOut, &slog.HandlerOptions{Level: level}))
		return nil
	}
	f, err := os.OpenFile(a.Path(a.Flags.LogFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return exit.Usagef("--log-file: %v", err)
	}
	a.LogFile = f
	a.Logger = slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(f, &slog.HandlerOptions{Level: level}),
		slog.NewTextHandler(a.ErrOut, &slog.HandlerOptions{Level: slog.LevelWarn}),
	))
	return nil
}
