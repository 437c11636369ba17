// Package strata is the shape of a surface and of everything under it: which
// node stood where, what it took the place of, and where that is in a picture.
//
// # Columns
//
// A column is a surface event that was appended, in log order. An append makes a
// node of one column at the right; a replace makes a node in the place of
// neighbours, and so in the place of their columns. So every node covers one
// interval of columns, and at every moment the nodes of the surface cover all
// columns of that moment, each once, from left to right:
//
//	row 0   [       36       ] [41] [44]      the surface
//	row 1   [4] [7] [31] [12]                 what 36 took the place of
//	row 2           [9]                       what 31 took the place of
//	column   0   1   2    3     4    5
//
// The state after any event is found in the same arrays: a node is covered then
// when the node above it is not newer. Nothing is stored for each moment.
//
// # What it costs
//
// A node is 32 bytes. An append is O(1), a replace O(nodes of the surface); a
// picture at any moment O(nodes in sight).
package strata

import (
	"fmt"
	"slices"
	"sort"

	"github.com/outcrop-dev/outcrop"
)

// Kind says who speaks in a node.
type Kind uint8

const (
	User Kind = iota
	Assistant
	Tool
	Context
	Checkpoint
	kinds
)

// Kinds are the names of the kinds, by number.
var Kinds = [kinds]string{"user", "assistant", "tool", "context", "checkpoint"}

func (k Kind) String() string { return Kinds[k] }

// Node is one node, on the surface or under it. It does not change.
type Node struct {
	Seq    outcrop.Seq
	A, B   int32 // its columns: A up to, not including, B
	first  int32 // what it took the place of: kids[first : first+n]
	n      int32
	Under  int32 // nodes below it, at any depth
	Kind   Kind
	Rewind bool // it stands for what a rewind took away
}

// Forest is every node that a log has had so far. The zero value is empty. One
// goroutine adds; who reads meanwhile uses a Snapshot or a lock.
type Forest struct {
	nodes   []Node
	kids    []int32
	up      []int32 // of each node the one above it, -1 when none is
	columns []int32 // of each column its node
	surface []int32 // nodes in model order

	generation int
}

// Append puts a node at the end of the surface.
func (f *Forest) Append(seq outcrop.Seq, k Kind) {
	i := int32(len(f.nodes))
	c := int32(len(f.columns))
	f.nodes = append(f.nodes, Node{Seq: seq, A: c, B: c + 1, Kind: k})
	f.up = append(f.up, -1)
	f.columns = append(f.columns, i)
	f.surface = append(f.surface, i)
}

// Replace puts a node in the place of those from start to end. Both must be on
// the surface, in that order.
func (f *Forest) Replace(seq, start, end outcrop.Seq, k Kind, rewind bool) error {
	at, ok := f.position(start)
	to, ok2 := f.position(end)
	if !ok || !ok2 || to < at {
		return fmt.Errorf("event %d replaces nodes %d to %d, which are not on the surface", seq, start, end)
	}
	i := int32(len(f.nodes))
	n := Node{Seq: seq, A: f.nodes[f.surface[at]].A, B: f.nodes[f.surface[to]].B, first: int32(len(f.kids)), n: int32(to - at + 1), Kind: k, Rewind: rewind}
	for _, c := range f.surface[at : to+1] {
		f.kids = append(f.kids, c)
		f.up[c] = i
		n.Under += 1 + f.nodes[c].Under
	}
	f.nodes = append(f.nodes, n)
	f.up = append(f.up, -1)
	f.surface[at] = i
	f.surface = slices.Delete(f.surface, at+1, to+1)
	f.generation++
	return nil
}

// position finds a node on the surface.
func (f *Forest) position(seq outcrop.Seq) (int, bool) {
	i := f.Find(seq)
	if i < 0 {
		return 0, false
	}
	a := f.nodes[i].A
	at := sort.Search(len(f.surface), func(k int) bool { return f.nodes[f.surface[k]].A >= a })
	return at, at < len(f.surface) && f.surface[at] == int32(i)
}

