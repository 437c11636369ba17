package wire

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// parser cuts text into lines and lines into records.
type parser struct {
	*Reader
	yield func(outcrop.Record, error) bool
	emit  func(outcrop.Record) bool // yield without an error, for later formats
	up    upgrader
	look  lookout

	// The line that begins or goes on at the next byte.
	lineNo   int
	textOff  int64
	frameOff int64 // the frame that it begins in
	frame    int64 // the frame of the next byte

	// What the line has in earlier pieces.
	held    [][]byte
	heldLen int
	dropped bool // it is longer than MaxLine, or no record: only its length counts

	ranged int // seqs that ranges may still stand for

	next  outcrop.Seq // seq that the next record must have
	loose bool        // a record was too big to be read, so the next seq is open

	// Where a cut can be made, and how many events lie behind it.
	good  int64
	since int

	damaged *outcrop.Error // the first damage
	where   Pos            // and its place
	lost    bool           // a turn/end lies at or behind it
}

// feed takes the next piece of text, decoded, and reports whether more is
// wanted.
func (p *parser) feed(j *job) bool {
	text, b := j.text, j.borders
	pos := 0
	for k := -1; ; k++ {
		for len(b) > 0 && b[0].at <= pos {
			p.border(b[0].off, b[0].at == pos && p.heldLen == 0)
			b = b[1:]
		}
		if k >= 0 && k < len(j.lines) {
			l := &j.lines[k]
			if !p.take(text[pos:l.end:l.end], l.end-pos, &l.decoded) {
				return false
			}
			p.ended(l.end - pos)
			pos = l.end + 1
			continue
		}
		// The first line may have begun in an earlier piece; behind the others
		// are those that decoding left.
		i := bytes.IndexByte(text[pos:], '\n')
		if i < 0 {
			break
		}
		line, size := text[pos:pos+i:pos+i], p.heldLen+i
		big := p.dropped || size > MaxLine
		if p.heldLen > 0 {
			line = p.join(line, big)
		}
		var d decoded
		if d.decode(line, big); !p.take(line, size, &d) {
			return false
		}
		p.ended(size)
		pos += i + 1
	}
	if pos < len(text) {
		p.hold(text[pos:])
	}
	for ; len(b) > 0; b = b[1:] {
		p.border(b[0].off, b[0].at == len(text) && p.heldLen == 0)
	}
	if j.end != nil {
		p.finish(j.end)
		return false
	}
	return true
}

// ended moves behind a line of size bytes and its newline.
func (p *parser) ended(size int) {
	p.lineNo++
	p.textOff += int64(size) + 1
	p.frameOff = p.frame
	if p.enc == Plain && p.damaged == nil {
		p.good = p.textOff
	}
}

// border notes that a frame starts; clean when a line starts there too.
func (p *parser) border(off int64, clean bool) {
	p.frame = off
	if p.heldLen == 0 {
		p.frameOff = off
	}
	if clean && p.damaged == nil {
		p.good, p.since = off, 0
	}
}

// hold keeps the start of a line until the rest comes. What can be no record
// anyway is not kept, so that a file of zeros needs no memory.
func (p *parser) hold(part []byte) {
	if p.heldLen == 0 && len(part) > 0 {
		p.held = append(p.held[:0], part)
	} else if !p.dropped {
		p.held = append(p.held, part)
	}
	p.heldLen += len(part)
	if p.heldLen > MaxLine {
		p.dropped = true
	}
	if p.heldLen > block && !p.dropped {
		first := p.held[0]
		if i := jsonwire.Space(first, 0); i < len(first) && first[i] != '{' {
			p.dropped = true
		}
	}
	if p.dropped {
		// The first bytes tell what the line was.
		clear(p.held[1:])
		p.held = p.held[:1]
		if len(p.held[0]) > 64 {
			p.held[0] = bytes.Clone(p.held[0][:64])
		}
	}
}

// join puts the parts of a line together, or gives its first bytes when the
// line is not wanted.
func (p *parser) join(last []byte, big bool) []byte {
	var line []byte
	if big {
		line = p.held[0][:min(64, len(p.held[0]))]
	} else {
		line = make([]byte, 0, p.heldLen+len(last))
		for _, part := range p.held {
			line = append(line, part...)
		}
		line = append(line, last...)
	}
	clear(p.held)
	p.held, p.heldLen, p.dropped = p.held[:0], 0, false
	return line
}

