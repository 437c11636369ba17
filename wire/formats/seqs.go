package formats

import (
	"sort"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// seqs tells where the events of one format stand in the next one. It keeps an
// entry for each stretch of events that move together.
type seqs struct {
	own   outcrop.Seq // of the event that comes next
	next  outcrop.Seq // that the next event passed on gets
	moves []move
}

// move says that events from one seq on stand from another on; an event that is
// gone has the place of the one behind it.
type move struct {
	from, to outcrop.Seq
	gone     bool
}

// begin takes the next event. Seqs that nothing was read for stay free.
func (s *seqs) begin(e *outcrop.Event) {
	if gap := e.Seq - s.own; gap > 0 {
		s.skip(gap)
	}
	s.own = e.Seq + 1
}

// skip passes n events that became nothing but keep their seqs.
func (s *seqs) skip(n outcrop.Seq) {
	s.note(move{from: s.own, to: s.next})
	s.own += n
	s.next += n
}

// place says that the event which began last stands at a seq.
func (s *seqs) place(at outcrop.Seq) { s.note(move{from: s.own - 1, to: at}) }

// drop says that the event which began last is gone.
func (s *seqs) drop() { s.note(move{from: s.own - 1, to: s.next, gone: true}) }

// free leaves the place of the event which began last empty.
func (s *seqs) free() { s.place(s.take()) }

// take gives out the next seq.
func (s *seqs) take() outcrop.Seq {
	s.next++
	return s.next - 1
}

func (s *seqs) note(m move) {
	if n := len(s.moves); n > 0 {
		last := s.moves[n-1]
		if last.gone && m.gone && m.to == last.to || !last.gone && !m.gone && m.to-last.to == m.from-last.from {
			return
		}
	}
	s.moves = append(s.moves, m)
}

// at is the last move at or before an event.
func (s *seqs) at(own outcrop.Seq) int {
	return sort.Search(len(s.moves), func(i int) bool { return s.moves[i].from > own }) - 1
}

// of is where an earlier event stands; false when it is gone, or not earlier.
func (s *seqs) of(own outcrop.Seq) (outcrop.Seq, bool) {
	i := s.at(own)
	if i < 0 || own >= s.own || s.moves[i].gone {
		return -1, false
	}
	return s.moves[i].to + own - s.moves[i].from, true
}

// earlier reports whether an event was added.
func (s *seqs) earlier(own outcrop.Seq) bool { return own >= 0 && own < s.own }

// near is where an earlier event stands, or where it would; another number stays
// what it is.
func (s *seqs) near(own outcrop.Seq) outcrop.Seq {
	i := s.at(own)
	switch {
	case i < 0 || own >= s.own:
		return own
	case s.moves[i].gone:
		return s.moves[i].to
	}
	return s.moves[i].to + own - s.moves[i].from
}

// back is the event from which the one at a seq was made.
func (s *seqs) back(at outcrop.Seq) outcrop.Seq {
	i := sort.Search(len(s.moves), func(i int) bool { return s.moves[i].to > at }) - 1
	for i >= 0 && s.moves[i].gone {
		i--
	}
	if i < 0 {
		if len(s.moves) == 0 {
			return at
		}
		return s.moves[0].from
	}
	own := s.moves[i].from + at - s.moves[i].to
	// What one event became besides itself stands before it.
	for _, m := range s.moves[i+1:] {
		if !m.gone {
			own = min(own, m.from)
			break
		}
	}
	return min(own, s.own-1)
}

// sources maps sources. Events that are gone are left out; a list that becomes
// empty by that is absent.
func (s *seqs) sources(e *outcrop.Event) (outcrop.Sources, *outcrop.Error) {
	src := e.Sources
	if !src.Known() || jsonwire.Kind(src.JSON()) != '[' {
		return src, nil
	}
	var list []outcrop.Seq
	given, moved := 0, false
	for v := range jsonwire.Elements(src.JSON()) {
		n, ok := jsonwire.Int(v)
		if !ok {
			return src, nil // admission names what is wrong with it
		}
		given++
		own := outcrop.Seq(n)
		if own >= e.Seq || !s.earlier(own) {
			return src, refuse("FORMAT_REFERENCE", e, "sourceEventSeqs names event "+itoa(own)+", which does not stand before this one")
		}
		to, ok := s.of(own)
		moved = moved || !ok || to != own
		if ok {
			list = append(list, to)
		}
	}
	switch {
	case !moved:
		return src, nil
	case given > 0 && len(list) == 0:
		return outcrop.NoSources, nil
	}
	return outcrop.SourcesOf(list...), nil
}

// op maps the ends of a replace.
func (s *seqs) op(e *outcrop.Event) (outcrop.SurfaceOp, *outcrop.Error) {
	start, end, ok := e.Op.Range()
	if !ok {
		return e.Op, nil
	}
	a, okA := s.of(start)
	b, okB := s.of(end)
	if bad := start; !okA || !okB {
		if okA {
			bad = end
		}
		return e.Op, refuse("FORMAT_REFERENCE", e, "surfaceOp names event "+itoa(bad)+", which does not stand on the surface")
	}
	if a == start && b == end {
		return e.Op, nil
	}
	return outcrop.Replace(a, b), nil
}

// pass renumbers an event with all that it names. What it becomes has the next
// seq.
func (s *seqs) pass(e outcrop.Event, t outcrop.Type, data []byte) (outcrop.Event, *outcrop.Error) {
	sources, err := s.sources(&e)
	if err != nil {
		return e, err
	}
	op, err := s.op(&e)
	if err != nil {
		return e, err
	}
	at := s.take()
	s.place(at)
	return e.Recast(t, at, s.data(t, data), sources, op), nil
}

func itoa(n outcrop.Seq) string { return string(jsonwire.AppendInt(nil, int64(n))) }
