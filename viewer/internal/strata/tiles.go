package strata

import (
	"math"
	"sort"

	"github.com/outcrop-dev/outcrop"
)

// Rows is how many rows are drawn; what lies deeper is in row Rows, one tile
// under each tile of the row above.
const Rows = 8

// Flags of a tile.
const (
	FlagRewind  = 1 << iota // it stands for what a rewind took away
	FlagPinned              // it is pinned
	FlagCovers              // something lies under it
	FlagDeep                // row Rows
	FlagJoined              // it stands for several nodes
	FlagAdded               // on the surface, and was not at the moment compared with
	FlagRemoved             // was on the surface at the moment compared with, and is not
)

// MinWidth is the least width of a column, in units.
const MinWidth = 2

// EqualWidth is the width of each column when all are equal.
const EqualWidth = 8

// Widths are the borders of columns: column c lies between x[c] and x[c+1].
type Widths struct{ x []float64 }

// grain is the finest width, a fraction of a unit: sums of such widths are exact,
// so borders of different rows fall together.
const grain = 64

// Add puts a column of so many tokens at the right.
func (w *Widths) Add(tokens int64) {
	if w.x == nil {
		w.x = []float64{0}
	}
	w.x = append(w.x, w.x[len(w.x)-1]+max(MinWidth, math.Round(math.Sqrt(float64(max(tokens, 0)))*grain)/grain))
}

// Len is the number of columns.
func (w *Widths) Len() int { return max(len(w.x)-1, 0) }

func (w *Widths) at(c int32) float64 {
	if len(w.x) == 0 {
		return 0
	}
	return w.x[min(int(c), len(w.x)-1)]
}

// Picture says what is drawn.
type Picture struct {
	At       outcrop.Seq
	From, To float64 // units; To not above From: up to the end
	Px       int     // width in pixels, at least MinPx
	Equal    bool    // all columns have the same width
	Compare  outcrop.Seq
	Compared bool
	Pinned   map[outcrop.Seq]bool
	Tokens   func(i int) int64 // of node i
}

// MinPx is the least width of a picture: below it the bound of tiles could not
// be kept.
const MinPx = 64

// Tile is one node in the picture, or several that are too narrow for a tile
// of their own.
type Tile struct {
	Row       int
	X, W      float64
	Seq, Last outcrop.Seq // of the first and of the last node
	Kind      Kind
	Tokens    int64
	Count     int // nodes
	Flags     int
}

// Drawn is a picture.
type Drawn struct {
	Columns, AllColumns int     // up to the moment, and of the whole log
	Width, AllWidth     float64 // of them
	From, To            float64
	Rows                int
	Tiles               []Tile // by row, from left to right
}

// Draw makes the tiles of a picture: at most two a pixel, each node counted in
// exactly one of them.
func (f *Forest) Draw(w *Widths, p Picture) Drawn {
	x := w.at
	if p.Equal {
		x = func(c int32) float64 { return float64(c) * EqualWidth }
	}
	cols := f.ColumnsAt(p.At)
	d := Drawn{Columns: cols, AllColumns: len(f.columns), Width: x(int32(cols)), AllWidth: x(int32(len(f.columns)))}
	d.From, d.To = max(p.From, 0), p.To
	if d.To <= d.From {
		d.To = max(d.AllWidth, d.From+1)
	}
	px := max(p.Px, MinPx)
	unit := (d.To - d.From) / float64(px)
	// Narrow tiles of one row are joined up to so many pixels. With one more
	// than there are rows the bound holds whatever the log is.
	for _, least := range []float64{1, 2, 4, Rows + 2} {
		b := brush{f: f, p: &p, x: x, from: d.From, to: d.To, join: least * unit}
		b.draw(cols)
		d.Rows, d.Tiles = b.deepest, b.done()
		if len(d.Tiles) <= 2*px {
			break
		}
	}
	return d
}

// brush draws once.
type brush struct {
	f        *Forest
	p        *Picture
	x        func(int32) float64
	from, to float64
	join     float64

	rows    [Rows + 1]rowOf
	deepest int // rows in sight
}

