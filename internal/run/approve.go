package run

import (
	"os"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/ask"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// approver is who is asked about calls: a person at a terminal, or nobody.
func (r *run) approver(out *output) agent.Approver {
	a := r.a
	if a.Flags.JSON || !a.Env.Terminal(a.Env.Stdin) || !a.Env.Terminal(a.Env.Stderr) {
		return nil
	}
	return ask.New(ask.Options{
		In: a.Env.Stdin, Out: a.ErrOut, Shown: out.shown,
		Style: term.Style(a.Env.Getenv("NO_COLOR") == "" && a.Env.Getenv("TERM") != "dumb"),
		Fresh: func() {
			if f, ok := a.Env.Stdin.(*os.File); ok {
				term.DropTyped(f)
			}
		},
	})
}
