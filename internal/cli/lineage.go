package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
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
				return usagef("%s is no seq: an event has a number from 0 on", quote(args[1]))
			}
			l, err := a.load(c.Context(), args[0], viewFlags{at: everything})
			if err != nil {
				return err
			}
			if n >= int64(l.log.Len()) {
				if a.missing != nil {
					return nil // the damage is what has to be said
				}
				return usagef("there is no event %d: the last one is %d", n, l.at)
			}
			g := trace(l, outcrop.Seq(n))
			if a.flags.json {
				return a.line(g.json(l))
			}
			a.lineageText(l, g)
			return nil
		},
	}
}

// origin is an event that another one was made from, or a run of chunks.
type origin struct {
	first, last outcrop.Seq // equal but for a run of chunks
	typ         outcrop.Type
	depth       int // 0 is the event itself
	known       bool
	sources     []outcrop.Seq
	again       bool // it stands further up already, with its own sources
}

// lineage is what trace finds.
type lineage struct {
	seq        outcrop.Seq
	state      string // surface, shadowed or log
	origins    []origin
	shadowedBy []outcrop.Seq // who covered it, who covered that one, ...
}

// trace follows an event in both directions. Every event is listed once with
// its sources, however often it is one.
func trace(l *seen, seq outcrop.Seq) lineage {
	g := lineage{seq: seq, state: "log"}
	by := map[outcrop.Seq]outcrop.Seq{}
	for _, r := range l.fold.Replacements {
		for _, s := range r.Shadowed {
			by[s] = r.Seq
		}
	}
	for _, n := range l.fold.Nodes {
		if n == seq {
			g.state = "surface"
		}
	}
	for s := seq; ; {
		next, ok := by[s]
		if !ok {
			break
		}
		g.state = "shadowed"
		g.shadowedBy = append(g.shadowedBy, next)
		s = next
	}
	type item struct {
		seq   outcrop.Seq
		depth int
	}
	listed := map[outcrop.Seq]bool{}
	stack := []item{{seq, 0}}
	for len(stack) > 0 {
		it := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		ev := l.log.At(it.seq)
		o := origin{first: it.seq, last: it.seq, typ: ev.Type, depth: it.depth, again: listed[it.seq]}
		if n := len(g.origins); n > 0 && ev.Type == outcrop.TypeAssistantChunk {
			if last := &g.origins[n-1]; last.typ == ev.Type && last.depth == it.depth && last.last+1 == it.seq {
				last.last = it.seq
				continue
			}
		}
		if o.again {
			g.origins = append(g.origins, o)
			continue
		}
		listed[it.seq] = true
		o.known, o.sources = ev.Sources.Known(), ev.Sources.Seqs()
		g.origins = append(g.origins, o)
		for i := len(o.sources) - 1; i >= 0; i-- {
			// Admission checked this; a log that was refused ends before it.
			if s := o.sources[i]; s >= 0 && s < it.seq {
				stack = append(stack, item{s, it.depth + 1})
			}
		}
	}
	return g
}

func (g *lineage) json(l *seen) []byte {
	return newAnswer().text("session", l.header.ID).number("seq", int64(g.seq)).text("type", string(l.log.At(g.seq).Type)).
		text("state", g.state).
		raw("origins", list(len(g.origins), func(dst []byte, i int) []byte {
			x := &g.origins[i]
			o := object().number("seq", int64(x.first))
			if x.last > x.first {
				o.number("last", int64(x.last))
			}
			o.text("type", string(x.typ)).number("depth", int64(x.depth))
			switch {
			case x.again:
				o.boolean("again", true)
			case x.known:
				o.raw("sources", seqs(x.sources))
			}
			return append(dst, o.end()...)
		})).
		raw("shadowedBy", seqs(g.shadowedBy)).end()
}

func (a *app) lineageText(l *seen, g lineage) {
	st := a.style()
	w := len(itoa(l.at))
	for _, o := range g.origins {
		indent := strings.Repeat("  ", min(o.depth, 16))
		line := indent + padLeft(itoa(o.first), w)
		if o.last > o.first {
			a.text(st.dim(cut(line+".."+itoa(o.last)+" "+plural(int64(o.last-o.first+1), "chunk"), width)) + "\n")
			continue
		}
		ev := l.log.At(o.first)
		line += " " + escapeLine(string(o.typ)) + " "
		if o.again {
			a.text(st.dim(cut(line+"(see above)", width)) + "\n")
			continue
		}
		switch {
		case !ev.Type.Surface() && ev.Type != outcrop.TypeToolCall:
			line += logSummary(ev)
		case ev.Type == outcrop.TypeToolCall:
			line += logSummary(ev)
		default:
			_, what := nodeParts(ev)
			line += what
		}
		line = cut(line, width)
		if o.depth == 0 {
			line = st.bold(line)
		}
		a.text(line + "\n")
	}
	if len(g.origins) == 1 && !g.origins[0].known {
		a.text(st.dim("  no sources were recorded") + "\n")
	} else if len(g.origins) == 1 {
		a.text(st.dim("  made from nothing: its list of sources is empty") + "\n")
	}
	switch g.state {
	case "surface":
		a.text(st.green("on the surface") + "\n")
	case "shadowed":
		for i, s := range g.shadowedBy {
			where := "covered by"
			if i > 0 {
				where = "which is covered by"
			}
			a.text(st.yellow(cut(fmt.Sprintf("%s %d %s", where, s, describe(l.log.At(s))), width)) + "\n")
		}
		last := g.shadowedBy[len(g.shadowedBy)-1]
		a.text(st.dim(fmt.Sprintf("%d is on the surface", last)) + "\n")
	default:
		a.text(st.dim("never on the surface") + "\n")
	}
}
