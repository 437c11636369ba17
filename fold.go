package outcrop

import (
	"iter"
	"slices"
)

// Fold is the result of a detached fold over a log: the surface and every
// replacement on the way to it. It shares no memory with a session.
type Fold struct {
	Nodes        []Seq
	Generation   int
	Replacements []Replacement
}

// Replacement is one committed replace.
type Replacement struct {
	Seq        Seq // the event that replaced
	Start, End Seq
	Shadowed   []Seq // what it took the place of, in model order
}

// folder is the detached fold, one record at a time.
type folder struct {
	Fold
	p       planner
	next    Seq
	results [][]byte // data of the tool/result at each position, nil for other nodes
}

// FoldSurface folds the surface from records with no session and no memory of
// its own kept: for checks and for reconstruction. It applies the same
// transitions as a live session and judges every event by the rules of the
// surface (seq, marker, op, endpoints, sources, tool rewrites), not its shape.
// On an error the fold of the events before it is returned too.
//
// It costs O(1) for an event outside the surface, a run counts once.
func FoldSurface(records iter.Seq[Record]) (Fold, error) {
	var f folder
	for r := range records {
		if err := f.add(&r); err != nil {
			return f.Fold, err
		}
	}
	return f.Fold, nil
}

func (f *folder) add(r *Record) error {
	if r.Seq != f.next {
		return seqGap(r.Seq, f.next)
	}
	if r.Run != nil {
		f.next += Seq(r.Run.Len)
		return nil
	}
	ev := &r.Event
	cls := ev.class()
	if !cls.surface() && ev.Op.kind == opNone && ev.Sources.text == nil {
		f.next++
		return nil
	}
	pl, err := f.p.plan(f.Nodes, ev, func(pos int) ([]byte, bool) {
		return f.results[pos], f.results[pos] != nil
	})
	if err != nil {
		return err
	}
	f.next++
	var data []byte
	if cls == classResult {
		data = ev.Data
	}
	switch pl.kind {
	case opAppend:
		f.Nodes = append(f.Nodes, ev.Seq)
		f.results = append(f.results, data)
	case opReplace:
		f.Replacements = append(f.Replacements, Replacement{
			Seq: ev.Seq, Start: ev.Op.start, End: ev.Op.end,
			Shadowed: slices.Clone(f.Nodes[pl.at : pl.at+pl.n]),
		})
		f.Generation++
		f.Nodes[pl.at], f.results[pl.at] = ev.Seq, data
		f.Nodes = slices.Delete(f.Nodes, pl.at+1, pl.at+pl.n)
		f.results = slices.Delete(f.results, pl.at+1, pl.at+pl.n)
	}
	return nil
}

func seqGap(got, want Seq) *Error {
	e := refuse("SEQ_GAP", want, "")
	e.Msg = "seq must be " + itoa(int64(want)) + ", not " + itoa(int64(got))
	return e
}

// SurfaceAt is the surface as it was after the event seq; -1 is before all
// events. The log must be one that admission passed.
func SurfaceAt(log Log, seq Seq) (Fold, error) {
	if d, ok := log.(*logData); ok {
		return foldEntries(d.prefix(seq + 1))
	}
	return FoldSurface(Prefix(log, int(seq)+1).Records(0))
}

// foldEntries is FoldSurface over a log of this package: what does not touch
// the surface is passed over without a view being made of it.
func foldEntries(d *logData) (Fold, error) {
	var f folder
	var r Record
	for c, left := 0, d.entries; left > 0; c, left = c+1, left-chunkLen {
		ch := d.chunks[c]
		for k := range min(left, chunkLen) {
			e := &ch[k]
			if e.flags&(flagAppend|flagReplace|flagSources) == 0 && !e.typ.surface() {
				continue
			}
			f.next = d.firsts[c] + Seq(e.delta)
			if f.next >= d.len {
				return f.Fold, nil
			}
			d.fill(&r.Event, e, f.next)
			if err := f.add(&r); err != nil {
				return f.Fold, err
			}
		}
	}
	return f.Fold, nil
}
