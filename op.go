package outcrop

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// SurfaceOp says how an event enters the surface. The zero value means that it
// does not.
type SurfaceOp struct {
	kind       opKind
	start, end Seq
}

type opKind uint8

const (
	opNone opKind = iota
	opAppend
	opReplace
	opBad        // present, but neither of the two forms
	opBadReplace // an object, but not exactly {op:"replace",start,end}
)

// Tail appends the event at the end of the surface.
var Tail = SurfaceOp{kind: opAppend}

// Replace puts the event in the place of the surface nodes from start to end,
// both included. Both must be on the surface, start not behind end; they are
// compared by position, so start may be the larger seq.
func Replace(start, end Seq) SurfaceOp { return SurfaceOp{opReplace, start, end} }

// IsZero reports whether the event does not enter the surface.
func (o SurfaceOp) IsZero() bool { return o.kind == opNone }

// IsAppend reports whether the op appends at the tail.
func (o SurfaceOp) IsAppend() bool { return o.kind == opAppend }

// Range returns the replaced range; ok is false when the op is no replace.
func (o SurfaceOp) Range() (start, end Seq, ok bool) {
	return o.start, o.end, o.kind == opReplace
}

// appendJSON appends the op as format version 0 writes it.
func (o SurfaceOp) appendJSON(dst []byte) []byte {
	if o.kind != opReplace {
		return append(dst, `"append"`...)
	}
	dst = append(dst, `{"op":"replace","start":`...)
	dst = jsonwire.AppendInt(dst, int64(o.start))
	dst = append(dst, `,"end":`...)
	dst = jsonwire.AppendInt(dst, int64(o.end))
	return append(dst, '}')
}

// parseOp reads a surfaceOp value.
func parseOp(v []byte) SurfaceOp {
	switch jsonwire.Kind(v) {
	case '"':
		if jsonwire.TextIs(v, "append") {
			return Tail
		}
	case '{':
		op := SurfaceOp{kind: opReplace}
		var seen uint8
		for k, m := range jsonwire.Members(v) {
			var bit uint8
			var ok bool
			var n int64
			switch {
			case jsonwire.KeyIs(k, "op"):
				bit, ok = 1, jsonwire.TextIs(m, "replace")
			case jsonwire.KeyIs(k, "start"):
				n, ok = jsonwire.Int(m)
				bit, ok, op.start = 2, ok && n >= 0 && !jsonwire.IsNegativeZero(m), Seq(n)
			case jsonwire.KeyIs(k, "end"):
				n, ok = jsonwire.Int(m)
				bit, ok, op.end = 4, ok && n >= 0 && !jsonwire.IsNegativeZero(m), Seq(n)
			}
			if !ok {
				return SurfaceOp{kind: opBadReplace}
			}
			seen |= bit
		}
		if seen == 7 {
			return op
		}
		return SurfaceOp{kind: opBadReplace}
	}
	return SurfaceOp{kind: opBad}
}
