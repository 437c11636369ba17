package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/work"
)

// compactFlags are the flags of compact.
type compactFlags struct {
	model     string
	script    string
	policy    string
	modelFree bool
	dry       bool
}

func (a *app) newCompactCommand() *cobra.Command {
	var f compactFlags
	c := &cobra.Command{
		Use:   "compact TARGET [A..B]",
		Short: "Put a summary in the place of a part of the surface",
		Long: `Condenses what the policy lets go of, or the nodes from A to B, into a summary
that the model of the session writes. The log keeps everything: fork --before
goes back behind a compaction, history_read lets the model read what is covered.

With --model-free no model is asked: the summary is made of the prompts, the
calls and the last words. The same happens when the model gives no summary that
can be used.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly("TARGET")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			r := history.Request{Start: -1, End: -1, ModelFree: f.modelFree, DryRun: f.dry}
			if len(args) == 2 {
				var err error
				if r.Start, r.End, err = rangeArg(args[1]); err != nil {
					return err
				}
			}
			return a.compact(c.Context(), args[0], f, r)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.model, "model", "", "the model that summarises, as `PROVIDER:MODEL` (default that of the session)")
	fl.StringVar(&f.script, "script", "", "play the replies in this `FILE` instead of asking a model")
	fl.StringVar(&f.policy, "policy", "", "`RULES`: layers or dsh (default the configured ones)")
	fl.BoolVar(&f.modelFree, "model-free", false, "ask no model")
	fl.BoolVar(&f.dry, "dry-run", false, "only say what would change, and what it saves")
	return c
}

// rangeArg reads A..B.
func rangeArg(text string) (start, end outcrop.Seq, err error) {
	a, b, ok := strings.Cut(text, "..")
	if !ok {
		return 0, 0, exit.Usagef("%s is no range: write A..B, the seqs of its first and its last node", term.Quote(text))
	}
	if start, err = seqArg(a); err == nil {
		end, err = seqArg(b)
	}
	return start, end, err
}

func (a *app) compact(ctx context.Context, name string, f compactFlags, r history.Request) error {
	w, err := work.Prepare(ctx, a.Desk, work.Flags{Session: name, Model: f.model, Script: f.script, Policy: f.policy, NoModel: f.modelFree || f.dry, NoTurn: true})
	if err != nil {
		return err
	}
	if f.dry {
		s, m, err := w.Look(ctx)
		if err != nil {
			return err
		}
		return a.compacted(ctx, s, m, r)
	}
	w.Notify = func(n history.Notice) { a.Note("%s", term.Line(n.Text)) }
	if err := w.Open(ctx); err != nil {
		return errors.Join(err, w.Close(context.WithoutCancel(ctx)))
	}
	err = a.compacted(ctx, w.Session(), w.History(), r)
	return errors.Join(err, w.Close(context.WithoutCancel(ctx)))
}

func (a *app) compacted(ctx context.Context, s *outcrop.Session, m *history.Manager, r history.Request) error {
	rep, err := m.Compact(ctx, history.Direct(s), r)
	if err != nil {
		return err
	}
	if err := a.tellEdits(s, rep, r.DryRun); err != nil {
		return err
	}
	if len(rep.Edits) == 0 && rep.Err != nil {
		return exit.With(1, fmt.Errorf("nothing was compacted: %w", rep.Err))
	}
	return nil
}
