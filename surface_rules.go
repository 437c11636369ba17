package outcrop

import (
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// plan is the effect that a candidate would have on the surface: nothing, one
// node at the tail, or one node in the place of nodes[at : at+n].
type plan struct {
	kind  opKind
	at, n int
}

// target gives the data of the event that stands at a position of the surface
// and whether it is a tool/result.
type target func(pos int) (data []byte, isResult bool)

// planner judges candidates by the rules of the surface. It holds scratch
// memory only.
type planner struct {
	seqs []Seq
}

// plan judges one event against a surface in the order of the rules: marker
// fits the type, op has exactly its members, endpoints on the surface and in
// order by position, sources, and the content-only rule for tool results. It
// changes nothing.
func (p *planner) plan(nodes []Seq, ev *Event, get target) (plan, *Error) {
	if !ev.class().surface() {
		if ev.Op.kind != opNone {
			return plan{}, refuse("SURFACE_NOT_ELIGIBLE_OP", ev.Seq, "type "+string(ev.Type)+" does not stand on the surface and cannot carry surfaceOp")
		}
		if ev.Sources.text != nil {
			return plan{}, refuse("SURFACE_NOT_ELIGIBLE_SOURCES", ev.Seq, "type "+string(ev.Type)+" does not stand on the surface and cannot carry sourceEventSeqs")
		}
		return plan{}, nil
	}
	pl := plan{kind: ev.Op.kind}
	switch ev.Op.kind {
	case opNone:
		return pl, refuse("SURFACE_MARKER_REQUIRED", ev.Seq, "type "+string(ev.Type)+" stands on the surface and needs a surfaceOp")
	case opBad:
		return pl, refuse("SURFACE_BAD_OP", ev.Seq, `surfaceOp is neither "append" nor a replace object`)
	case opBadReplace:
		return pl, refuse("SURFACE_BAD_REPLACE", ev.Seq, "a replace has exactly the members op, start and end, with seqs")
	case opReplace:
		start, end := ev.Op.start, ev.Op.end
		i := slices.Index(nodes, start)
		if i < 0 {
			return pl, refuse("SURFACE_START_MISSING", ev.Seq, fmt.Sprintf("start %d is not on the surface", start))
		}
		j := i
		if end != start {
			j = slices.Index(nodes, end)
		}
		if j < 0 {
			return pl, refuse("SURFACE_END_MISSING", ev.Seq, fmt.Sprintf("end %d is not on the surface", end))
		}
		if i > j {
			return pl, refuse("SURFACE_REVERSED", ev.Seq, fmt.Sprintf("start %d stands behind end %d on the surface", start, end))
		}
		pl.at, pl.n = i, j-i+1
	}
	if err := p.sources(nodes, ev, pl); err != nil {
		return pl, err
	}
	if pl.kind == opReplace && ev.class() == classResult {
		if pl.n != 1 {
			return pl, refuse("REWRITE_NOT_SINGLE", ev.Seq, fmt.Sprintf("a tool/result may replace one node, not %d", pl.n))
		}
		old, isResult := get(pl.at)
		if !isResult {
			return pl, refuse("REWRITE_NOT_RESULT", ev.Seq, fmt.Sprintf("node %d is no tool/result", nodes[pl.at]))
		}
		if !contentOnly(old, ev.Data) {
			return pl, refuse("REWRITE_NOT_CONTENT_ONLY", ev.Seq, "a tool/result replacement may change the content of its block and nothing else")
		}
	}
	return pl, nil
}

func (p *planner) sources(nodes []Seq, ev *Event, pl plan) *Error {
	text := ev.Sources.text
	if text == nil {
		if pl.kind == opReplace {
			return missing(ev.Seq, nodes[pl.at:pl.at+pl.n])
		}
		return nil
	}
	if text[0] != '[' {
		return refuse("SOURCES_NOT_ARRAY", ev.Seq, "sourceEventSeqs is not a list")
	}
	n, rising, ok, last := scanSeqs(text)
	if n == 0 {
		if ev.class() != classAssistant {
			return refuse("SOURCES_EMPTY", ev.Seq, "only an assistant/message may have an empty sourceEventSeqs")
		}
		if pl.kind == opReplace {
			return missing(ev.Seq, nodes[pl.at:pl.at+pl.n])
		}
		return nil
	}
	if !ok {
		return refuse("SOURCES_BAD_ELEMENT", ev.Seq, "sourceEventSeqs has an element that is no seq")
	}
	if rising && last < ev.Seq && pl.kind != opReplace {
		return nil // the common list: unique because it rises
	}
	p.seqs = p.seqs[:0]
	eachInt(text, func(n int64, _ bool) { p.seqs = append(p.seqs, Seq(n)) })
	// The first element that is not earlier is reported, so it is looked for
	// before the list is sorted.
	var late Seq = -1
	for _, s := range p.seqs {
		if s >= ev.Seq {
			late = s
			break
		}
	}
	if !rising {
		slices.Sort(p.seqs)
		for i := 1; i < len(p.seqs); i++ {
			if p.seqs[i] == p.seqs[i-1] {
				return refuse("SOURCES_DUPLICATE", ev.Seq, fmt.Sprintf("sourceEventSeqs names %d twice", p.seqs[i]))
			}
		}
	}
	if late >= 0 {
		return refuse("SOURCES_NOT_EARLIER", ev.Seq, fmt.Sprintf("source %d is not earlier than the event", late))
	}
	if pl.kind == opReplace {
		var gone []Seq
		for _, n := range nodes[pl.at : pl.at+pl.n] {
			if _, found := slices.BinarySearch(p.seqs, n); !found {
				gone = append(gone, n)
			}
		}
		if gone != nil {
			return missing(ev.Seq, gone)
		}
	}
	return nil
}

// scanSeqs looks over a list: how many elements, whether each is larger than
// the one before, whether all are seqs, and the last one.
func scanSeqs(text []byte) (n int, rising, ok bool, last Seq) {
	rising, ok, last = true, true, -1
	i := 1
	for i < len(text) {
		start, v := i, Seq(0)
		for i < len(text) && text[i]-'0' <= 9 && i-start < 15 {
			v = v*10 + Seq(text[i]-'0')
			i++
		}
		if i == start || i >= len(text) || text[i] != ',' && text[i] != ']' {
			break // not the plain form
		}
		n++
		if v <= last {
			rising = false
		}
		last = v
		if text[i] == ']' {
			return n, rising, true, last
		}
		i++
	}
	n, rising, last = 0, true, -1
	eachInt(text, func(v int64, isInt bool) {
		n++
		ok = ok && isInt && v >= 0
		rising = rising && Seq(v) > last
		last = Seq(v)
	})
	return n, rising, ok, last
}

func missing(seq Seq, gone []Seq) *Error {
	if len(gone) > 8 {
		return refuse("SOURCES_INCOMPLETE", seq, fmt.Sprintf("sourceEventSeqs must name every node that is replaced; missing %v and %d more", gone[:8], len(gone)-8))
	}
	return refuse("SOURCES_INCOMPLETE", seq, fmt.Sprintf("sourceEventSeqs must name every node that is replaced; missing %v", gone))
}

// contentOnly reports whether two datas of tool results are equal but for the
// content of their block. That there is one block is the business of the
// message's shape.
func contentOnly(old, new []byte) bool {
	return jsonwire.EqualExcept(old, new, "message", "content") &&
		jsonwire.EqualExcept(firstBlock(old), firstBlock(new), "content")
}

func firstBlock(data []byte) []byte {
	for b := range jsonwire.Elements(lastMember(lastMember(data, "message"), "content")) {
		return b
	}
	return nil
}
