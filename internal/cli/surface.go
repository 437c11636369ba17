package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newSurfaceCommand() *cobra.Command {
	var v viewFlags
	var diff string
	c := &cobra.Command{
		Use:   "surface TARGET",
		Short: "What the model sees: the nodes, and what each one covers",
		Args:  exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := v.check(c); err != nil {
				return err
			}
			var d span
			if diff != "" {
				if v.closed || v.at >= 0 {
					return exit.Usagef("--diff says both ends: it takes neither --at nor --closed")
				}
				var err error
				if d, err = parseSpan(diff); err != nil {
					return err
				}
				v.at = int64(d.to)
			}
			l, err := a.load(c.Context(), args[0], v)
			if err != nil {
				return err
			}
			if diff != "" {
				return a.surfaceDiff(l, d)
			}
			if a.Flags.JSON {
				return a.Line(surfaceJSON(l))
			}
			a.surfaceText(l)
			return nil
		},
	}
	v.register(c)
	c.Flags().StringVar(&diff, "diff", "", "what changed between two events, `A..B`")
	return c
}

// register adds --at and --closed.
func (v *viewFlags) register(c *cobra.Command) {
	v.registerAt(c)
	c.Flags().BoolVar(&v.closed, "closed", false, "with the closers of an open turn, as a writer would add them")
}

func (v *viewFlags) registerAt(c *cobra.Command) {
	c.Flags().Int64Var(&v.at, "at", everything, "as it was after the event `SEQ`")
	noDefault(c, "at")
}

// noDefault keeps the help from showing a default that only stands for "not
// given".
func noDefault(c *cobra.Command, names ...string) {
	for _, name := range names {
		c.Flags().Lookup(name).DefValue = "0"
	}
}

func (v *viewFlags) check(c *cobra.Command) error {
	if c.Flags().Changed("at") && v.at < 0 {
		return exit.Usagef("--at %d: an event has a seq from 0 on", v.at)
	}
	return nil
}

func surfaceJSON(l *seen) []byte {
	o := answer.New().Text("session", l.header.ID).Number("at", int64(l.at)).
		Raw("nodes", answer.Seqs(l.fold.Nodes)).Number("generation", int64(l.fold.Generation)).
		Bool("openTurn", l.open).
		Raw("replacements", answer.List(len(l.fold.Replacements), func(dst []byte, i int) []byte {
			r := l.fold.Replacements[i]
			return append(dst, answer.Inner().Number("seq", int64(r.Seq)).Number("start", int64(r.Start)).
				Number("end", int64(r.End)).Raw("shadowed", answer.Seqs(r.Shadowed)).End()...)
		}))
	return l.fallback(o).End()
}

// fallback marks an answer about a log without surface markers, and one about a
// log in a later format of dsh, whose seqs are not those of the file.
func (l *seen) fallback(o *answer.Object) *answer.Object {
	if l.noMarkers {
		o.Text("fallback", "no-markers")
	}
	if f := l.header.Format; f > 0 {
		o.Number("format", f)
	}
	return o
}

// surfaceText draws the strata: a line for each node, below it what it covers.
func (a *app) surfaceText(l *seen) {
	st := a.Style()
	after := ""
	if l.at >= 0 {
		after = fmt.Sprintf(" after event %d", l.at)
	}
	a.Text(st.Bold("surface of "+term.Cut(l.id(), 44)) + after + "\n")
	a.Text(fmt.Sprintf("%s over %s, %s\n", term.Plural(len(l.fold.Nodes), "node"), term.Plural(l.log.Len(), "event"), term.Plural(l.fold.Generation, "edit")))
	if l.noMarkers {
		a.Text("the messages of this log carry no surface markers: it can be looked at, not continued\n")
		return
	}
	under := map[outcrop.Seq]outcrop.Replacement{}
	for _, r := range l.fold.Replacements {
		under[r.Seq] = r
	}
	p, w := a.Printer(), len(itoa(l.at))
	for _, n := range l.fold.Nodes {
		p.Node(l.log, n, w)
		p.Covered(l.log, under, n, w)
	}
	if l.open {
		a.Text(st.Yellow(fmt.Sprintf("turn %d is open", l.turn)) + "\n")
	}
}
