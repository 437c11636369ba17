package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newPinCommand() *cobra.Command {
	var remove, dry bool
	c := &cobra.Command{
		Use:   "pin TARGET [SEQ]",
		Short: "Keep a part of the surface from being condensed",
		Long: `Pins the node SEQ: its whole exchange (a call with its results) is left as it
is by compaction, pruning and merging. A rewind ends the pins of what it takes
away. Without SEQ the pins are listed.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly("TARGET")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				if remove {
					return exit.Usagef("--remove needs SEQ: the node whose pin ends")
				}
				return a.onSession(c.Context(), args[0], true, a.listPins)
			}
			node, err := seqArg(args[1])
			if err != nil {
				return err
			}
			return a.onHistory(c.Context(), args[0], dry, func(s *outcrop.Session) error {
				return a.pin(s, node, remove, dry)
			})
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "end the pin of the node")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would change")
	return c
}

func (a *app) pin(s *outcrop.Session, node outcrop.Seq, remove, dry bool) (err error) {
	changed := true
	switch {
	case dry:
		changed, err = pin.Would(s, node, !remove)
	case remove:
		err = pin.Unset(s, node)
	default:
		changed, err = pin.Set(s, node)
	}
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.Line(answer.New().Number("node", int64(node)).Bool("pinned", !remove).Bool("changed", changed).Bool("dryRun", dry).End())
	}
	switch {
	case !changed:
		a.Text(fmt.Sprintf("%d is pinned already\n", node))
	case remove:
		a.Text(fmt.Sprintf("%s %d\n", would(dry, "unpinned", "would end the pin of"), node))
	default:
		a.Text(fmt.Sprintf("%s %d\n", would(dry, "pinned", "would pin"), node))
	}
	return nil
}

// would chooses the words of a dry run.
func would(dry bool, did, would string) string {
	if dry {
		return would
	}
	return did
}

func (a *app) listPins(_ *desk.Target, s *outcrop.Session) error {
	st := pin.Of(s.Log(), s.Surface().Nodes())
	if a.Flags.JSON {
		return a.Line(answer.New().Text("session", s.ID()).Raw("held", answer.Seqs(st.Held)).Raw("lost", answer.Seqs(st.Lost)).End())
	}
	for _, n := range st.Held {
		a.Text(term.Cut(fmt.Sprintf("%d %s", n, brief.Node(s.Log().At(n))), term.Width) + "\n")
	}
	for _, n := range st.Lost {
		by, _ := pin.CoveredBy(s.Log(), n)
		a.Text(fmt.Sprintf("%d is lost: it is covered by %d\n", n, by))
	}
	if len(st.Held)+len(st.Lost) == 0 {
		a.Note("nothing is pinned")
	}
	return nil
}
