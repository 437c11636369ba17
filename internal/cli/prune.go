package cli

import (
	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/view"
)

func (a *app) newPruneCommand() *cobra.Command {
	var dry bool
	var policy string
	c := &cobra.Command{
		Use:   "prune TARGET [SEQ...]",
		Short: "Shorten tool results that the model sees",
		Long: `Cuts the middle out of the results that stand at the nodes SEQ, or, without
SEQ, of all that the policy lets be shortened: no errors, no images, nothing
pinned, nothing of the newest exchanges. The log keeps the whole results, and
the model can read them with history_read.

In a session that must stay readable for dsh a result can be shortened only
inside a turn; there run and chat do it.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("TARGET")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			var nodes []outcrop.Seq
			for _, arg := range args[1:] {
				n, err := seqArg(arg)
				if err != nil {
					return err
				}
				nodes = append(nodes, n)
			}
			return a.onHistory(c.Context(), args[0], dry, func(s *outcrop.Session) error {
				rc, _ := s.RequestContext()
				m, err := history.NewManager(history.Options{Policy: history.Policy(policy), Window: rc.ContextWindow, Logger: a.Logger})
				if err != nil {
					return exit.Misuse(err)
				}
				r, err := m.Prune(c.Context(), history.Direct(s), nodes, dry)
				if err != nil {
					return err
				}
				if len(r.Queued) > 0 {
					done := "nothing was changed"
					if dry {
						done = "nothing would be changed"
					}
					return exit.Refusedf("this session must stay readable for dsh, which allows it only inside a turn: %s; use /prune in outcrop chat", done)
				}
				return a.tellEdits(s, r, dry)
			})
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would change, and what it saves")
	c.Flags().StringVar(&policy, "policy", "", "`RULES`: layers or dsh (default layers)")
	return c
}

// tellEdits says what a compaction or a pruning did, or would do.
func (a *app) tellEdits(s *outcrop.Session, r history.Report, dry bool) error {
	if a.Flags.JSON {
		return a.Line(editsJSON(s, r, dry))
	}
	for _, line := range view.Edits(r) {
		a.Text(line + "\n")
	}
	return nil // r.Err was a notice already
}

func editsJSON(s *outcrop.Session, r history.Report, dry bool) []byte {
	o := answer.New().Text("session", s.ID()).Raw("edits", answer.List(len(r.Edits), func(dst []byte, i int) []byte {
		e := r.Edits[i]
		return append(dst, answer.Inner().TextOrNull("compactionId", e.ID).Number("replacement", int64(e.Replacement)).Raw("shadowed", answer.Seqs(e.Shadowed)).
			Number("tokensBefore", e.TokensBefore).Number("tokensAfter", e.TokensAfter).Number("cacheInvalidated", e.CacheInvalidated).
			Number("level", int64(e.Level)).Bool("modelFree", e.ModelFree).End()...)
	}))
	o.Raw("planned", answer.List(len(r.Planned), func(dst []byte, i int) []byte {
		p := r.Planned[i]
		return append(dst, answer.Inner().Text("kind", p.Kind).Raw("nodes", answer.Seqs(p.Nodes)).Number("tokens", p.Tokens).
			Number("atMost", p.AtMost).Number("level", int64(p.Level)).Number("cacheInvalidated", p.Invalidates).End()...)
	}))
	problem := ""
	if r.Err != nil {
		problem = exit.Explain(r.Err)
	}
	return o.Number("before", r.Before).Number("after", r.After).Number("calls", int64(r.Calls)).
		TextOrNull("notice", r.Notice).TextOrNull("problem", problem).Bool("dryRun", dry).End()
}
