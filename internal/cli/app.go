// Package cli is the outcrop command: one file a command, every one a function
// of app that returns a cobra command; run is a package of its own.
//
// # Streams
//
// Only data goes to stdout. Notes, progress and errors go to stderr. With
// --json every answer is one object with "schema":1; a list is JSON lines.
// docs/cli-json.md is the reference. Text is for people: at most 80 columns,
// colour only on a terminal and without NO_COLOR, control characters of the
// data as escapes.
//
// # Targets
//
// What a TARGET is, package desk says, what an exit code means, package exit.
// Commands show a log as it is stored, up to a torn tail: without closers.
package cli

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
)

// Env is everything that a run of the command needs from outside. The zero
// value of a member stands for that of this process.
type Env = desk.Env

// app is one run of the command.
type app struct {
	*desk.Desk
	missing error // what a reader could not show: exit 3 after the good prefix
}

// Main runs the command line args, without the program's name, and returns the
// exit code. When ctx is cancelled the command ends in good order.
func Main(ctx context.Context, args []string, env Env) int {
	a := &app{Desk: desk.New(env)}
	return a.main(ctx, args)
}

func (a *app) main(ctx context.Context, args []string) int {
	err := a.execute(ctx, args)
	if err == nil {
		err = a.missing
	}
	if flushErr := a.Out.Flush(); flushErr != nil && (err == nil || exit.Code(err) == 0) {
		err = exit.With(1, fmt.Errorf("the output cannot be written: %w", flushErr))
	}
	if a.LogFile != nil {
		if closeErr := a.LogFile.Close(); closeErr != nil && err == nil {
			err = exit.With(1, closeErr)
		}
	}
	if err == nil {
		return 0
	}
	if text := exit.Explain(err); text != "" {
		fmt.Fprintf(a.ErrOut, "outcrop: %s\n", text)
	}
	return exit.Code(err)
}