// rowOf is one row while it is drawn; the last tile may still grow.
type rowOf struct {
	tiles []Tile
	width [kinds]float64 // of the last tile, by kind
}

func (b *brush) draw(cols int) {
	f, at := b.f, b.p.At
	// The first column that reaches into the picture.
	first := sort.Search(cols, func(c int) bool { return b.x(int32(c+1)) > b.from })
	type item struct{ node, row int32 }
	var stack []item
	for c := first; c < cols && b.x(int32(c)) < b.to; {
		root, _ := f.Root(int(f.columns[c]), at)
		stack = append(stack[:0], item{int32(root), 0})
		for len(stack) > 0 {
			it := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			n := &f.nodes[it.node]
			x0, x1 := b.x(n.A), b.x(n.B)
			if x1 <= b.from || x0 >= b.to {
				continue
			}
			b.tile(int(it.node), int(it.row), x0, x1)
			switch {
			case n.n == 0:
			case it.row == Rows-1:
				b.deep(int(it.node), x0, x1)
			default:
				kids := f.Kids(int(it.node))
				for k := len(kids) - 1; k >= 0; k-- {
					stack = append(stack, item{kids[k], it.row + 1})
				}
			}
		}
		c = int(f.nodes[root].B)
	}
}

func (b *brush) tile(i, row int, x0, x1 float64) {
	n := &b.f.nodes[i]
	t := Tile{Row: row, X: x0, W: x1 - x0, Seq: n.Seq, Last: n.Seq, Kind: n.Kind, Count: 1, Tokens: b.p.Tokens(i)}
	if n.Rewind {
		t.Flags |= FlagRewind
	}
	if b.p.Pinned[n.Seq] {
		t.Flags |= FlagPinned
	}
	if n.n > 0 {
		t.Flags |= FlagCovers
	}
	if b.p.Compared {
		t.Flags |= b.changed(i, row)
	}
	b.put(t)
}

// changed compares a node with the other moment.
func (b *brush) changed(i, row int) int {
	there := b.f.nodes[i].Seq <= b.p.Compare && b.f.Up(i, b.p.Compare) < 0
	switch {
	case row == 0 && !there:
		return FlagAdded
	case row > 0 && there:
		return FlagRemoved
	}
	return 0
}

// deep stands for everything under a tile of the last row that is drawn.
func (b *brush) deep(i int, x0, x1 float64) {
	n := &b.f.nodes[i]
	kids := b.f.Kids(i)
	b.put(Tile{Row: Rows, X: x0, W: x1 - x0, Seq: b.f.nodes[kids[0]].Seq, Last: b.f.nodes[kids[len(kids)-1]].Seq,
		Kind: b.f.nodes[kids[0]].Kind, Count: int(n.Under), Flags: FlagDeep | FlagCovers})
}

func (b *brush) put(t Tile) {
	b.deepest = max(b.deepest, t.Row+1)
	r := &b.rows[t.Row]
	if k := len(r.tiles); k > 0 {
		last := &r.tiles[k-1]
		// Both must be narrow, so that a wide tile stays what it is.
		if end := t.X + t.W; end-last.X <= b.join {
			r.width[t.Kind] += t.W
			last.Last, last.W = t.Last, end-last.X
			last.Count += t.Count
			last.Tokens += t.Tokens
			last.Flags |= t.Flags | FlagJoined
			for kind := range r.width {
				if r.width[kind] > r.width[last.Kind] {
					last.Kind = Kind(kind)
				}
			}
			return
		}
	}
	r.tiles = append(r.tiles, t)
	r.width = [kinds]float64{}
	r.width[t.Kind] = t.W
}

func (b *brush) done() []Tile {
	var all []Tile
	for i := range b.rows {
		all = append(all, b.rows[i].tiles...)
	}
	return all
}

// Span is where a node stands: its left border and its width.
func (w *Widths) Span(n Node) (x, width float64) {
	x = w.at(n.A)
	return x, w.at(n.B) - x
}
