package stream

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

// record is an entry of the event list with what it changes.
type record struct {
	facts.Entry
	Durable    bool          `json:"durable"`
	Generation int           `json:"generation"`
	Nodes      int           `json:"nodes"`
	Items      int           `json:"items"`
	Appended   int           `json:"appended"`
	Item       *facts.Item   `json:"item"`
	FoldsFrom  *int          `json:"foldsFrom"`
	Shadowed   []outcrop.Seq `json:"shadowed"`
}

// batch stands for records that are not sent one by one.
type batch struct {
	First      outcrop.Seq `json:"first"`
	Last       outcrop.Seq `json:"last"`
	Rows       int         `json:"rows"`
	Items      int         `json:"items"`
	Appended   int         `json:"appended"`
	Nodes      int         `json:"nodes"`
	Generation int         `json:"generation"`
	Durable    bool        `json:"durable"`
	FoldsFrom  int         `json:"foldsFrom"`
}

// records are the events from first to last, as parts of a frame: one by one, or
// as a batch when they are more rows than single.
func (p *pump) records(first, last, durable outcrop.Seq, single int, veil *facts.Veil) []part {
	type seen struct {
		row      facts.Row
		rec      record
		place    *facts.Place
		mark     Mark
		shadowed []outcrop.Seq
	}
	var list []seen
	var many *batch
	var end Mark
	var log outcrop.Log
	p.s.Read(func(x *folded.Index, l outcrop.Log) {
		log = l
		last = min(last, x.Len()-1)
		end = MarkOf(p.id, x, l, last)
		from, to := x.RowOf(first), x.RowOf(last)
		if to-from >= single {
			many = &batch{First: first, Last: last, Rows: len(x.Rows), Items: len(x.Visible), Appended: x.Forest.Columns(),
				Nodes: len(x.Forest.Surface()), Generation: x.Forest.Generation(), Durable: last <= durable, FoldsFrom: facts.FirstChanged(x, first)}
			return
		}
		for i := from; i <= to; i++ {
			c := seen{row: facts.RowAt(x, x.Rows[i].Seq)}
			seq := c.row.First()
			c.mark = MarkOf(p.id, x, l, min(c.row.Last(), last))
			if place, ok := facts.PlaceOf(x, seq, false); ok {
				c.place = &place
			}
			var folds *int
			if c.shadowed, folds = facts.EffectOf(x, seq); folds != nil {
				c.place = nil
			}
			c.rec = record{Durable: c.row.Last() <= durable, Generation: x.GenerationAt(seq), Nodes: len(x.Forest.Surface()),
				Items: len(x.Visible), Appended: x.Forest.Columns(), FoldsFrom: folds, Shadowed: c.shadowed}
			list = append(list, c)
		}
	})
	if many != nil {
		b, err := jsonwire.Marshal(many)
		if err != nil {
			return nil
		}
		return []part{{last: end.seq, batch: true, b: Event("batch", end.String(), b)}}
	}
	var parts []part
	reader := facts.Reader{Log: log, Veil: veil, Price: p.set.o.Price}
	for _, c := range list {
		c.rec.Entry = facts.EntryOf(log, c.row, false, veil)
		if c.place != nil {
			it := reader.Items([]facts.Place{*c.place})[0]
			c.rec.Item = &it
		}
		b, err := jsonwire.Marshal(c.rec)
		if err != nil {
			p.set.o.Logger.Error("a record cannot be written as JSON", "session", p.id, "err", err)
			continue
		}
		parts = append(parts, part{last: c.mark.seq, b: Event("record", c.mark.String(), b)})
	}
	return parts
}

// Event is one event of a stream. The data has no newline in it.
func Event(name, id string, data ...[]byte) []byte {
	var b []byte
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	for _, d := range data {
		b = append(b, d...)
	}
	return append(b, "\n\n"...)
}
