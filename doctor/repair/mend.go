package repair

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor/internal/fold"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// mender takes the lines that a salvor finds, one after the other, and decides
// which of them make up the log. A record is taken only when its seq is the next
// one and admission takes it, so that what comes out is a log whatever went in.
type mender struct {
	salvor
	plan *Plan

	out   *rewriter // nil: only the changes are wanted
	aside *aside

	changes []Change
	headed  bool // the header is behind
	lines   *wire.Lines
	fold    *fold.Fold
	own     bool // an event that only an own session has was taken
	first   *int64
	next    outcrop.Seq // seq that the next record must have
	last    int64       // time of the last event
	now     *outcrop.Record

	// Closers at the end of what was taken so far. They wait, because another
	// program may have written on under their seqs.
	waiting []taken
	seen    repeats
	doubt   *Change // bytes that are no record, behind what was taken
	cut     bool
	behind  int // events behind the cut

	brackets outcrop.CompactionInvariants
	bracket  outcrop.Seq // the compaction/start of the open bracket, -1 when none is open
	started  []byte      // its data
}

// taken is a record with its line.
type taken struct {
	rec  outcrop.Record
	line []byte
	pos  wire.Pos
}

func (m *mender) run() error {
	if err := m.salvor.run(); err != nil {
		return err
	}
	if !m.headed {
		return m.noSession()
	}
	return m.end()
}

// take takes the next line.
func (m *mender) take(l salvaged) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	if !m.headed {
		rest, err := m.header(l)
		if err != nil || rest == nil {
			return err
		}
		l.text = rest
	}
	switch {
	case m.cut:
		return m.lost(l)
	case l.none:
		c := at("JUNK", m.next, l.pos, "a line that is no record")
		c.Reason, c.Bytes = "LINE_NOT_JSON", int64(l.size)
		m.doubtful(c)
		return m.aside.line("removed.jsonl", m, l)
	case l.size > wire.MaxLine:
		return m.cutAt("RECORD_TOO_BIG", m.next, l, fmt.Sprintf("its line has %d bytes, the limit is %d", l.size, wire.MaxLine))
	}
	if i := jsonwire.Space(l.text, 0); i == len(l.text) {
		if !l.newline {
			return nil // spaces that end the file
		}
		return m.write(l.text)
	}
	rec, err := m.decode(l.text)
	switch {
	case err == nil && rec.Seq >= 0:
		if !l.newline && rec.Seq == m.next {
			m.change(at("NEWLINE_MISSING", rec.Seq, l.pos, "the record is whole but for its newline, which is added"))
		}
		return m.record(rec, l)
	case err != nil && outcrop.CodeOf(err) == "RECORD_TOO_BIG":
		return m.cutAt("RECORD_TOO_BIG", m.next, l, "the record cannot be read: "+reason(err))
	case err != nil && rec.Seq == m.next && rec.Type != "": // half an old shape
		return m.cutAt(outcrop.CodeOf(err), m.next, l, reason(err))
	}
	return m.bad(l, err)
}

// decode decodes a line, old shapes upgraded.
func (m *mender) decode(line []byte) (outcrop.Record, error) {
	// The memory of the line is used again; what is kept of a record is copied.
	return m.lines.Record(line)
}

// resultsBefore yields the results of the log before a seq, for old shapes that
// are mixed with newer ones.
func (m *mender) resultsBefore(before outcrop.Seq) iter.Seq2[outcrop.Seq, []byte] {
	return func(yield func(outcrop.Seq, []byte) bool) {
		r, err := wire.NewReader(m.t.R, m.t.Size, m.t.Encoding)
		if err != nil {
			return
		}
		for rec, err := range r.Records() {
			if err != nil || rec.Seq >= before {
				return
			}
			if rec.Type != outcrop.TypeToolResult {
				continue
			}
			if e, err := outcrop.DecodeEvent(rec.Line()); err == nil && !yield(e.Seq, e.Data) {
				return
			}
		}
	}
}

