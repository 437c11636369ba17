package dsh

import (
	"bytes"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// maxLine is the longest line that is looked into; a longer one counts as
// unreadable. One of more than keptLine is read piece by piece, unless it is a
// row, so that a line costs little memory.
const (
	maxLine  = 256 << 20
	keptLine = 4 << 20
)

// scanner is dsh's line scanner: which lines count, where a torn tail begins,
// and when damage is fatal. It sees the text behind the header line.
//
// The first line that is no JSON, no good row or out of sequence is the issue.
// From then on nothing counts, but lines are still decoded: a turn/end among
// them, or in the line at issue, makes the issue fatal. Without one,
// everything from the issue on is a torn tail.
type scanner struct {
	events    int64  // events that count, and so the seq expected next
	committed int64  // bytes up to the end of the last line that counts
	fed       int64  // bytes seen
	issue     string // class of the first issue
	fatal     string // class of the refusal; the scan is over

	// The line that goes on in the next bytes.
	rest []byte    // what was kept of it
	size int       // its bytes so far
	long *longLine // reads what is not kept; nil for a line that is kept
}

// write takes the next bytes of text, which may end anywhere. The error is
// errFatal, when nothing behind them counts any more.
func (s *scanner) write(p []byte) error {
	for len(p) > 0 && s.fatal == "" {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			s.fed += int64(len(p))
			s.hold(p)
			return nil
		}
		line := p[:n]
		s.fed += int64(n) + 1
		switch {
		case s.size == 0:
			s.line(readLine(line))
		default:
			s.hold(line)
			s.line(s.held())
		}
		if s.size = 0; cap(s.rest) > keptLine {
			s.rest = nil
		}
		s.rest, s.long = s.rest[:0], nil
		p = p[n+1:]
	}
	if s.fatal != "" {
		return errFatal
	}
	return nil
}

// hold takes a part of the line that goes on.
func (s *scanner) hold(p []byte) {
	if s.size += len(p); s.size > maxLine {
		s.rest, s.long = nil, nil
		return
	}
	if s.long == nil && s.size > keptLine && !outcrop.IsRow(s.rest[:min(len(s.rest), 64)]) {
		s.long = &longLine{}
		s.long.write(s.rest)
		s.rest = nil
	}
	if s.long != nil {
		s.long.write(p)
		return
	}
	s.rest = append(s.rest, p...)
}

// held is the line that was held, when all of it was.
func (s *scanner) held() lineInfo {
	switch {
	case s.size > maxLine:
		return lineInfo{kind: notJSON}
	case s.long != nil:
		return s.long.end()
	}
	return readLine(s.rest)
}

// line judges one line that ended in a newline.
func (s *scanner) line(l lineInfo) {
	if l.kind == tooDeep {
		// dsh reads any depth. What stands in the line is not known here; it
		// is taken for the event that belongs in its place.
		l = lineInfo{kind: isEvent, seq: s.events, count: 1}
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

type lineKind uint8

const (
	isEvent lineKind = iota // an object whose seq is a number, or a good row
	notJSON                 // no JSON, or a row out of shape
	isNull
	isOther // JSON that cannot have the seq that is expected
	tooDeep
)

type lineInfo struct {
	kind    lineKind
	seq     int64
	count   int64 // events that the line stands for
	turnEnd bool
}

// readLine reads of a line what the scanner looks at.
func readLine(line []byte) lineInfo {
	if err := jsonwire.Valid(line); err != nil {
		if errors.Is(err, jsonwire.ErrDepth) {
			return lineInfo{kind: tooDeep}
		}
		return lineInfo{kind: notJSON}
	}
	switch jsonwire.Kind(line) {
	case 'n':
		return lineInfo{kind: isNull}
	case '{':
	default:
		return lineInfo{kind: isOther}
	}
	if outcrop.IsRow(line) {
		r, err := outcrop.DecodeRun(line)
		if err != nil {
			return lineInfo{kind: notJSON}
		}
		return lineInfo{kind: isEvent, seq: int64(r.First), count: int64(r.Len)}
	}
	l := lineInfo{kind: isOther, count: 1}
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
