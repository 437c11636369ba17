package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/lineage"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newLineageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lineage TARGET SEQ",
		Short: "Where an event came from, and what became of it",
		Long: `Follows the sources of an event down to the chunks of the model's stream, and
the chain of events that took its place on the surface.`,
		Args: exactly("TARGET", "SEQ"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || n < 0 {
				return exit.Usagef("%s is no seq: an event has a number from 0 on", term.Quote(args[1]))
			}
			l, err := a.load(c.Context(), args[0], viewFlags{at: everything})
			if err != nil {
				return err
			}
			if n >= int64(l.log.Len()) {
				if a.missing != nil {
					return nil // the damage is what has to be said
				}
				return exit.Usagef("there is no event %d: the last one is %d", n, l.at)
			}
			g := lineage.Of(l.log, l.fold, outcrop.Seq(n))
			if a.Flags.JSON {
				return a.Line(lineageJSON(l, g))
			}
			a.lineageText(l, g)
			return nil
		},
	}
}

func lineageJSON(l *seen, g lineage.Lineage) []byte {
	return l.fallback(answer.New().Text("session", l.header.ID).Number("seq", int64(g.Seq)).Text("type", string(l.log.At(g.Seq).Type)).
		Text("state", g.State).
		Raw("origins", answer.List(len(g.Origins), func(dst []byte, i int) []byte {
			x := &g.Origins[i]
			o := answer.Inner().Number("seq", int64(x.First))
			if x.Last > x.First {
				o.Number("last", int64(x.Last))
			}
			o.Text("type", string(x.Type)).Number("depth", int64(x.Depth))
			switch {
			case x.Again:
				o.Bool("again", true)
			case x.Known:
				o.Raw("sources", answer.Seqs(x.Sources))
			}
			return append(dst, o.End()...)
		})).
		Raw("shadowedBy", answer.Seqs(g.ShadowedBy))).End()
}

func (a *app) lineageText(l *seen, g lineage.Lineage) {
	st := a.Style()
	w := len(itoa(l.at))
	for _, o := range g.Origins {
		indent := strings.Repeat("  ", min(o.Depth, 16))
		line := indent + term.PadLeft(itoa(o.First), w)
		if o.Last > o.First {
			a.Text(st.Dim(term.Cut(line+".."+itoa(o.Last)+" "+term.Plural(int64(o.Last-o.First+1), "chunk"), term.Width)) + "\n")
			continue
		}
		ev := l.log.At(o.First)
		line += " " + term.Line(string(o.Type)) + " "
		if o.Again {
			a.Text(st.Dim(term.Cut(line+"(see above)", term.Width)) + "\n")
			continue
		}
		switch {
		case !ev.Type.Surface() && ev.Type != outcrop.TypeToolCall:
			line += brief.Event(ev)
		case ev.Type == outcrop.TypeToolCall:
			line += brief.Event(ev)
		default:
			_, what := brief.Parts(ev)
			line += what
		}
		line = term.Cut(line, term.Width)
		if o.Depth == 0 {
			line = st.Bold(line)
		}
		a.Text(line + "\n")
	}
	if len(g.Origins) == 1 && !g.Origins[0].Known {
		a.Text(st.Dim("  no sources were recorded") + "\n")
	} else if len(g.Origins) == 1 {
		a.Text(st.Dim("  made from nothing: its list of sources is empty") + "\n")
	}
	switch g.State {
	case "surface":
		a.Text(st.Green("on the surface") + "\n")
	case "shadowed":
		for i, s := range g.ShadowedBy {
			where := "covered by"
			if i > 0 {
				where = "which is covered by"
			}
			a.Text(st.Yellow(term.Cut(fmt.Sprintf("%s %d %s", where, s, brief.Node(l.log.At(s))), term.Width)) + "\n")
		}
		last := g.ShadowedBy[len(g.ShadowedBy)-1]
		a.Text(st.Dim(fmt.Sprintf("%d is on the surface", last)) + "\n")
	default:
		a.Text(st.Dim("never on the surface") + "\n")
	}
}
