package doctor

import (
	"bytes"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// maxLine is the longest line that is looked into; a longer one counts as
// unreadable, so that memory stays bounded.
const maxLine = 256 << 20

// dshLines is dsh's line scanner: which lines count, where a torn tail begins,
// and when damage is fatal. It sees the text behind the header line.
//
// The first line that is no JSON, no good row or out of sequence is the issue.
// From then on nothing counts, but lines are still decoded: a turn/end among
// them, or in the line at issue, makes the issue fatal. Without one,
// everything from the issue on is a torn tail.
type dshLines struct {
	events    int64  // events that count, and so the seq expected next
	committed int64  // bytes up to the end of the last line that counts
	fed       int64  // bytes seen
	issue     string // class of the first issue
	fatal     string // class of the refusal; the scan is over

	rest []byte // an unfinished line
	long bool   // the unfinished line is longer than maxLine
}

// write takes the next bytes of text, which may end anywhere.
func (s *dshLines) write(p []byte) {
	for len(p) > 0 && s.fatal == "" {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			s.fed += int64(len(p))
			if s.long = s.long || len(s.rest)+len(p) > maxLine; s.long {
				s.rest = nil
			} else {
				s.rest = append(s.rest, p...)
			}
			return
		}
		line := p[:n]
		if len(s.rest) > 0 {
			s.rest = append(s.rest, line...)
			line = s.rest
		}
		s.fed += int64(n) + 1
		s.line(line, s.long)
		s.rest, s.long = s.rest[:0], false
		p = p[n+1:]
	}
}

// line judges one line that ended in a newline.
func (s *dshLines) line(line []byte, long bool) {
	l := readDSHLine(line)
	switch {
	case long:
		l = dshLine{kind: notJSON}
	case l.kind == tooDeep:
		// dsh reads any depth. What stands in the line is not known here; it
		// is taken for the event that belongs in its place.
		l = dshLine{kind: isEvent, seq: s.events, count: 1}
	}
	if l.kind == isNull {
		// Reading a member of null is a type error whatever came before.
		s.fatal = "internal-type-error"
		return
	}
	if s.issue == "" {
		switch {
		case l.kind == notJSON:
			s.issue = "file-event-json"
			return
		case l.kind != isEvent || l.seq != s.events:
			s.issue = "file-seq-gap"
		default:
			s.events += l.count
			s.committed = s.fed
			return
		}
	}
	if l.turnEnd {
		s.fatal = s.issue
	}
}

type dshLineKind uint8

const (
	isEvent dshLineKind = iota // an object whose seq is a number, or a good row
	notJSON                    // no JSON, or a row out of shape
	isNull
	isOther // JSON that cannot have the seq that is expected
	tooDeep
)

type dshLine struct {
	kind    dshLineKind
	seq     int64
	count   int64 // events that the line stands for
	turnEnd bool
}

// readDSHLine reads of a line what the scanner looks at.
func readDSHLine(line []byte) dshLine {
	if err := jsonwire.Valid(line); err != nil {
		if errors.Is(err, jsonwire.ErrDepth) {
			return dshLine{kind: tooDeep}
		}
		return dshLine{kind: notJSON}
	}
	switch jsonwire.Kind(line) {
	case 'n':
		return dshLine{kind: isNull}
	case '{':
	default:
		return dshLine{kind: isOther}
	}
	if outcrop.IsRow(line) {
		r, err := outcrop.DecodeRun(line)
		if err != nil {
			return dshLine{kind: notJSON}
		}
		return dshLine{kind: isEvent, seq: int64(r.First), count: int64(r.Len)}
	}
	l := dshLine{kind: isOther, count: 1}
	for k, v := range jsonwire.Members(line) {
		switch {
		case jsonwire.KeyIs(k, "type"):
			l.turnEnd = jsonwire.TextIs(v, string(outcrop.TypeTurnEnd))
		case jsonwire.KeyIs(k, "seq"):
			n, ok := jsonwire.Int(v)
			l.kind, l.seq = isOther, n
			if ok {
				l.kind = isEvent
			}
		}
	}
	return l
}
