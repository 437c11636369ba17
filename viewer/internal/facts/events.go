package facts

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/lineage"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

const (
	// MostEvents is the longest list of events.
	MostEvents = 1000
	cutRaw     = 64 << 10
	mostSeqs   = 1000
	mostOrigin = 500
)

// Row is a row of the event list, with what the index knows of it.
type Row struct {
	row       int
	seq, last outcrop.Seq
	lane      folded.Lane
}

// RowsOf finds rows by their place in the list.
func RowsOf(x *folded.Index, from, limit int) (list []Row, lo int) {
	lo, hi := windowOf(from, limit, len(x.Rows))
	for i := lo; i < hi; i++ {
		list = append(list, rowOf(x, i))
	}
	return list, lo
}

// RowAt finds the row of an event.
func RowAt(x *folded.Index, seq outcrop.Seq) Row { return rowOf(x, x.RowOf(seq)) }

func rowOf(x *folded.Index, i int) Row {
	return Row{i, x.Rows[i].Seq, x.LastOf(i), x.Rows[i].Lane}
}

// First is the first event of the row.
func (r Row) First() outcrop.Seq { return r.seq }

// Last is the last event of the row.
func (r Row) Last() outcrop.Seq { return r.last }

// Entry is an event of the list, or a run of chunks.
type Entry struct {
	Row       int         `json:"row"`
	Seq       outcrop.Seq `json:"seq"`
	Last      outcrop.Seq `json:"last"`
	Count     outcrop.Seq `json:"count"`
	Type      Text        `json:"type"`
	Lane      string      `json:"lane"`
	Time      int64       `json:"time"`
	Op        Op          `json:"op"`
	Sources   *int        `json:"sources"`
	Ignorable bool        `json:"ignorable"`
	What      Text        `json:"what"`
	Bytes     int         `json:"bytes"`
	Turn      *int64      `json:"turn"`
	Step      *int64      `json:"step"`
	Raw       *Text       `json:"raw,omitzero"`
	Cut       bool        `json:"cut,omitzero"`
}

// Events is a part of the event list.
type Events struct {
	Schema
	Row    int          `json:"row"`
	Rows   int          `json:"rows"`
	Next   *outcrop.Seq `json:"next"`
	Masked int          `json:"masked"`
	Events []Entry      `json:"events"`
}

// Entries makes the entries of rows.
func Entries(log outcrop.Log, rows []Row, raw bool, v *Veil) []Entry {
	out := make([]Entry, 0, len(rows))
	for _, r := range rows {
		out = append(out, EntryOf(log, r, raw, v))
	}
	return out
}

// EntryOf makes the entry of a row.
func EntryOf(log outcrop.Log, r Row, raw bool, v *Veil) Entry {
	ev := log.At(r.seq)
	e := Entry{Row: r.row, Seq: r.seq, Last: r.last, Count: r.last - r.seq + 1, Type: Text(ev.Type), Lane: r.lane.String(), Time: ev.Time,
		Op: opOf(ev), Ignorable: ev.Ignorable, What: what(ev, v), Bytes: len(ev.Data)}
	if ev.Sources.Known() {
		e.Sources = pointer(len(ev.Sources.Seqs()))
	}
	e.Turn, e.Step = turnStep(ev)
	if ev.Type == outcrop.TypeAssistantChunk && e.Count > 1 {
		e.What = v.Line(beginning(log, r))
	}
	if raw {
		t, _, cut := v.Part(ev.AppendJSON(nil), cutRaw)
		e.Raw, e.Cut = &t, cut
	}
	return e
}

// beginning is how the text of a run of chunks begins.
func beginning(log outcrop.Log, r Row) string {
	const enough = 200
	kind, said := "", []byte{}
	for seq := r.seq; seq <= r.last && len(said) < enough && seq < r.seq+enough; seq++ {
		chunk := jsonwire.Get(log.At(seq).Data, "chunk")
		for _, name := range [...]string{"text", "argumentsDelta"} {
			if s, ok := jsonwire.Text(jsonwire.Get(chunk, name)); ok {
				if kind == "" {
					kind = text(chunk, "type")
				}
				said = append(said, s...)
			}
		}
	}
	if kind == "" {
		return brief.Event(log.At(r.seq))
	}
	return kind + " " + string(said)
}

func turnStep(ev outcrop.Event) (turn, step *int64) {
	if ev.Type == outcrop.TypeUserMessage || ev.Type == outcrop.TypeContextMessage {
		return nil, nil
	}
	if n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "turn")); ok {
		turn = &n
	}
	if n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "step")); ok {
		step = &n
	}
	return turn, step
}

