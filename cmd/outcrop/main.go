// Command outcrop runs agents and looks into what they did. See package cli and
// outcrop --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	// A terminal that goes away ends the work in good order too, unless the
	// program was told to outlive it.
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Env{}))
}