// Find is the number of the node with this seq, -1 when there is none.
func (f *Forest) Find(seq outcrop.Seq) int {
	i := sort.Search(len(f.nodes), func(k int) bool { return f.nodes[k].Seq >= seq })
	if i == len(f.nodes) || f.nodes[i].Seq != seq {
		return -1
	}
	return i
}

// Len is the number of nodes.
func (f *Forest) Len() int { return len(f.nodes) }

// Node is the node with a number.
func (f *Forest) Node(i int) Node { return f.nodes[i] }

// Columns is the number of columns.
func (f *Forest) Columns() int { return len(f.columns) }

// Column is the number of the node that was appended as column c.
func (f *Forest) Column(c int) int { return int(f.columns[c]) }

// ColumnsAt is how many columns there were after the event at.
func (f *Forest) ColumnsAt(at outcrop.Seq) int {
	return sort.Search(len(f.columns), func(c int) bool { return f.nodes[f.columns[c]].Seq > at })
}

// Generation is how many replaces there were.
func (f *Forest) Generation() int { return f.generation }

// GenerationAt is how many replaces there were after the event at.
func (f *Forest) GenerationAt(at outcrop.Seq) int {
	nodes := sort.Search(len(f.nodes), func(i int) bool { return f.nodes[i].Seq > at })
	return nodes - f.ColumnsAt(at)
}

// Surface are the numbers of the nodes of the surface. The slice changes with
// the next Append or Replace.
func (f *Forest) Surface() []int32 { return f.surface }

// Kids are the numbers of the nodes that a node took the place of, in model
// order. Read them only.
func (f *Forest) Kids(i int) []int32 {
	n := f.nodes[i]
	return f.kids[n.first : n.first+n.n : n.first+n.n]
}

// Up is the node that covers node i after the event at, -1 when none does.
func (f *Forest) Up(i int, at outcrop.Seq) int {
	u := f.up[i]
	if u < 0 || f.nodes[u].Seq > at {
		return -1
	}
	return int(u)
}

// Root is the node of the surface that stands for node i after the event at, and
// how many rows it stands above.
func (f *Forest) Root(i int, at outcrop.Seq) (root, depth int) {
	for {
		u := f.Up(i, at)
		if u < 0 {
			return i, depth
		}
		i, depth = u, depth+1
	}
}

// Rewound reports whether a rewind took node i away before the event at.
func (f *Forest) Rewound(i int, at outcrop.Seq) bool {
	for i = f.Up(i, at); i >= 0; i = f.Up(i, at) {
		if f.nodes[i].Rewind {
			return true
		}
	}
	return false
}

// SurfaceAt are the numbers of the nodes of the surface after the event at, in
// model order.
func (f *Forest) SurfaceAt(at outcrop.Seq) []int32 {
	var out []int32
	for c, end := 0, f.ColumnsAt(at); c < end; {
		i, _ := f.Root(int(f.columns[c]), at)
		out = append(out, int32(i))
		c = int(f.nodes[i].B)
	}
	return out
}

// Snapshot is a Forest that stays what it is now; what covers a node is not in
// it, so it has no rows and no surface.
type Snapshot struct {
	nodes []Node
	kids  []int32
}

// Snapshot is O(1).
func (f *Forest) Snapshot() Snapshot { return Snapshot{f.nodes[:len(f.nodes):len(f.nodes)], f.kids} }

// Len is the number of nodes.
func (s Snapshot) Len() int { return len(s.nodes) }

// Node is the node with a number.
func (s Snapshot) Node(i int) Node { return s.nodes[i] }

// Kids are the numbers of the nodes that a node took the place of.
func (s Snapshot) Kids(i int) []int32 {
	return s.kids[s.nodes[i].first : s.nodes[i].first+s.nodes[i].n]
}