// bad looks for records in a line that is none.
func (m *mender) bad(l salvaged, err error) error {
	whole := func(b []byte) (rec outcrop.Record, ok bool) {
		rec, err := m.decode(b)
		return rec, err == nil && rec.Seq == m.next
	}
	// Zero bytes, which a file system leaves for what it did not write.
	if t := bytes.Trim(l.text, "\x00"); len(t) < len(l.text) {
		c := at("NUL_RUN", m.next, l.pos, "zero bytes are left out")
		c.Bytes = int64(len(l.text) - len(t))
		rest := l
		rest.text, rest.size = t, len(t)
		if jsonwire.Space(t, 0) == len(t) {
			m.change(c)
			return nil
		}
		switch rec, err := m.decode(t); {
		case err == nil && rec.Seq == m.next:
			m.change(c)
			return m.record(rec, rest)
		case err == nil && rec.Seq >= 0:
			c.Code, c.Reason, c.Message = "JUNK", "NUL_RUN", "zero bytes stand in the place of events"
			m.doubtful(c)
			return m.record(rec, rest)
		}
		l = rest
	}
	// Two records on one line, because a newline was not written.
	if end, err := jsonwire.Value(l.text, 0); err == nil && jsonwire.Space(l.text, end) < len(l.text) {
		if rec, ok := whole(l.text[:end]); ok {
			m.change(at("GLUED", m.next, l.pos, "two records stand on one line and get one each"))
			head, tail := l, l
			head.text, head.size, head.newline = l.text[:end], end, true
			if err := m.record(rec, head); err != nil {
				return err
			}
			tail.text = l.text[jsonwire.Space(l.text, end):]
			tail.size = len(tail.text)
			return m.take(tail)
		}
	}
	// A record behind the torn start of another one.
	at0 := 0
	for range 64 {
		i := bytes.Index(l.text[min(at0+1, len(l.text)):], []byte(`{"type":`))
		if i < 0 {
			break
		}
		at0 += 1 + i
		if rec, ok := whole(l.text[at0:]); ok {
			c := at("GLUED_TORN", m.next, l.pos, "the torn start of a record before it on its line is left out")
			c.Bytes = int64(at0)
			m.change(c)
			if err := m.remove(l.text[:at0]); err != nil {
				return err
			}
			tail := l
			tail.text, tail.size = l.text[at0:], len(l.text)-at0
			return m.record(rec, tail)
		}
	}
	why := "LINE_NOT_JSON"
	if code := outcrop.CodeOf(err); code != "" {
		why = string(code)
	}
	msg := "it has no valid seq"
	if err != nil {
		msg = reason(err)
	}
	c := at("JUNK", m.next, l.pos, "a line that is no record: "+msg)
	c.Reason, c.Bytes = outcrop.Code(why), int64(len(l.text))
	m.doubtful(c)
	return m.remove(l.text)
}

// doubtful notes bytes that are no record. What they mean, what stands behind
// them tells.
func (m *mender) doubtful(c Change) {
	if m.doubt == nil {
		c.Times = 1
		m.doubt = &c
		return
	}
	m.doubt.Bytes += c.Bytes
	m.doubt.Times++
}

// gap hears of bytes of the file that are no text.
func (m *mender) gap(code outcrop.Code, msg string, from, to int64) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	p := wire.Pos{Line: m.pos.Line, Offset: from, TextOffset: from}
	if m.cut || !m.headed {
		return m.aside.frame(m, from, to)
	}
	c := at("JUNK", m.next, p, msg)
	c.Reason, c.Bytes = code, to-from
	m.doubtful(c)
	return m.aside.frame(m, from, to)
}

