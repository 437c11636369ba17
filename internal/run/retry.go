package run

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// again is a prompt that is sent once more.
type again struct {
	at      outcrop.Seq // -1: the last one
	edit    string
	dry     bool
	message message.Message // set when the session is open
}

// RetryCommand makes the command retry: a run whose prompt is one of the
// session's own.
func RetryCommand(a *desk.Desk) *cobra.Command {
	r := run{a: a, again: &again{}}
	var at int64
	c := &cobra.Command{
		Use:   "retry TARGET",
		Short: "Send a prompt of a session again, changed or as it was",
		Long: `Takes the conversation back to before its last prompt, or before the one at
--at, and sends the prompt again, with --edit in other words. What it carries
(images, files) comes along. The log keeps the earlier version and its answer;
files that were changed stay changed.`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return exit.Usagef("%s needs TARGET: usage: %s", c.CommandPath(), c.UseLine())
			case len(args) > 1:
				return exit.Usagef("%s does not take %s: usage: %s", c.CommandPath(), term.Quote(args[1]), c.UseLine())
			case c.Flags().Changed("at") && at < 0:
				return exit.Usagef("--at %d: an event has a seq from 0 on", at)
			case c.Flags().Changed("edit") && r.again.edit == "":
				return exit.Usagef("--edit is empty: give the new text, or leave it out")
			}
			r.again.at = -1
			if c.Flags().Changed("at") {
				r.again.at = outcrop.Seq(at)
			}
			r.flags.Session, r.flags.NoModel, r.flags.NoTurn = args[0], r.again.dry, r.again.dry
			return r.do(c.Context(), nil)
		},
	}
	fl := c.Flags()
	r.flags.Register(fl)
	for _, name := range []string{"session", "dsh"} {
		if err := fl.MarkHidden(name); err != nil {
			panic(err) // the name is not one of the flags that were just registered
		}
	}
	fl.Int64Var(&at, "at", -1, "the prompt, a `SEQ` (default the last one)")
	fl.Lookup("at").DefValue = ""
	fl.StringVar(&r.again.edit, "edit", "", "send this `TEXT` in its place")
	fl.BoolVar(&r.again.dry, "dry-run", false, "only say what would be taken back")
	fl.BoolVar(&r.chunks, "chunks", false, "with --json: print the pieces of replies too")
	return c
}

// takeBack rewinds the session to before the prompt and drops what waits.
func (r *run) takeBack(s *outcrop.Session) error {
	p, m, err := rewind.Again(s, r.again.at, r.again.edit)
	if err != nil {
		return err
	}
	if _, err := rewind.Commit(s, p, r.a.Env.NewID()); err != nil {
		return err
	}
	dropped, err := agent.DropPending(s)
	if err != nil {
		return err
	}
	for _, d := range dropped {
		r.a.Note("dropped from the inbox: %s", term.Line(message.PlainText(d.Content)))
	}
	r.again.message = m
	return nil
}

// wouldRetry says what a retry would take back.
func (r *run) wouldRetry(ctx context.Context) error {
	s, _, err := r.w.Look(ctx)
	if err != nil {
		return err
	}
	p, m, err := rewind.Again(s, r.again.at, r.again.edit)
	if err != nil {
		return err
	}
	text := message.PlainText(m.Content)
	if r.a.Flags.JSON {
		return r.a.Line(answer.New().Text("session", s.ID()).Number("to", int64(p.To)).Raw("removed", answer.Seqs(p.Removed)).
			Number("messages", int64(p.Messages)).Number("tokens", p.Tokens).Text("prompt", text).Bool("dryRun", true).End())
	}
	r.a.Text(fmt.Sprintf("would be taken back: %s, about %s tokens\n", term.Plural(p.Messages, "message"), llm.Thousands(p.Tokens)))
	r.a.Text(term.Cut("would be sent: "+term.Line(text), term.Width) + "\n")
	return nil
}
