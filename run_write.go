package outcrop

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// appendRow writes the run as a packed row of its own: for a run that is only
// a part of the row it came from.
func (r *Run) appendRow(dst []byte) []byte {
	s := r.spans()
	dst = append(dst, `{"type":"`...)
	dst = append(dst, r.kind.String()...)
	dst = append(dst, `","seq0":`...)
	dst = jsonwire.AppendInt(dst, int64(r.First))
	dst = append(dst, `,"time0":`...)
	dst = jsonwire.AppendInt(dst, r.headTime())
	dst = append(append(dst, `,"data":{"turn":`...), s.turn...)
	dst = append(append(dst, `,"step":`...), s.step...)
	dst = append(append(dst, `,"index":`...), s.index...)
	dst = append(dst, `,"dt":[`...)
	last := int64(0)
	r.each(&s, func(i int, time int64, _ []byte) bool {
		if i > 0 {
			if i > 1 {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendInt(dst, time-last)
		}
		last = time
		return true
	})
	dst = append(dst, ']')
	name := `,"texts":[`
	if r.kind == callRow {
		name = `,"args":[`
		dst = append(append(dst, `,"id":`...), s.id...)
		if s.name != nil {
			dst = append(append(dst, `,"name":`...), s.name...)
		}
	}
	dst = append(dst, name...)
	r.each(&s, func(i int, _ int64, member []byte) bool {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, member...)
		return true
	})
	return append(dst, "]}}"...)
}

// AppendLine appends the run as one line without its newline: the line it came
// with, or, for a part of a row, a row of its own.
func (r *Run) AppendLine(dst []byte) []byte {
	if line := r.Line(); line != nil {
		return append(dst, line...)
	}
	return r.appendRow(dst)
}