// record takes a record that was decoded.
func (m *mender) record(rec outcrop.Record, l salvaged) error {
	switch {
	case m.plan.limit >= 0 && rec.Last() >= m.plan.limit && rec.Seq == m.next:
		return m.cutAt(m.plan.why.Code, rec.Seq, l, m.plan.why.Msg)
	case rec.Seq > m.next:
		n := int(rec.Seq - m.next)
		return m.cutAt("SEQ_GAP", m.next, l, fmt.Sprintf("%s missing, the next record is event %d", are(m.next, n), rec.Seq))
	case rec.Seq < m.next:
		return m.repeated(rec, l)
	}
	if m.doubt != nil {
		m.doubt.Message += "; the seqs go on behind it, so no event is missing"
		m.change(*m.doubt)
		m.doubt = nil
	}
	m.seen.add(rec.Seq, l.text)
	m.next = rec.Last() + 1
	if isCloser(&rec.Event) {
		line := bytes.Clone(l.text)
		own, err := m.decode(line)
		if err != nil {
			return err
		}
		m.waiting = append(m.waiting, taken{own, line, l.pos})
		if len(m.waiting) < maxWaiting {
			return nil
		}
		return m.settle(len(m.waiting))
	}
	if err := m.settle(len(m.waiting)); err != nil {
		return err
	}
	if m.cut {
		return m.lost(l)
	}
	return m.admit(rec, l.text, &l)
}

// maxWaiting is how many closers wait at most.
const maxWaiting = 4096

func are(from outcrop.Seq, n int) string {
	if n == 1 {
		return seqs(from, n) + " is"
	}
	return seqs(from, n) + " are"
}

// settle takes the first n records that wait.
func (m *mender) settle(n int) error {
	now := m.waiting[:n]
	m.waiting = m.waiting[n:]
	for _, w := range now {
		if m.cut {
			if err := m.lost(salvaged{text: w.line, size: len(w.line), newline: true}); err != nil {
				return err
			}
			continue
		}
		l := salvaged{text: w.line, size: len(w.line), newline: true, pos: w.pos}
		if err := m.admit(w.rec, w.line, &l); err != nil {
			return err
		}
	}
	return nil
}

// repeated takes a record whose seq was there already.
func (m *mender) repeated(rec outcrop.Record, l salvaged) error {
	if m.seen.same(rec.Seq, l.text) {
		c := at("SEQ_REPEAT", rec.Seq, l.pos, "a record that stands in the log already, with the same bytes, is left out")
		c.Bytes, c.Events = int64(len(l.text)), rec.Count()
		m.change(c)
		return m.remove(l.text)
	}
	// Closers that another program wrote while this turn went on.
	i := slices.IndexFunc(m.waiting, func(t taken) bool { return t.rec.Seq == rec.Seq })
	if i >= 0 && m.doubt == nil && slices.ContainsFunc(m.waiting[i:], func(t taken) bool { return synthetic(&t.rec.Event) }) && !isCloser(&rec.Event) {
		gone := m.waiting[i:]
		c := at("CLOSERS_OVERTAKEN", rec.Seq, l.pos, seqs(rec.Seq, len(gone))+" closed the turn while another program still wrote it; what that one wrote under the same seqs takes their place")
		c.Events = len(gone)
		for _, t := range gone {
			c.Bytes += int64(len(t.line))
			if err := m.remove(t.line); err != nil {
				return err
			}
		}
		m.change(c)
		m.waiting, m.next = m.waiting[:i:i], rec.Seq
		m.seen.drop(rec.Seq)
		return m.record(rec, l)
	}
	if isCloser(&rec.Event) && synthetic(&rec.Event) {
		c := at("CLOSERS_OVERTAKEN", rec.Seq, l.pos, seqs(rec.Seq, 1)+" stands there already; what closed the turn beside the program that wrote it is left out")
		c.Bytes, c.Events = int64(len(l.text)), 1
		m.change(c)
		return m.remove(l.text)
	}
	return m.cutAt("SEQ_REPEAT", m.next, l, fmt.Sprintf("event %d is expected, and event %d stands there again with other content: two programs wrote the log", m.next, rec.Seq))
}

