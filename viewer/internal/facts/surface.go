package facts

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/strata"
)

// MostNodes is the longest list of nodes.
const MostNodes = 2000

// Node is a node of the surface.
type Node struct {
	Seq    outcrop.Seq `json:"seq"`
	Kind   string      `json:"kind"`
	Tokens int64       `json:"tokens"`
	What   Text        `json:"what"`
	Covers int         `json:"covers"`
	Pinned bool        `json:"pinned"`
}

// Surface is a part of the surface at one moment.
type Surface struct {
	Schema
	At         outcrop.Seq `json:"at"`
	Generation int         `json:"generation"`
	Total      int         `json:"total"`
	From       int         `json:"from"`
	Tokens     int64       `json:"tokens"`
	Masked     int         `json:"masked"`
	Nodes      []Node      `json:"nodes"`
}

// SurfaceOf makes a surface without what is said.
func SurfaceOf(x *folded.Index, at outcrop.Seq, from, limit int) Surface {
	nodes := x.Forest.SurfaceAt(at)
	lo, hi := windowOf(from, limit, len(nodes))
	s := Surface{Schema: V1, At: at, Generation: x.Forest.GenerationAt(at), Total: len(nodes), From: lo}
	s.Nodes = nodesOf(x, nodes[lo:hi])
	x.Prices.Use(func(tokens []int64, _ *strata.Widths) {
		for _, i := range nodes {
			s.Tokens += tokens[i]
		}
	})
	return s
}

func nodesOf(x *folded.Index, numbers []int32) []Node {
	out := make([]Node, 0, len(numbers))
	x.Prices.Use(func(tokens []int64, _ *strata.Widths) {
		for _, i := range numbers {
			n := x.Forest.Node(int(i))
			out = append(out, Node{Seq: n.Seq, Kind: n.Kind.String(), Tokens: tokens[i], Covers: len(x.Forest.Kids(int(i))), Pinned: x.Pinned(n.Seq)})
		}
	})
	return out
}

func say(nodes []Node, log outcrop.Log, v *Veil) {
	for i := range nodes {
		nodes[i].What = what(log.At(nodes[i].Seq), v)
	}
}

// Say fills in what the nodes say.
func (s *Surface) Say(log outcrop.Log, v *Veil) {
	say(s.Nodes, log, v)
	s.Masked = v.Masked
}

// Diff is what two moments of a surface differ in.
type Diff struct {
	Schema
	A            outcrop.Seq `json:"a"`
	B            outcrop.Seq `json:"b"`
	Same         int         `json:"same"`
	Added        []Node      `json:"added"`
	Removed      []Node      `json:"removed"`
	AddedTotal   int         `json:"addedTotal"`
	RemovedTotal int         `json:"removedTotal"`
	Masked       int         `json:"masked"`
}

// DiffOf compares two moments without what is said.
func DiffOf(x *folded.Index, a, b outcrop.Seq) Diff {
	at, bt := x.Forest.SurfaceAt(a), x.Forest.SurfaceAt(b)
	d := Diff{Schema: V1, A: a, B: b}
	in := make(map[int32]bool, len(at))
	for _, n := range at {
		in[n] = true
	}
	var added, removed []int32
	for _, n := range bt {
		if in[n] {
			d.Same++
			delete(in, n)
		} else {
			added = append(added, n)
		}
	}
	for _, n := range at {
		if in[n] {
			removed = append(removed, n)
		}
	}
	d.AddedTotal, d.RemovedTotal = len(added), len(removed)
	d.Added, d.Removed = nodesOf(x, added[:min(len(added), MostNodes)]), nodesOf(x, removed[:min(len(removed), MostNodes)])
	return d
}

// Say fills in what the nodes say.
func (d *Diff) Say(log outcrop.Log, v *Veil) {
	say(d.Added, log, v)
	say(d.Removed, log, v)
	d.Masked = v.Masked
}
