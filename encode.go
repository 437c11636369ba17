package outcrop

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// Encoder makes the events of a log one after another without keeping them:
// for a writer of long logs that come from elsewhere. What it holds is the
// surface alone. An event is judged as a session judges an append, with one
// exception: a tool/result that replaces another is refused
// (ENCODER_NEEDS_LOG), since judging it takes the event that it replaces.
//
// One goroutine uses it.
type Encoder struct {
	s    Session
	time int64
}

// NewEncoder begins an empty log with this header. newID makes the ids of
// messages that have none; nil: m-SEQ.
func NewEncoder(h Header, newID func() string) (*Encoder, error) {
	e := &Encoder{}
	s, err := New(h, Options{NewID: newID, Now: func() int64 { return e.time }})
	if err != nil {
		return nil, annotate(err, "encode", h.ID)
	}
	e.s.header, e.s.opts = s.header, s.opts
	e.s.headerAt, e.s.contextAt, e.s.unmarked = -1, -1, -1
	return e, nil
}

// Next makes the next event of the log, at a time in Unix milliseconds. After
// an error, which is that of an append, the log is as it was. The event's
// memory is its own: it may be kept.
func (e *Encoder) Next(c Candidate, time int64) (Event, error) {
	s := &e.s
	e.time = time
	var ev Event
	var info msgInfo
	if _, _, replaces := c.op.Range(); replaces && c.tag.class() == classResult {
		return Event{}, annotate(refuse("ENCODER_NEEDS_LOG", s.log.len, "a tool/result cannot replace another one here"), "encode", s.header.ID)
	}
	if err := s.prepare(&c, &ev, &info, s.log.len); err != nil {
		return Event{}, annotate(err, "encode", s.header.ID)
	}
	pl, err := s.planner.plan(s.surface.nodes, &ev, func(int) ([]byte, bool) { return nil, false })
	if err != nil {
		s.log.unkeep(ev.line)
		return Event{}, annotate(err, "encode", s.header.ID)
	}
	s.surface.apply(pl, ev.Seq)
	s.log.len++
	return ev, nil
}

// EndSeed makes the session/end-seed that ends what a session inherited.
func (e *Encoder) EndSeed(time int64) Event {
	ev := Event{Type: TypeEndSeed, Seq: e.s.log.len, Time: time, Data: []byte("{}"), state: textValid}
	e.s.encode(&ev)
	e.s.log.len++
	return ev
}

// Len is the number of events so far, and so the seq of the next one.
func (e *Encoder) Len() Seq { return e.s.log.len }

// Header is the log's header.
func (e *Encoder) Header() Header { return e.s.header }

// WithMember is the header with one more member at its end, one that readers of
// the format do not know and keep. value is JSON. The code of a refusal is
// HEADER_NOT_JSON: value is no JSON, or the header has the member already.
func (h Header) WithMember(name string, value []byte) (Header, error) {
	line := h.Line()
	line = append([]byte(nil), line[:len(line)-1]...)
	line = append(jsonwire.AppendString(append(line, ','), name), ':')
	line = append(append(line, value...), '}')
	err := jsonwire.Valid(value)
	if err == nil {
		err = jsonwire.Strict(line)
	}
	if err != nil {
		return h, refuse("HEADER_NOT_JSON", -1, "the header cannot have the member "+name+": "+err.Error())
	}
	return ParseHeader(line)
}