// admit takes the next record into the log when admission does.
func (m *mender) admit(rec outcrop.Record, line []byte, l *salvaged) error {
	e := &rec.Event
	if rec.Run == nil && fold.Unknown(e) {
		return notRepairable("TYPE_UNKNOWN", fmt.Sprintf("event %d has the type %q, which is unknown and may not be passed over", e.Seq, string(e.Type)),
			"the log was written by a newer program: use that one")
	}
	m.now = &rec
	if err := m.fold.Next(&rec); err != nil {
		m.next = rec.Seq
		return m.cutAt(outcrop.CodeOf(err), rec.Seq, *l, "it breaks a rule: "+reason(err))
	}
	if m.first == nil {
		t := rec.Time
		m.first = &t
	}
	m.last = rec.Time
	if rec.Run == nil {
		m.follow(e)
	}
	return m.write(line)
}

// follow keeps what an end of the log may need.
func (m *mender) follow(e *outcrop.Event) {
	m.own = m.own || e.Type == outcrop.TypeContextMessage
	m.brackets.Apply(*e)
	switch e.Type {
	case outcrop.TypeCompactionStart:
		m.bracket, m.started = e.Seq, bytes.Clone(e.Data)
	case outcrop.TypeCompactionEnd, outcrop.TypeEndSeed:
		m.bracket = -1
	}
}

// result reads a result that the fold did not keep.
func (m *mender) result(seq outcrop.Seq) []byte {
	for at, data := range m.resultsBefore(seq + 1) {
		if at == seq {
			return bytes.Clone(data)
		}
	}
	return m.now.Data
}

// cutAt ends the log before an event; l is the first line behind the cut.
func (m *mender) cutAt(why outcrop.Code, seq outcrop.Seq, l salvaged, msg string) error {
	if err := m.settle(len(m.waiting)); err != nil || m.cut {
		return errors.Join(err, m.lostIf(l))
	}
	c := at("CUT", seq, l.pos, fmt.Sprintf("the log ends before event %d: %s", seq, msg))
	c.Reason = why
	if d := m.doubt; d != nil {
		// Where events are missing, what stands in their place is the reason.
		c.Line, c.Offset, c.TextOffset, c.Bytes = d.Line, d.Offset, d.TextOffset, d.Bytes
		if c.Reason == "SEQ_GAP" {
			c.Reason = d.Reason
			c.Message = fmt.Sprintf("the log ends before event %d: %s", seq, d.Message)
		}
		m.doubt = nil
	}
	c.Times = 1
	m.changes = append(m.changes, c)
	m.cut, m.next = true, seq
	return m.lost(l)
}

// lostIf is lost, for a line that another cut overtook.
func (m *mender) lostIf(l salvaged) error {
	if m.cut {
		return m.lost(l)
	}
	return nil
}

// lost keeps a line behind the cut.
func (m *mender) lost(l salvaged) error {
	c := &m.changes[m.cutIndex()]
	c.Bytes += int64(l.size) + 1
	if l.size == len(l.text) {
		if rec, err := m.decode(l.text); err == nil && rec.Seq >= 0 {
			m.behind += rec.Count()
			c.Events += rec.Count()
		}
	}
	return m.aside.line("behind.jsonl", m, l)
}

func (m *mender) cutIndex() int {
	return slices.IndexFunc(m.changes, func(c Change) bool { return c.Code == "CUT" })
}

// remove keeps what is left out between the records that stay.
func (m *mender) remove(b []byte) error { return m.aside.add("removed.jsonl", b) }

// write writes a line of the log.
func (m *mender) write(line []byte) error {
	if m.out == nil {
		return nil
	}
	return m.out.line(line)
}