// take takes one line that ended in a newline, with what was decoded of it.
func (p *parser) take(line []byte, size int, d *decoded) bool {
	if p.damaged != nil {
		p.lost = p.lost || d.what == isRecord && d.rec.Type == outcrop.TypeTurnEnd
		return true
	}
	switch d.what {
	case isBlank:
		p.mark()
		p.warn(WarnBlankLine, "blank line")
		return true
	case isTooLong:
		return p.tooBig(fmt.Sprintf("the line has %d bytes, the limit is %d", size, MaxLine))
	case isTooDeep:
		return p.tooBig(fmt.Sprintf("the record is nested deeper than %d levels", jsonwire.MaxReadDepth))
	case isBad:
		p.damage(badLine(line, d.err))
		return true
	}
	rec := &d.rec
	if rec.Seq != p.next && !(p.loose && rec.Seq > p.next) {
		p.lost = rec.Type == outcrop.TypeTurnEnd
		msg := fmt.Sprintf("seq gap: event %d expected, the line has %d", p.next, rec.Seq)
		if rec.Seq < 0 {
			msg = fmt.Sprintf("seq gap: event %d expected, the line has no valid seq", p.next)
		}
		p.damage(damage("SEQ_GAP", msg))
		return true
	}
	p.mark()
	if line[size-1] == '\r' {
		p.warn(WarnCRLF, "the line ends in CRLF")
	}
	if p.check {
		p.content(line, d)
	}
	p.loose = false
	p.next = rec.Last() + 1
	if p.lower != nil {
		return p.lowered(rec)
	}
	p.since += rec.Count()
	p.ranged += rec.Count()
	if rec.Run == nil && formats.HasRanges(rec.Sources) {
		p.flat(&rec.Event)
	}
	if rec.Run == nil && !p.raw && p.up.wants(rec.Type) {
		e, bad := p.up.upgrade(rec.Event)
		if bad != nil {
			p.at(bad)
			bad.Seq = rec.Seq
			return p.yield(*rec, bad)
		}
		if e.Type != rec.Type || !sameData(e.Data, rec.Data) {
			p.upgraded++
		}
		rec.Event = e
	}
	return p.yield(*rec, nil)
}

// lowered yields what a record of a later format says in format 0.
func (p *parser) lowered(rec *outcrop.Record) bool {
	more, bad := p.lower.Add(*rec, p.emit)
	if bad == nil || !more {
		return more
	}
	seq := bad.Seq
	p.at(bad)
	bad.Seq = seq
	return p.yield(outcrop.Record{}, bad)
}

// flat shows sources with ranges as the seqs that they stand for. Wrong ones stay
// and are refused at admission.
func (p *parser) flat(e *outcrop.Event) {
	if p.raw {
		return
	}
	if s, bad := formats.Flat(e, &p.ranged); bad == nil {
		*e = e.Sourced(s)
	}
}

// mark sets the place that Pos tells.
func (p *parser) mark() {
	p.pos = Pos{Line: p.lineNo, Offset: p.textOff, TextOffset: p.textOff}
	if p.enc == Zstd {
		p.pos.Offset = p.frameOff
	}
	if p.begin > 0 {
		p.pos.Line = 0
	}
}

// at gives an error the current place.
func (p *parser) at(e *outcrop.Error) {
	p.mark()
	e.Line, e.Offset = p.pos.Line, p.pos.Offset
}

// damage notes the first damage; it starts at the current line.
func (p *parser) damage(e *outcrop.Error) {
	p.at(e)
	p.name(e)
	e.Seq = p.next
	p.damaged, p.where = e, p.pos
}

// name says the format in an error about a file of a later one.
func (p *parser) name(e *outcrop.Error) {
	if f := p.header.Format; f > 0 {
		e.Msg = fmt.Sprintf("dsh format %d: %s", f, e.Msg)
	}
}

func (p *parser) tooBig(msg string) bool {
	e := &outcrop.Error{
		Op: "read", Code: "RECORD_TOO_BIG", Err: outcrop.ErrRefused, Msg: msg,
		Hint: "the session can be read around this record, but not be continued",
	}
	p.at(e)
	p.name(e)
	e.Seq = p.next
	p.loose = true // it may have been one event, or a row of many
	return p.yield(outcrop.Record{}, e)
}

// badLine says what is wrong with a line that is no record.
func badLine(line []byte, err error) *outcrop.Error {
	switch i := jsonwire.Space(line, 0); {
	case i < len(line) && line[i] == 0:
		return damage("LINE_NOT_JSON", "zero bytes where a record should begin")
	case bytes.HasPrefix(line[i:], []byte("\xef\xbb\xbf")):
		return damage("LINE_NOT_JSON", "a byte order mark before the record")
	case err == nil:
		return damage("LINE_NOT_JSON", "a record must be a JSON object")
	}
	if e := (*outcrop.Error)(nil); errors.As(err, &e) {
		return damage(e.Code, e.Msg)
	}
	return damage("LINE_NOT_JSON", err.Error())
}

// finish ends the reading.
func (p *parser) finish(end *ending) {
	if end.err != nil {
		p.mark()
		p.yield(outcrop.Record{}, &outcrop.Error{
			Op: "read", Seq: p.next, Line: p.pos.Line, Offset: p.pos.Offset, Err: end.err, Msg: "the file cannot be read: " + end.err.Error(),
		})
		return
	}
	if p.damaged == nil && end.bad != nil {
		p.damage(end.bad)
		p.where.Offset, end.bad.Offset = end.off, end.off
	}
	if p.damaged == nil && p.heldLen > 0 {
		e := damage("LINE_NO_NEWLINE", "the last line has no newline")
		if p.held[0][0] == 0 {
			e = damage("LINE_NOT_JSON", "zero bytes at the end of the file")
		}
		p.damage(e)
	}
	p.tail, p.nextSeq = Tail{Good: p.size}, p.next
	if p.damaged == nil {
		return
	}
	p.tail = Tail{Good: p.good, Recovered: p.since, Reason: p.damaged}
	if p.enc == Plain {
		p.tail.Recovered = 0
	}
	if p.lost || end.lost {
		p.pos = p.where
		p.damaged.Hint = "a finished turn lies behind the damage, so nothing is cut; the records before it can be read, and taken into a new session by a fork"
		p.yield(outcrop.Record{}, p.damaged)
		return
	}
	p.tail.Torn = true
	p.damaged.Hint = "no finished turn lies behind it; the next append cuts it off and keeps the bytes"
}
