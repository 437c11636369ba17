package formats

import (
	"bytes"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// plain reads what the lines of formats 2 to 4 spell in another way than format
// 0: ranges in sourceEventSeqs and, from 3 on, the ends of a replace.
func (l *Lower) plain(e outcrop.Event) (outcrop.Event, *outcrop.Error) {
	src, op := e.Sources, e.Op
	if HasRanges(src) {
		var err *outcrop.Error
		if src, err = Flat(&e, &l.expand); err != nil {
			return e, err
		}
	}
	if l.format >= 3 && !op.IsZero() && !op.IsAppend() {
		var why string
		if op, why = replaceOf(get(e.Line(), "surfaceOp")); why != "" {
			return e, refuse("FORMAT_MARKER", &e, why)
		}
	}
	return e.Recast(e.Type, e.Seq, e.Data, src, op), nil
}

// replaceOf reads {"op":"replace","startSeq":S,"endSeq":E}. The names of format 0
// may stand there too, with the same numbers.
func replaceOf(v []byte) (op outcrop.SurfaceOp, why string) {
	const want = `a surfaceOp is "append" or {"op":"replace","startSeq":…,"endSeq":…}`
	if jsonwire.Kind(v) != '{' {
		return op, want
	}
	seq := func(name string) (outcrop.Seq, bool, bool) {
		m := jsonwire.Get(v, name)
		if m == nil {
			return 0, false, true
		}
		n, ok := jsonwire.Int(m)
		return outcrop.Seq(n), true, ok && n >= 0 && !jsonwire.IsNegativeZero(m)
	}
	for k := range jsonwire.Members(v) {
		switch jsonwire.Key(k) {
		case "op", "startSeq", "endSeq", "start", "end":
		default:
			return op, want
		}
	}
	start, hasStart, ok1 := seq("startSeq")
	end, hasEnd, ok2 := seq("endSeq")
	oldStart, hasOldStart, ok3 := seq("start")
	oldEnd, hasOldEnd, ok4 := seq("end")
	switch {
	case !jsonwire.TextIs(jsonwire.Get(v, "op"), "replace") || !ok1 || !ok2 || !ok3 || !ok4:
		return op, want
	case !hasStart || !hasEnd:
		if hasOldStart || hasOldEnd {
			return op, "surfaceOp names its ends start and end, as formats 0 to 2 do; here they are startSeq and endSeq"
		}
		return op, want
	case hasOldStart && oldStart != start || hasOldEnd && oldEnd != end:
		return op, "surfaceOp says start and end, and startSeq and endSeq with other numbers"
	}
	return outcrop.Replace(start, end), ""
}

// HasRanges reports whether sources have an element that is a list.
func HasRanges(s outcrop.Sources) bool {
	text := s.JSON()
	return len(text) > 1 && bytes.IndexByte(text[1:], '[') >= 0 && jsonwire.Kind(text) == '['
}

// Flat writes the ranges [first, last] in the sources of an event out, so that
// each seq stands there. budget is how many seqs ranges may still stand for;
// nothing is written out that it does not cover. The list is not judged further.
func Flat(e *outcrop.Event, budget *int) (outcrop.Sources, *outcrop.Error) {
	bad := func(msg string) (outcrop.Sources, *outcrop.Error) {
		return e.Sources, refuse("FORMAT_RANGE", e, "sourceEventSeqs "+msg)
	}
	var list []outcrop.Seq
	for v := range jsonwire.Elements(e.Sources.JSON()) {
		if jsonwire.Kind(v) != '[' {
			n, ok := jsonwire.Int(v)
			if !ok {
				return bad("has an element that is no seq")
			}
			list = append(list, outcrop.Seq(n))
			continue
		}
		var ends []int64
		for w := range jsonwire.Elements(v) {
			n, ok := jsonwire.Int(w)
			if !ok || n < 0 || len(ends) == 2 {
				return bad("has a list that is no range [first, last]")
			}
			ends = append(ends, n)
		}
		if len(ends) != 2 || ends[0] > ends[1] || ends[1] >= int64(e.Seq) {
			return bad("has a list that is no range [first, last] of earlier events")
		}
		n := ends[1] - ends[0] + 1
		if n > int64(*budget) {
			e := refuse("RECORD_TOO_BIG", e, "the ranges in sourceEventSeqs stand for more seqs than are read from one log")
			e.Hint = "the session can be read around this record, but not be continued"
			return outcrop.NoSources, e
		}
		*budget -= int(n)
		for seq := ends[0]; seq <= ends[1]; seq++ {
			list = append(list, outcrop.Seq(seq))
		}
	}
	return outcrop.SourcesOf(list...), nil
}
