package facts

import (
	"math"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/strata"
)

// Look says which part of a picture is asked for.
type Look struct {
	At       outcrop.Seq // inclusive
	From, To float64
	Px       int
	Equal    bool
	Compare  outcrop.Seq
	Compared bool
}

// MostPx is the widest picture.
const MostPx = 8192

// Strata draws the strata of a session. Prices must have caught up with the
// index. It appends the whole answer to dst.
func Strata(dst []byte, x *folded.Index, q Look) []byte {
	var d strata.Drawn
	x.Prices.Use(func(tokens []int64, w *strata.Widths) {
		d = x.Forest.Draw(w, strata.Picture{At: q.At, From: q.From, To: q.To, Px: q.Px, Equal: q.Equal,
			Compare: q.Compare, Compared: q.Compared, Pinned: x.PinnedSet(),
			Tokens: func(i int) int64 { return tokens[i] }})
	})
	dst = append(dst, `{"schema":1`...)
	num := func(name string, n int64) { dst = jsonwire.AppendIntMember(dst, name, n) }
	units := func(name string, f float64) { dst = appendUnits(jsonwire.AppendMember(dst, name), f) }
	num("at", int64(q.At))
	num("generation", int64(x.Forest.GenerationAt(q.At)))
	num("columns", int64(d.Columns))
	num("columnsTotal", int64(d.AllColumns))
	units("width", d.Width)
	units("widthTotal", d.AllWidth)
	units("from", d.From)
	units("to", d.To)
	num("px", int64(q.Px))
	num("rows", int64(d.Rows))
	dst = append(dst, `,"kinds":["user","assistant","tool","context","checkpoint"],"fields":["row","x","w","seq","last","kind","tokens","count","flags"],"tiles":[`...)
	for i, t := range d.Tiles {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendInt(append(dst, '['), int64(t.Row))
		dst = appendUnits(append(dst, ','), t.X)
		dst = appendUnits(append(dst, ','), t.W)
		for _, n := range [...]int64{int64(t.Seq), int64(t.Last), int64(t.Kind), t.Tokens, int64(t.Count), int64(t.Flags)} {
			dst = jsonwire.AppendInt(append(dst, ','), n)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `],"noMarkers":`...)
	return append(strconv.AppendBool(dst, x.NoMarkers), '}')
}

// appendUnits writes a width with three digits behind the point.
func appendUnits(dst []byte, f float64) []byte {
	return strconv.AppendFloat(dst, math.Round(f*1000)/1000, 'f', -1, 64)
}

// NodePlace is a node of the strata, for keys.
type NodePlace struct {
	Schema
	Seq       outcrop.Seq   `json:"seq"`
	Row       int           `json:"row"`
	X         float64       `json:"x"`
	W         float64       `json:"w"`
	Kind      string        `json:"kind"`
	Tokens    int64         `json:"tokens"`
	What      Text          `json:"what"`
	Up        *outcrop.Seq  `json:"up"`
	Left      *outcrop.Seq  `json:"left"`
	Right     *outcrop.Seq  `json:"right"`
	Down      []outcrop.Seq `json:"down"`
	DownTotal int           `json:"downTotal"`
	Flags     int           `json:"flags"`
	Masked    int           `json:"masked"`
}

// NodeAt finds a node as it stands after the event at; ok is false when it was
// no node by then. What it says is left to the caller.
func NodeAt(x *folded.Index, seq, at outcrop.Seq) (p NodePlace, ok bool) {
	f := &x.Forest
	i := f.Find(seq)
	if i < 0 || seq > at {
		return p, false
	}
	n := f.Node(i)
	p = NodePlace{Schema: V1, Seq: seq, Kind: n.Kind.String(), Down: []outcrop.Seq{}, Flags: flagsOf(x, i)}
	x.Prices.Use(func(tokens []int64, w *strata.Widths) {
		p.Tokens = tokens[i]
		p.X, p.W = w.Span(n)
	})
	_, p.Row = f.Root(i, at)
	for _, k := range f.Kids(i) {
		if p.DownTotal++; p.DownTotal <= mostSeqs {
			p.Down = append(p.Down, f.Node(int(k)).Seq)
		}
	}
	// Neighbours share a border, a row and who covers them.
	up := f.Up(i, at)
	beside := func(column int) *outcrop.Seq {
		if column < 0 || column >= f.ColumnsAt(at) {
			return nil
		}
		for k := f.Column(column); k >= 0; k = f.Up(k, at) {
			if f.Up(k, at) == up && k != i {
				return pointer(f.Node(k).Seq)
			}
		}
		return nil
	}
	p.Left, p.Right = beside(int(n.A)-1), beside(int(n.B))
	if up >= 0 {
		p.Up = pointer(f.Node(up).Seq)
	}
	return p, true
}

func flagsOf(x *folded.Index, i int) int {
	n, flags := x.Forest.Node(i), 0
	if n.Rewind {
		flags |= strata.FlagRewind
	}
	if x.Pinned(n.Seq) {
		flags |= strata.FlagPinned
	}
	if len(x.Forest.Kids(i)) > 0 {
		flags |= strata.FlagCovers
	}
	return flags
}

// TableRow is a node of the surface in words.
type TableRow struct {
	Seq    outcrop.Seq `json:"seq"`
	Kind   string      `json:"kind"`
	Tokens int64       `json:"tokens"`
	What   Text        `json:"what"`
	Covers int         `json:"covers"`
	Under  int32       `json:"under"`
	First  outcrop.Seq `json:"first"`
	Last   outcrop.Seq `json:"last"`
	Flags  int         `json:"flags"`
}

// Table is a part of the surface in words.
type Table struct {
	Schema
	Total  int        `json:"total"`
	From   int        `json:"from"`
	Rows   []TableRow `json:"rows"`
	Masked int        `json:"masked"`
}

// TableAt makes the table without what is said.
func TableAt(x *folded.Index, at outcrop.Seq, from, limit int) Table {
	nodes := x.Forest.SurfaceAt(at)
	lo, hi := windowOf(from, limit, len(nodes))
	t := Table{Schema: V1, Total: len(nodes), From: lo, Rows: []TableRow{}}
	x.Prices.Use(func(tokens []int64, _ *strata.Widths) {
		for _, i := range nodes[lo:hi] {
			n := x.Forest.Node(int(i))
			t.Rows = append(t.Rows, TableRow{Seq: n.Seq, Kind: n.Kind.String(), Tokens: tokens[i], Covers: len(x.Forest.Kids(int(i))), Under: n.Under,
				First: x.Forest.Node(x.Forest.Column(int(n.A))).Seq, Last: x.Forest.Node(x.Forest.Column(int(n.B - 1))).Seq, Flags: flagsOf(x, int(i))})
		}
	})
	return t
}

// Say fills in what the nodes of a table say.
func (t *Table) Say(log outcrop.Log, v *Veil) {
	for i := range t.Rows {
		t.Rows[i].What = what(log.At(t.Rows[i].Seq), v)
	}
	t.Masked = v.Masked
}

// Band draws the list of events between two rows.
func Band(dst []byte, x *folded.Index, calls []folded.Call, from, to, px int) []byte {
	rows := len(x.Rows)
	if to <= from {
		to = rows
	}
	from, to = min(max(from, 0), rows), min(max(to, 0), rows)
	dst = append(dst, `{"schema":1`...)
	for _, m := range [...]struct {
		name string
		n    int
	}{{"from", from}, {"to", to}, {"rows", rows}, {"px", px}} {
		dst = jsonwire.AppendIntMember(dst, m.name, int64(m.n))
	}
	dst = append(dst, `,"lanes":["turns","messages","tools","history","other"],"markFields":["lane","row","seq","last","count","entries"],"marks":`...)
	pixel := max(float64(to-from)/float64(max(px, 1)), 1)
	dst = appendMarks(dst, x, from, to, pixel)
	dst = append(dst, `,"turns":`...)
	dst = appendTurns(dst, x, from, to, pixel)
	dst = jsonwire.AppendIntMember(dst, "turnsTotal", int64(len(x.TurnsOf)))
	dst = append(dst, `,"requestFields":["row","seq","tokens","window","break"],"requests":`...)
	dst = appendTokens(dst, x, calls, from, to, pixel)
	return append(dst, '}')
}

// appendMarks writes one mark a pixel and lane.
func appendMarks(dst []byte, x *folded.Index, from, to int, pixel float64) []byte {
	type mark struct {
		row, entries int
		last, count  outcrop.Seq
		px           int
	}
	var open [5]mark
	dst = append(dst, '[')
	some := false
	flush := func(lane int) {
		m := &open[lane]
		if m.entries == 0 {
			return
		}
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = append(dst, '[')
		for i, n := range [...]int64{int64(lane), int64(m.row), int64(x.Rows[m.row].Seq), int64(m.last), int64(m.count), int64(m.entries)} {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendInt(dst, n)
		}
		dst = append(dst, ']')
		*m = mark{}
	}
	for i := from; i < to; i++ {
		lane := int(x.Rows[i].Lane)
		px := int(float64(i-from) / pixel)
		if open[lane].entries > 0 && open[lane].px != px {
			flush(lane)
		}
		m := &open[lane]
		if m.entries == 0 {
			m.row, m.px = i, px
		}
		last := x.LastOf(i)
		m.last = last
		m.count += last - x.Rows[i].Seq + 1
		m.entries++
	}
	for lane := range open {
		flush(lane)
	}
	return append(dst, ']')
}

func appendTurns(dst []byte, x *folded.Index, from, to int, pixel float64) []byte {
	dst = append(dst, '[')
	lastPx, some := -1, false
	for _, t := range x.TurnsOf {
		if t.Row < from || t.Row >= to {
			continue
		}
		px := int(float64(t.Row-from) / pixel)
		if px == lastPx {
			continue
		}
		lastPx = px
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = append(dst, '{')
		for _, m := range [...]struct {
			name string
			n    int64
		}{{"turn", int64(t.Turn)}, {"row", int64(t.Row)}, {"seq", int64(t.Seq)}, {"column", int64(t.Column)}, {"endRow", int64(t.EndRow)}, {"endSeq", int64(t.EndSeq)}} {
			if m.n < 0 {
				dst = jsonwire.AppendRawMember(dst, m.name, []byte("null"))
				continue
			}
			dst = jsonwire.AppendIntMember(dst, m.name, m.n)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// appendTokens writes the token line: of the requests in one pixel the largest.
func appendTokens(dst []byte, x *folded.Index, calls []folded.Call, from, to int, pixel float64) []byte {
	type point struct {
		row            int
		seq            outcrop.Seq
		tokens         int64
		window, breaks int64
	}
	var points []point
	lastPx := -1
	for i := range calls {
		c := &calls[i]
		row := x.RowOf(c.Prefix)
		if row < from || row >= to || row < 0 {
			continue
		}
		p := point{row: row, seq: c.Prefix, tokens: c.Prompt, window: c.Window}
		if c.Break != nil {
			p.breaks = 1
		}
		px := int(float64(row-from) / pixel)
		if k := len(points); px == lastPx && k > 0 {
			p.breaks |= points[k-1].breaks
			if p.tokens <= points[k-1].tokens {
				points[k-1].breaks = p.breaks
				continue
			}
			points[k-1] = p
			continue
		}
		lastPx = px
		points = append(points, p)
	}
	dst = append(dst, '[')
	for i, p := range points {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendInt(append(dst, '['), int64(p.row))
		dst = jsonwire.AppendInt(append(dst, ','), int64(p.seq))
		for _, n := range [...]int64{p.tokens, p.window} {
			if dst = append(dst, ','); n < 0 || n == 0 {
				dst = append(dst, "null"...)
				continue
			}
			dst = jsonwire.AppendInt(dst, n)
		}
		dst = append(jsonwire.AppendInt(append(dst, ','), p.breaks), ']')
	}
	return append(dst, ']')
}

// Spot places an event in both bands.
type Spot struct {
	Schema
	Seq     outcrop.Seq `json:"seq"`
	Row     int         `json:"row"`
	Column  *int32      `json:"column"`
	Columns int         `json:"columns"`
}

// SpotOf places an event.
func SpotOf(x *folded.Index, seq outcrop.Seq) Spot {
	s := Spot{Schema: V1, Seq: seq, Row: x.RowOf(seq), Columns: x.Forest.ColumnsAt(seq)}
	if n := x.Forest.Find(seq); n >= 0 && len(x.Forest.Kids(n)) == 0 {
		s.Column = pointer(x.Forest.Node(n).A)
	}
	return s
}

// Say fills in what the node says.
func (p *NodePlace) Say(log outcrop.Log, v *Veil) {
	p.What = what(log.At(p.Seq), v)
	p.Masked = v.Masked
}
