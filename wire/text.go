package wire

import (
	"bytes"
	"iter"
	"strconv"

	"github.com/outcrop-dev/outcrop"
)

// Text yields the lines behind the header as they stand in the file, without
// their newlines: frames are decoded and their checksums compared, and nothing is
// made of a line. It is for who knows what the lines must be and looks whether
// they are that. A line is good until the next one. Any damage, a torn tail too,
// is an error, and the last thing that is yielded.
func (r *Reader) Text() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var s source = &plainSource{r: r.r, off: r.from, size: r.size}
		if r.enc == Zstd {
			s = &zstdSource{r: r.r, off: r.from, size: r.size, reuse: true}
		}
		var held []byte // the start of a line that goes on in the next piece
		s.run(func(p piece) bool {
			text := p.text
			for {
				i := bytes.IndexByte(text, '\n')
				if i < 0 {
					break
				}
				line := text[:i:i]
				if len(held) > 0 {
					held = append(held, line...)
					line = held
				}
				if !yield(line, nil) {
					return false
				}
				held, text = held[:0], text[i+1:]
			}
			held = append(held, text...)
			switch end := p.end; {
			case end == nil:
				return true
			case end.err != nil:
				yield(nil, end.err)
			case end.bad != nil:
				end.bad.Offset = end.off
				yield(nil, end.bad)
			case len(held) > 0:
				yield(nil, damage("LINE_NO_NEWLINE", "the last line has no newline"))
			}
			return false
		})
	}
}

// Plainly reports whether a record will be read back as what it is, once its text
// is: its line is known to be that of an event, it is the one with this seq, and
// its shape is none that a reader refuses. Of a packed row it says nothing.
func Plainly(r *outcrop.Record, seq outcrop.Seq) bool {
	e := &r.Event
	line := e.Line()
	if r.Run != nil || e.Seq != seq || !e.Sound() || len(line) > MaxLine {
		return false
	}
	// The members that the event was given may have been changed since.
	var room [80]byte
	head := append(append(room[:0], `{"type":"`...), e.Type...)
	head = append(strconv.AppendInt(append(head, `","seq":`...), int64(seq), 10), ',')
	if !bytes.HasPrefix(line, head) {
		return false
	}
	switch e.Type {
	case outcrop.TypeTurnStart:
		_, bad := turnStart(*e)
		return bad == nil
	case outcrop.TypeTurnEnd:
		_, bad := turnEnd(*e)
		return bad == nil
	case typeSteering:
		return false
	}
	return true
}