// end takes what waits and closes what can be closed.
func (m *mender) end() error {
	if err := m.settle(len(m.waiting)); err != nil {
		return err
	}
	if d := m.doubt; d != nil {
		d.Code, d.Message = "TORN_TAIL", "the end of the file is left out: "+d.Message
		m.change(*d)
		m.doubt = nil
	}
	if m.bracket < 0 {
		return nil
	}
	line := m.compactionEnd()
	e, err := outcrop.DecodeEvent(line)
	if err != nil {
		return err
	}
	if _, bad := m.brackets.Check(e); bad {
		return nil // a turn began or ended inside it: session/end-seed makes it stale
	}
	c := at("COMPACTION_CLOSED", m.next, wire.Pos{Offset: -1, TextOffset: -1}, fmt.Sprintf("the compaction that began at event %d did not come to its end; compaction/end is appended", m.bracket))
	c.Events = 1
	m.change(c)
	m.next++
	return m.write(line)
}

// compactionEnd is the event that closes the open bracket as failed.
func (m *mender) compactionEnd() []byte {
	data := []byte{'{'}
	for _, name := range [...]string{"compactionId", "sourceCommandId", "turn"} {
		if v := jsonwire.Get(m.started, name); v != nil {
			data = jsonwire.AppendRawMember(data, name, v)
		}
	}
	data = append(jsonwire.AppendStringMember(data, "error", "the program stopped before it was finished; closed by a repair"), '}')
	line := jsonwire.AppendStringMember([]byte{'{'}, "type", string(outcrop.TypeCompactionEnd))
	line = jsonwire.AppendIntMember(line, "seq", int64(m.next))
	line = jsonwire.AppendIntMember(line, "time", m.last)
	return append(jsonwire.AppendRawMember(line, "data", data), '}')
}

// isCloser reports what a program appends to a log that another one left open.
func isCloser(e *outcrop.Event) bool {
	return e.Type == outcrop.TypeStepEnd || e.Type == outcrop.TypeTurnEnd && synthetic(e) || synthetic(e)
}

// synthetic reports a closer that only a repair writes.
func synthetic(e *outcrop.Event) bool {
	switch e.Type {
	case outcrop.TypeEndSeed:
		return true
	case outcrop.TypeTurnEnd:
		return jsonwire.TextIs(jsonwire.Get(jsonwire.Get(e.Data, "reason"), "kind"), "interrupted")
	case outcrop.TypeToolResult:
		code := jsonwire.Get(jsonwire.Get(e.Data, "error"), "code")
		return e.Op.IsAppend() && (jsonwire.TextIs(code, "TOOL_OUTCOME_UNKNOWN") || jsonwire.TextIs(code, "TOOL_NOT_STARTED"))
	}
	return false
}

// repeats knows the lines of the last records by their digests.
type repeats struct {
	list []seenLine
}

type seenLine struct {
	seq outcrop.Seq
	sum [16]byte
}

// maxSeen is how many records back a repeat is known as one.
const maxSeen = 1 << 16

func sumOf(line []byte) [16]byte {
	sum := sha256.Sum256(bytes.TrimRight(line, " \t\r"))
	return [16]byte(sum[:16])
}

func (r *repeats) add(seq outcrop.Seq, line []byte) {
	if len(r.list) == 2*maxSeen {
		r.list = append(r.list[:0], r.list[maxSeen:]...)
	}
	r.list = append(r.list, seenLine{seq, sumOf(line)})
}

func (r *repeats) find(seq outcrop.Seq) (int, bool) {
	return slices.BinarySearchFunc(r.list, seq, func(s seenLine, seq outcrop.Seq) int { return int(s.seq - seq) })
}

func (r *repeats) same(seq outcrop.Seq, line []byte) bool {
	i, ok := r.find(seq)
	return ok && r.list[i].sum == sumOf(line)
}

// drop forgets the records from a seq on.
func (r *repeats) drop(seq outcrop.Seq) {
	i, _ := r.find(seq)
	r.list = r.list[:i]
}

// reason is the message of an error without what is known of its place.
func reason(err error) string {
	var e *outcrop.Error
	if errors.As(err, &e) && e.Msg != "" {
		return e.Msg
	}
	return err.Error()
}
