package outcrop

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// LogPayload is the typed data of an event that does not stand on the
// surface. Append takes no surface operation, so the compiler refuses one.
type LogPayload interface {
	EventType() Type
	appendData(dst []byte) []byte
	logPayload()
}

// SurfacePayload is the typed data of an event of the surface. AppendSurface
// wants an operation with it, so the compiler refuses to forget one.
type SurfacePayload interface {
	EventType() Type
	appendData(dst []byte) []byte
	surfacePayload()
}

// checkedPayload is implemented by payloads that hold JSON text of the
// caller's: it reports whether this value does, so that only then the encoded
// data is checked.
type checkedPayload interface{ holdsRaw() bool }

// Candidate is an event that may be appended as part of a group.
type Candidate struct {
	typ       Type
	tag       typeTag
	payload   interface{ appendData([]byte) []byte }
	raw       bool
	data      []byte
	op        SurfaceOp
	sources   Sources
	ignorable bool
}

// LogCandidate makes a candidate for AppendAll that does not stand on the
// surface.
func LogCandidate(p LogPayload) Candidate {
	c := Candidate{typ: p.EventType(), payload: p}
	c.tag = c.typ.tag()
	if c.tag == chunkTag {
		// The hot path: nearly all events are chunks.
		if chunk, ok := p.(AssistantChunk); ok {
			c.raw = chunk.holdsRaw()
			return c
		}
	}
	c.raw = holdsRaw(p)
	if r, ok := p.(RawPayload); ok {
		c.ignorable = r.Ignorable
	} else {
		c.ignorable = c.tag.class() == classOurs
	}
	return c
}

// SurfaceCandidate makes a candidate for AppendAll that enters the surface.
func SurfaceCandidate(p SurfacePayload, op SurfaceOp, sources Sources) Candidate {
	typ := p.EventType()
	return Candidate{typ: typ, tag: typ.tag(), payload: p, raw: holdsRaw(p), op: op, sources: sources}
}

// RawCandidate makes a candidate from an event's Type, Data, Sources, Op and
// Ignorable; its seq and time do not count.
func RawCandidate(ev Event) Candidate {
	return Candidate{typ: ev.Type, tag: ev.Type.tag(), raw: true, data: ev.Data, op: ev.Op, sources: ev.Sources, ignorable: ev.Ignorable}
}

func holdsRaw(p any) bool {
	c, ok := p.(checkedPayload)
	return ok && c.holdsRaw()
}

// Append commits one event that does not stand on the surface. The candidate
// is checked in full, then vetoes run, then it is committed, then observers
// hear of it. A refused or vetoed candidate leaves no trace.
func (s *Session) Append(p LogPayload) (Event, error) {
	return s.appendOne(LogCandidate(p))
}

// AppendSurface commits one event of the surface. See Append.
func (s *Session) AppendSurface(p SurfacePayload, op SurfaceOp, sources Sources) (Event, error) {
	return s.appendOne(SurfaceCandidate(p, op, sources))
}

// AppendRaw commits an event given as its Type, Data, Sources, Op and
// Ignorable, under the same rules as a typed one. Seq and time are the
// session's.
func (s *Session) AppendRaw(ev Event) (Event, error) {
	return s.appendOne(RawCandidate(ev))
}

func (s *Session) begin() error {
	if !s.inFlight.CompareAndSwap(false, true) {
		return ErrAppendInFlight
	}
	if err := s.appendable(); err != nil {
		s.inFlight.Store(false)
		return err
	}
	return nil
}

func (s *Session) appendable() error {
	if s.readOnly {
		return &Error{Op: "append", Session: s.header.ID, Seq: -1, Offset: -1, Err: ErrReadOnly}
	}
	return s.Err()
}

func (s *Session) appendOne(c Candidate) (Event, error) {
	if err := s.begin(); err != nil {
		return Event{}, err
	}
	defer s.inFlight.Store(false)
	var ev Event
	var info msgInfo
	if err := s.prepare(&c, &ev, &info, s.log.len); err != nil {
		return Event{}, s.refusal(err, &c)
	}
	pl, err := s.planner.plan(s.surface.nodes, &ev, s.target)
	if err != nil {
		s.log.unkeep(ev.line)
		return Event{}, s.refusal(err, &c)
	}
	if err := s.askVetoes(&ev); err != nil {
		// A veto may have kept the view, so its bytes are not given back.
		return Event{}, annotate(err, "append", s.header.ID)
	}
	s.mu.Lock()
	s.commit(&ev, &info, pl)
	observers := s.observers
	s.mu.Unlock()
	for _, o := range observers {
		s.tell(o, ev)
	}
	return ev, nil
}