// Event is one event with what it was made from and what became of it.
type Event struct {
	Schema
	Seq          outcrop.Seq   `json:"seq"`
	Type         Text          `json:"type"`
	Time         int64         `json:"time"`
	Lane         string        `json:"lane"`
	Op           Op            `json:"op"`
	Ignorable    bool          `json:"ignorable"`
	Raw          Text          `json:"raw"`
	Exact        bool          `json:"exact"`
	Cut          bool          `json:"cut,omitzero"`
	Bytes        int           `json:"bytes"`
	What         Text          `json:"what"`
	Kind         *string       `json:"kind"`
	Tokens       *int64        `json:"tokens"`
	Turn         *int64        `json:"turn"`
	Step         *int64        `json:"step"`
	Item         *Item         `json:"item"`
	State        string        `json:"state"`
	CoveredBy    []outcrop.Seq `json:"coveredBy"`
	Covers       []outcrop.Seq `json:"covers"`
	CoversTotal  int           `json:"coversTotal"`
	Sources      []outcrop.Seq `json:"sources"`
	SourcesTotal int           `json:"sourcesTotal"`
	Origins      []Origin      `json:"origins"`
	More         bool          `json:"more"`
	Row          int           `json:"row"`
	Masked       int           `json:"masked"`
}

// Origin is an event that another one was made from, or a run of chunks.
type Origin struct {
	First   outcrop.Seq   `json:"first"`
	Last    outcrop.Seq   `json:"last"`
	Type    Text          `json:"type"`
	Depth   int           `json:"depth"`
	Known   bool          `json:"known"`
	Again   bool          `json:"again,omitzero"`
	Sources []outcrop.Seq `json:"sources"`
}

// Around is what the index knows about one event.
type Around struct {
	row    Row
	place  *Place
	kind   *string
	up     []outcrop.Seq
	covers []outcrop.Seq
	state  string
}

// AroundOf finds an event in the index.
func AroundOf(x *folded.Index, seq outcrop.Seq) Around {
	a := Around{row: RowAt(x, seq), state: "log", up: []outcrop.Seq{}, covers: []outcrop.Seq{}}
	if p, ok := PlaceOf(x, seq, false); ok {
		a.place = &p
	}
	n := x.Forest.Find(seq)
	if n < 0 {
		return a
	}
	a.kind, a.state = pointer(x.Forest.Node(n).Kind.String()), "surface"
	for _, k := range x.Forest.Kids(n) {
		a.covers = append(a.covers, x.Forest.Node(int(k)).Seq)
	}
	for u := x.Forest.Up(n, x.Len()); u >= 0 && len(a.up) < mostSeqs; u = x.Forest.Up(u, x.Len()) {
		a.up, a.state = append(a.up, x.Forest.Node(u).Seq), "shadowed"
	}
	return a
}

// OneEvent shows an event.
func OneEvent(r Reader, seq outcrop.Seq, a Around) Event {
	ev := r.Log.At(seq)
	line := ev.AppendJSON(nil)
	e := Event{Schema: V1, Seq: seq, Type: Text(ev.Type), Time: ev.Time, Lane: a.row.lane.String(), Op: opOf(ev), Ignorable: ev.Ignorable,
		Bytes: len(line), What: what(ev, r.Veil), Kind: a.kind, State: a.state, CoveredBy: a.up, Row: a.row.row}
	e.Raw, e.Exact, e.Cut = r.Veil.Part(line, cutWhole)
	if a.kind != nil {
		e.Tokens = pointer(folded.Tokens(ev))
	}
	e.Turn, e.Step = turnStep(ev)
	if a.place != nil {
		e.Item = pointer(r.Item(*a.place))
	}
	e.CoversTotal, e.Covers = len(a.covers), a.covers[:min(len(a.covers), mostSeqs)]
	sources := ev.Sources.Seqs()
	e.SourcesTotal, e.Sources = len(sources), append([]outcrop.Seq{}, sources[:min(len(sources), mostSeqs)]...)
	e.Origins = []Origin{}
	for _, o := range lineage.Of(r.Log, outcrop.Fold{}, seq).Origins {
		if len(e.Origins) == mostOrigin {
			e.More = true
			break
		}
		if o.Sources == nil {
			o.Sources = []outcrop.Seq{}
		}
		e.Origins = append(e.Origins, Origin{o.First, o.Last, Text(o.Type), o.Depth, o.Known, o.Again, o.Sources[:min(len(o.Sources), mostSeqs)]})
	}
	return e
}
