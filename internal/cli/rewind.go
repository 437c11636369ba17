package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/view"
	"github.com/outcrop-dev/outcrop/message"
)

func (a *app) newRewindCommand() *cobra.Command {
	var to int64
	var dry bool
	c := &cobra.Command{
		Use:   "rewind TARGET --to SEQ",
		Short: "Go on from an earlier point in the same session",
		Long: `Takes the conversation back to the end of the turn that --to names: the seq of a
turn/end, or of a prompt, which stands for the end of the turn before it, or 0
for the time before everything. Nothing is lost: the log keeps what is taken
away, and show --all shows it. Files stay as they are. Input that waits in the
session is dropped and printed.`,
		Args: exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("to") {
				return exit.Usagef("rewind needs --to SEQ: the end of a turn, a prompt, or 0 (outcrop show TARGET lists the prompts)")
			}
			if to < 0 {
				return exit.Usagef("--to %d: an event has a seq from 0 on", to)
			}
			return a.onHistory(c.Context(), args[0], dry, func(s *outcrop.Session) error {
				return a.rewind(c.Context(), s, outcrop.Seq(to), dry)
			})
		},
	}
	c.Flags().Int64Var(&to, "to", 0, "where to go back to, a `SEQ`")
	noDefault(c, "to")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would change")
	return c
}

func (a *app) rewind(ctx context.Context, s *outcrop.Session, to outcrop.Seq, dry bool) error {
	p, err := rewind.Find(s, to)
	if err != nil {
		return err
	}
	var dropped []message.Message
	at := outcrop.Seq(-1)
	if !dry && len(p.Removed) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if at, err = rewind.Commit(s, p, a.Env.NewID()); err != nil {
			return err
		}
		if dropped, err = agent.DropPending(s); err != nil {
			return err
		}
	}
	if a.Flags.JSON {
		return a.Line(rewoundJSON(s, p, at, dropped, dry))
	}
	for _, line := range view.Rewound(p, dropped, dry) {
		a.Text(line + "\n")
	}
	return nil
}

func rewoundJSON(s *outcrop.Session, p rewind.Plan, at outcrop.Seq, dropped []message.Message, dry bool) []byte {
	o := answer.New().Text("session", s.ID()).Number("to", int64(p.To)).NumberOrNull("replacement", int64(at)).
		Raw("removed", answer.Seqs(p.Removed)).Number("messages", int64(p.Messages)).Number("tokens", p.Tokens).Raw("pinsEnded", answer.Seqs(p.Pins))
	o.Raw("notUndone", answer.List(len(p.Effects), func(dst []byte, i int) []byte {
		e := p.Effects[i]
		return append(dst, answer.Inner().Number("seq", int64(e.Seq)).Text("tool", e.Tool).Text("what", e.What).End()...)
	}))
	o.Raw("dropped", answer.List(len(dropped), func(dst []byte, i int) []byte {
		return jsonwire.AppendString(dst, message.PlainText(dropped[i].Content))
	}))
	return o.Bool("dryRun", dry).End()
}
