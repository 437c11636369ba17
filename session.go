package outcrop

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Options are what a session needs from outside. The zero value is right for a
// deterministic replay.
type Options struct {
	// Now is the clock, Unix milliseconds. nil: the time of the last event, or
	// the header's createdAt.
	Now func() int64
	// NewID makes message ids. nil: m-SEQ.
	NewID func() string
	// Logger hears of observers and vetoes that panicked. nil is silent.
	Logger *slog.Logger
	// Vetoes are asked before a candidate is committed, in order, on the
	// appender's goroutine; an error or a panic refuses it. Closers are not
	// asked about. The event is a view: Clone what is kept.
	Vetoes []func(Event) error
	// Observers hear of each committed event, in order, on the appender's
	// goroutine with no lock held; a panic is logged and the next one runs.
	// They must not append.
	Observers []func(Event)
}

// Session is one session's log with its surface. Everything that it answers
// is folded from the log by one surface manager.
//
// A session has one appender: an append while another is in flight, be it from
// an observer, a veto or another goroutine, returns ErrAppendInFlight at once
// and changes nothing. All reads are safe from any goroutine and see a
// committed prefix. A session does no I/O: what is committed here is durable
// when the store that follows it says so.
type Session struct {
	header Header
	opts   Options

	inFlight atomic.Bool
	readOnly bool
	failed   atomic.Pointer[error]

	// The appender changes these under mu; it reads them without.
	mu               sync.Mutex
	log              logWriter
	surface          surface
	view             *logData // of the current length, or nil
	headerAt         Seq      // last request/header, -1
	contextAt        Seq      // last request/context, -1
	digest           digestChain
	digestGeneration int
	observers        []*observer

	planner  planner
	scratch  []byte
	timeOf   int64
	timeText []byte
	stored   Seq
	firstNew Seq
	unmarked Seq // first surface-type event without a marker in a log that has no markers, or -1
}

type observer struct{ f func(Event) }

// New makes an empty session. Nothing is appended.
func New(h Header, o Options) (*Session, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	if h.line != nil {
		if err := jsonwire.Lossless(h.line); err != nil {
			return nil, refuse("HEADER_NOT_LOSSLESS", -1, "the header would not survive a JavaScript reader: "+err.Error())
		}
	}
	return newSession(h, o), nil
}

func newSession(h Header, o Options) *Session {
	s := &Session{header: h, opts: o, headerAt: -1, contextAt: -1, unmarked: -1}
	for _, f := range o.Observers {
		s.observers = append(s.observers, &observer{f})
	}
	return s
}

// Seed makes a session that begins with the events of another log: a fork or
// a replay. Every event is checked and copied, and session/end-seed is
// appended unless the seed ends with one; an empty seed gets one too.
func Seed(h Header, seed Log, o Options) (*Session, error) {
	return SeedRecords(h, func(yield func(Record, error) bool) {
		for r := range seed.Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}, o)
}

// SeedRecords is Seed for a stream of records.
func SeedRecords(h Header, seed iter.Seq2[Record, error], o Options) (*Session, error) {
	s, err := New(h, o)
	if err != nil {
		return nil, err
	}
	for r, err := range seed {
		if err == nil {
			err = s.load(r, fromSeed)
		}
		if err != nil {
			return nil, annotate(err, "seed", h.ID)
		}
	}
	s.stored = 0
	s.endSeed()
	return s, nil
}

// Restore makes a session from stored records and takes them over: their
// bytes must not change afterwards. When the log ends inside a turn, the
// closers of that turn are appended; then session/end-seed, unless the log
// ends with one. Stored tells which events are new.
func Restore(h Header, records iter.Seq2[Record, error], o Options) (*Session, error) {
	s, err := read(h, records, o, fromStore)
	if err != nil {
		return nil, annotate(err, "restore", h.ID)
	}
	if s.unmarked >= 0 {
		return nil, annotate(refuse("SURFACE_MARKER_REQUIRED", s.unmarked, "the log's messages carry no surface markers: it can be looked at, not continued"), "restore", h.ID)
	}
	closers := Closers(s.Log())
	if err := checkClosers(s.Log(), closers); err != nil {
		return nil, annotate(err, "close the interrupted turn", h.ID)
	}
	for _, ev := range closers {
		if err := s.load(Record{Event: ev}, fromSeed); err != nil {
			return nil, annotate(err, "close the interrupted turn", h.ID)
		}
	}
	s.endSeed()
	return s, nil
}

