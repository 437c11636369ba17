package outcrop

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// appendRow writes the run as a packed row of its own: for a run that is only
// a part of the row it came from.
func (r *Run) appendRow(dst []byte) []byte {
	dst = append(dst, `{"type":"`...)
	switch r.row.kind {
	case 't':
		dst = append(dst, rowText...)
	case 'r':
		dst = append(dst, rowReasoning...)
	default:
		dst = append(dst, rowToolCall...)
	}
	dst = append(dst, `","seq0":`...)
	dst = jsonwire.AppendInt(dst, int64(r.First))
	dst = append(dst, `,"time0":`...)
	dst = jsonwire.AppendInt(dst, r.headTime())
	dst = append(append(dst, `,"data":{"turn":`...), r.row.turn...)
	dst = append(append(dst, `,"step":`...), r.row.step...)
	dst = append(append(dst, `,"index":`...), r.row.index...)
	dst = append(dst, `,"dt":[`...)
	last := int64(0)
	r.each(func(i int, time int64, _ []byte) bool {
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
	if r.row.kind == 'c' {
		name = `,"args":[`
		dst = append(append(dst, `,"id":`...), r.row.id...)
		if r.row.name != nil {
			dst = append(append(dst, `,"name":`...), r.row.name...)
		}
	}
	dst = append(dst, name...)
	r.each(func(i int, _ int64, member []byte) bool {
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
