// Package lineage follows an event of a log in both directions: to the events
// that it was made from, down to the chunks of the model's stream, and to those
// that took its place on the surface.
package lineage

import "github.com/outcrop-dev/outcrop"

// Origin is an event that another one was made from, or a run of chunks.
type Origin struct {
	First, Last outcrop.Seq // equal but for a run of chunks
	Type        outcrop.Type
	Depth       int // 0 is the event itself
	Known       bool
	Sources     []outcrop.Seq
	Again       bool // it stands further up already, with its own sources
}

// Lineage is what Of finds.
type Lineage struct {
	Seq        outcrop.Seq
	State      string // surface, shadowed or log
	Origins    []Origin
	ShadowedBy []outcrop.Seq // who covered it, who covered that one, ...
}

// Of follows the event seq of a log and its fold. Every event is listed once
// with its sources, however often it is one.
func Of(log outcrop.Log, fold outcrop.Fold, seq outcrop.Seq) Lineage {
	g := Lineage{Seq: seq, State: "log"}
	by := map[outcrop.Seq]outcrop.Seq{}
	for _, r := range fold.Replacements {
		for _, s := range r.Shadowed {
			by[s] = r.Seq
		}
	}
	for _, n := range fold.Nodes {
		if n == seq {
			g.State = "surface"
		}
	}
	for s := seq; ; {
		next, ok := by[s]
		if !ok {
			break
		}
		g.State = "shadowed"
		g.ShadowedBy = append(g.ShadowedBy, next)
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
		ev := log.At(it.seq)
		o := Origin{First: it.seq, Last: it.seq, Type: ev.Type, Depth: it.depth, Again: listed[it.seq]}
		if n := len(g.Origins); n > 0 && ev.Type == outcrop.TypeAssistantChunk {
			if last := &g.Origins[n-1]; last.Type == ev.Type && last.Depth == it.depth && last.Last+1 == it.seq {
				last.Last = it.seq
				continue
			}
		}
		if o.Again {
			g.Origins = append(g.Origins, o)
			continue
		}
		listed[it.seq] = true
		o.Known, o.Sources = ev.Sources.Known(), ev.Sources.Seqs()
		g.Origins = append(g.Origins, o)
		for i := len(o.Sources) - 1; i >= 0; i-- {
			// Admission checked this; a log that was refused ends before it.
			if s := o.Sources[i]; s >= 0 && s < it.seq {
				stack = append(stack, item{s, it.depth + 1})
			}
		}
	}
	return g
}