// Inspect makes a read-only session that shows a log as it is stored: without
// closers and session/end-seed, unknown types included. When the records end
// in an error or one of them is refused, the session of the good prefix is
// returned together with the error.
//
// A log whose messages carry no markers at all gives an empty surface and
// NoMarkers.
func Inspect(h Header, records iter.Seq2[Record, error], o Options) (*Session, error) {
	s, err := read(h, records, o, fromReading)
	s.readOnly = true
	if err != nil {
		return s, annotate(err, "read", h.ID)
	}
	return s, nil
}

func read(h Header, records iter.Seq2[Record, error], o Options, from origin) (*Session, error) {
	s := newSession(h, o)
	if err := h.check(); err != nil {
		return s, err
	}
	for r, err := range records {
		if err == nil {
			err = s.load(r, from)
		}
		if err != nil {
			s.stored = s.log.len
			return s, err
		}
	}
	s.stored = s.log.len
	return s, nil
}

// annotate adds operation and session to an error of this package.
func annotate(err error, op, session string) error {
	var e *Error
	if errors.As(err, &e) {
		c := *e
		if c.Op == "" {
			c.Op = op
		}
		if c.Session == "" {
			c.Session = session
		}
		return &c
	}
	return fmt.Errorf("%s: session %s: %w", op, session, err)
}

// load admits one record that was not made here.
func (s *Session) load(r Record, from origin) error {
	if r.Run != nil {
		if r.Run.First != s.log.len {
			return seqGap(r.Run.First, s.log.len)
		}
		run := *r.Run
		if from == fromSeed || run.part {
			run = run.cloneInto(&s.log)
		}
		s.log.addRun(&run)
		s.view = nil
		return nil
	}
	ev := r.Event
	if from == fromSeed {
		ev = ev.Current()
	}
	if ev.state&textValid == 0 || ev.line == nil || from == fromSeed {
		if err := s.own(&ev); err != nil {
			return err
		}
	}
	var room msgInfo
	info := &room
	if !ev.class().surface() {
		info = nil
	}
	if err := s.admit(&ev, from, s.log.len, info); err != nil {
		return err
	}
	var pl plan
	if info != nil && ev.Op.kind == opNone && from >= fromStore && s.noMarkers() {
		// A log from before the markers: kept to be looked at.
		if s.unmarked < 0 {
			s.unmarked = ev.Seq
		}
	} else if info != nil && s.unmarked >= 0 {
		return refuse("SURFACE_MARKER_REQUIRED", s.unmarked, "some messages carry a surface marker and this one does not")
	} else {
		var err *Error
		if pl, err = s.planner.plan(s.surface.nodes, &ev, s.target); err != nil {
			return err
		}
	}
	s.commit(&ev, info, pl)
	return nil
}

// noMarkers reports that no event so far had a marker.
func (s *Session) noMarkers() bool { return len(s.surface.nodes) == 0 && s.surface.generation == 0 }

// NoMarkers reports whether the log has messages but not one surface marker.
func (s *Session) NoMarkers() bool { return s.unmarked >= 0 }

// own gives an event a line in the log's own memory and checks hand-made
// bytes.
func (s *Session) own(ev *Event) error {
	if ev.state&textValid == 0 {
		if err := jsonwire.Strict(ev.Data); err != nil {
			return refuse("NOT_JSON", s.log.len, "data cannot be written: "+err.Error())
		}
		if bytes.IndexByte(ev.Data, '\n') >= 0 || bytes.IndexByte(ev.Data, '\r') >= 0 {
			ev.Data = jsonwire.Compact(ev.Data)
		}
		if err := cleanSources(&ev.Sources, s.log.len); err != nil {
			return err
		}
	}
	if ev.line != nil && ev.state&inLine != 0 {
		data, src := len(ev.Data), len(ev.Sources.text)
		line := s.log.keep(ev.line)
		ev.line = line
		ev.Data = line[ev.dataOff : int(ev.dataOff)+data : int(ev.dataOff)+data]
		if ev.Sources.text != nil {
			ev.Sources.text = line[ev.srcOff : int(ev.srcOff)+src : int(ev.srcOff)+src]
		}
		return nil
	}
	if ev.line != nil { // an upgraded view: its stored line stays beside it
		ev.line = s.log.keep(ev.line)
		return nil
	}
	s.encode(ev)
	return nil
}

// encode writes the canonical line of an event into the log's memory and
// points the event's spans into it.
func (s *Session) encode(ev *Event) {
	b := append(s.scratch[:0], `{"type":`...)
	b = jsonwire.AppendString(b, string(ev.Type))
	b = append(b, `,"seq":`...)
	b = jsonwire.AppendInt(b, int64(ev.Seq))
	b = append(b, `,"time":`...)
	b = jsonwire.AppendInt(b, ev.Time)
	b = append(b, `,"data":`...)
	dataAt := len(b)
	b = append(b, ev.Data...)
	s.finish(ev, b, dataAt)
}

