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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Env{}))
}