// refusal ends the session when the refused candidate is a closer that was
// built from a payload: nothing may be opened on top of a turn that is not
// closed. A raw closer, which may be anybody's bytes, ends nothing.
func (s *Session) refusal(err error, c *Candidate) error {
	err = annotate(err, "append", s.header.ID)
	if c.payload != nil && closes(c.typ, c.op) {
		s.Fail(err)
	}
	return err
}

// closes reports whether an event closes something that is open. Vetoes are
// not asked about closers.
func closes(t Type, op SurfaceOp) bool {
	switch t {
	case TypeStepEnd, TypeTurnEnd, TypeCompactionEnd, TypeEndSeed:
		return true
	case TypeToolResult:
		return op.IsAppend()
	}
	return false
}

// AppendAll commits a group: every candidate is planned against the state that
// the earlier ones make, all vetoes run, and then all are committed or none.
// Observers hear each event in order, when the whole group is committed. A
// store writes a group as part of one batch. The seq of the first event will
// be Len.
func (s *Session) AppendAll(group ...Candidate) ([]Event, error) {
	if len(group) == 0 {
		return nil, nil
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.inFlight.Store(false)
	events := make([]Event, len(group))
	infos := make([]msgInfo, len(group))
	plans := make([]plan, len(group))
	base := s.log.len
	// An append is planned without a look at the surface; a group that replaces
	// nodes is planned on a copy.
	stage := surface{nodes: s.surface.nodes}
	staged := slices.ContainsFunc(group, func(c Candidate) bool { return c.op.kind == opReplace })
	if staged {
		stage.nodes = slices.Clone(stage.nodes)
	}
	target := func(pos int) ([]byte, bool) {
		if seq := stage.nodes[pos]; seq >= base {
			ev := &events[seq-base]
			return ev.Data, ev.Type == TypeToolResult
		} else {
			e, _ := s.log.entry(s.log.find(seq))
			line := e.line()
			return line[e.dataOff : e.dataOff+e.dataLen], e.typ == idResult
		}
	}
	for i := range group {
		ev := &events[i]
		err := s.prepare(&group[i], ev, &infos[i], base+Seq(i))
		if err == nil {
			plans[i], err = s.planner.plan(stage.nodes, ev, target)
		}
		if err != nil {
			return nil, s.refusal(err, &group[i])
		}
		if staged {
			stage.apply(plans[i], ev.Seq)
		}
	}
	for i := range events {
		if err := s.askVetoes(&events[i]); err != nil {
			return nil, annotate(err, "append", s.header.ID)
		}
	}
	s.mu.Lock()
	for i := range events {
		s.commit(&events[i], &infos[i], plans[i])
	}
	observers := s.observers
	s.mu.Unlock()
	for i := range events {
		for _, o := range observers {
			s.tell(o, events[i])
		}
	}
	return events, nil
}

// prepare encodes a candidate into the log's memory and judges all that does
// not depend on the surface.
func (s *Session) prepare(c *Candidate, ev *Event, info *msgInfo, seq Seq) *Error {
	cls := c.tag.class()
	*ev = Event{Type: c.typ, Seq: seq, Time: s.now(), Sources: c.sources, Op: c.op, Ignorable: c.ignorable, tag: c.tag}
	if c.typ == TypeEndSeed {
		return refuse("END_SEED", seq, "session/end-seed is written by the constructor alone")
	}
	if cls == classOurs && !c.ignorable {
		return refuse("NOT_IGNORABLE", seq, "type "+string(c.typ)+" must be ignorable")
	}
	b := append(s.scratch[:0], `{"type":`...)
	if cls == classUnknown {
		if c.typ == "" {
			return refuse("ENVELOPE", seq, "event out of contract: type is empty")
		}
		b = jsonwire.AppendString(b, string(c.typ))
	} else {
		b = append(b, '"')
		b = append(b, c.typ...)
		b = append(b, '"')
	}
	b = append(b, `,"seq":`...)
	b = jsonwire.AppendInt(b, int64(seq))
	b = append(b, `,"time":`...)
	b = s.appendTime(b, ev.Time)
	b = append(b, `,"data":`...)
	dataAt := len(b)
	if c.payload != nil {
		if m, ok := c.payload.(needsID); ok {
			b = m.appendWithID(b, func() string { return s.newID(seq) })
		} else {
			b = c.payload.appendData(b)
		}
	} else {
		b = append(b, c.data...)
	}
	s.scratch = b
	if c.raw {
		data := b[dataAt:]
		if c.data != nil && (jsonwire.Space(data, 0) != 0 || len(data) > 0 && data[len(data)-1] <= ' ') {
			return refuse("NOT_JSON", seq, "data has white space around it")
		}
		if err := jsonwire.Strict(data); err != nil {
			return refuse(notJSON(data), seq, "data cannot be written: "+err.Error())
		}
		if bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 {
			return refuse("NOT_JSON", seq, "data has a line break outside its strings")
		}
	}
	if err := cleanSources(&ev.Sources, seq); err != nil {
		return err
	}
	s.finish(ev, b, dataAt)
	if err := s.admit(ev, fromAppend, seq, info); err != nil {
		s.log.unkeep(ev.line)
		return err
	}
	return nil
}

// appendTime appends a time. Most events have the time of the one before, so
// its text is kept.
func (s *Session) appendTime(b []byte, t int64) []byte {
	if t != s.timeOf || s.timeText == nil {
		s.timeOf, s.timeText = t, jsonwire.AppendInt(s.timeText[:0], t)
	}
	return append(b, s.timeText...)
}

// cleanSources makes sure that a list that came from elsewhere can stand in a
// line.
func cleanSources(s *Sources, seq Seq) *Error {
	if s.text == nil {
		return nil
	}
	if err := jsonwire.Valid(s.text); err != nil {
		return refuse("NOT_JSON", seq, "sources cannot be written: "+err.Error())
	}
	for _, c := range s.text {
		if c <= ' ' {
			s.text = jsonwire.Compact(s.text)
			break
		}
	}
	return nil
}

func notJSON(data []byte) Code {
	if jsonwire.Valid(data) == nil && jsonwire.Lossless(data) != nil {
		return "NOT_LOSSLESS"
	}
	return "NOT_JSON"
}

// needsID is implemented by message payloads: a message without an id gets one.
type needsID interface {
	appendWithID(dst []byte, newID func() string) []byte
}

func (s *Session) newID(seq Seq) string {
	if s.opts.NewID != nil {
		return s.opts.NewID()
	}
	return "m-" + itoa(int64(seq))
}

// commit adds a judged event. The caller holds mu.
func (s *Session) commit(ev *Event, info *msgInfo, pl plan) {
	if !ev.class().surface() {
		info = nil
	}
	s.log.addEvent(ev, info)
	s.surface.apply(pl, ev.Seq)
	s.view = nil
	s.note(ev)
}

func (s *Session) askVetoes(ev *Event) error {
	if len(s.opts.Vetoes) == 0 || closes(ev.Type, ev.Op) {
		return nil
	}
	for _, veto := range s.opts.Vetoes {
		if err := s.ask(veto, ev); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) ask(veto func(Event) error, ev *Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if s.opts.Logger != nil {
				s.opts.Logger.Error("veto panicked", "session", s.header.ID, "seq", int64(ev.Seq), "panic", p, "stack", string(debug.Stack()))
			}
			err = &Error{Seq: ev.Seq, Offset: -1, Err: ErrVetoed, Msg: fmt.Sprintf("a veto panicked: %v", p)}
		}
	}()
	if err := veto(*ev); err != nil {
		return &Error{Seq: ev.Seq, Offset: -1, Err: fmt.Errorf("%w: %w", ErrVetoed, err)}
	}
	return nil
}

func (s *Session) tell(o *observer, ev Event) {
	defer func() {
		if p := recover(); p != nil && s.opts.Logger != nil {
			s.opts.Logger.Error("observer panicked", "session", s.header.ID, "seq", int64(ev.Seq), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	o.f(ev)
}