// finish ends a line whose data stands from dataAt on, and keeps it.
func (s *Session) finish(ev *Event, b []byte, dataAt int) {
	dataEnd, srcAt := len(b), 0
	if ev.Sources.text != nil {
		b = append(b, `,"sourceEventSeqs":`...)
		srcAt = len(b)
		b = append(b, ev.Sources.text...)
	}
	srcEnd := len(b)
	switch ev.Op.kind {
	case opNone:
	case opAppend:
		b = append(b, `,"surfaceOp":"append"`...)
	default:
		b = append(b, `,"surfaceOp":`...)
		b = ev.Op.appendJSON(b)
	}
	if ev.Ignorable {
		b = append(b, `,"ignorable":true`...)
	}
	b = append(b, '}')
	s.scratch = b
	if cap(b) > 1<<16 {
		s.scratch = nil
	}
	line := s.log.keep(b)
	ev.line = line
	ev.Data, ev.dataOff = line[dataAt:dataEnd:dataEnd], uint32(dataAt)
	if srcAt > 0 {
		ev.Sources.text, ev.srcOff = line[srcAt:srcEnd:srcEnd], uint32(srcAt)
	}
	ev.state |= textValid | inLine
}

func (r Run) cloneInto(w *logWriter) Run {
	if r.part { // write what is left of it as a row of its own
		line := r.appendRow(nil)
		c, err := DecodeRun(line)
		if err == nil {
			return c
		}
	}
	r.line = w.keep(r.line)
	return r
}

// endSeed appends the mark that ends a seed; only constructors write it.
func (s *Session) endSeed() {
	if n := s.log.len; n > 0 && s.log.At(n-1).Type == TypeEndSeed {
		s.firstNew = n
		return
	}
	ev := Event{Type: TypeEndSeed, Seq: s.log.len, Time: s.now(), Data: []byte("{}"), state: textValid}
	s.firstNew = ev.Seq
	s.encode(&ev)
	s.commit(&ev, nil, plan{})
}

func (s *Session) now() int64 {
	if s.opts.Now != nil {
		return s.opts.Now()
	}
	if n := s.log.len; n > 0 {
		e, _ := s.log.entry(s.log.entries - 1)
		if e.flags&flagRow == 0 {
			return e.time
		}
		return s.log.At(n - 1).Time
	}
	return s.header.CreatedAt
}

// note keeps what later reads ask for.
func (s *Session) note(ev *Event) {
	switch ev.Type {
	case TypeRequestHeader:
		s.headerAt = ev.Seq
	case TypeRequestContext:
		s.contextAt = ev.Seq
	}
}

// target finds the event at a position of the surface.
func (s *Session) target(pos int) ([]byte, bool) {
	seq := s.surface.nodes[pos]
	e, _ := s.log.entry(s.log.find(seq))
	line := e.line()
	return line[e.dataOff : e.dataOff+e.dataLen], e.typ == idResult
}

// Header is the session's header.
func (s *Session) Header() Header { return s.header }

// ID is the session's id.
func (s *Session) ID() string { return s.header.ID }

// Len is the number of committed events, and so the seq of the next one.
func (s *Session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.log.len)
}

// Log is the committed log as it is now.
func (s *Session) Log() Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil {
		v := s.log.logData
		s.view = &v
	}
	return s.view
}

// Stored is the number of events that came out of the store; the events from
// that seq on were appended since the session was opened. It is 0 for a new
// session and for a seed.
func (s *Session) Stored() Seq { return s.stored }

// FirstLive is the seq of the session/end-seed that this session's constructor
// wrote, or the log's length then when it ended with one already.
func (s *Session) FirstLive() Seq { return s.firstNew }

// Surface is the read-only view of the session's one surface manager, the same
// each time.
func (s *Session) Surface() Surface { return Surface{s} }

// Err is the error that ended the session, or nil.
func (s *Session) Err() error {
	if p := s.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// Fail ends the session: every later append answers with an error that wraps
// ErrFailed and cause. A store calls it when it can never write again.
func (s *Session) Fail(cause error) {
	err := fmt.Errorf("%w: %w", ErrFailed, cause)
	s.failed.CompareAndSwap(nil, &err)
}

// Observe adds an observer, see Options.Observers, and returns what removes it.
func (s *Session) Observe(f func(Event)) (remove func()) {
	o := &observer{f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observers = append(s.observers[:len(s.observers):len(s.observers)], o)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		kept := make([]*observer, 0, len(s.observers))
		for _, have := range s.observers {
			if have != o {
				kept = append(kept, have)
			}
		}
		s.observers = kept
	}
}
