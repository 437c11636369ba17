package outcrop

import (
	"bytes"
	"iter"
	"slices"
	"unsafe"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Inspection judges the records of a stored log one after the other, by the
// rules of Inspect, and keeps none of them: its memory is nine bytes for each
// node of the surface, and what is known of the open turn. A record that is
// refused counts as an event that changes nothing, and the next one is judged
// all the same. It is for one goroutine.
type Inspection struct {
	s       Session // header, surface and planner; its log stays empty
	len     Seq
	data    func(Seq) []byte
	results []bool // of each node, whether it is a tool/result

	// Of the record that was added last.
	message []byte
	info    msgInfo
	parts   parts
	known   bool // parts and calls are its
	calls   []call

	open  openTurn
	start Seq // the turn/start of the open turn, -1 when none is open
}

// maxOpenCalls is how many calls of an open turn are followed.
const maxOpenCalls = 4096

// NewInspection begins the inspection of a log. data gives the data of a
// tool/result that stands on the surface; it is asked when another one replaces
// it. The error is that of a header out of contract.
func NewInspection(h Header, data func(Seq) []byte) (*Inspection, error) {
	if err := h.check(); err != nil {
		return nil, annotate(err, "read", h.ID)
	}
	return &Inspection{s: Session{header: h, unmarked: -1}, data: data, start: -1}, nil
}

// Add judges the next record. An error is the refusal of it, an *Error.
func (i *Inspection) Add(r Record) error {
	i.message, i.known = nil, false
	if r.Run != nil {
		if r.Run.First != i.len {
			err := seqGap(r.Run.First, i.len)
			i.len += Seq(r.Run.Len)
			return err
		}
		i.len += Seq(r.Run.Len)
		return nil
	}
	i.len++
	if err := i.admit(&r.Event, i.len-1); err != nil {
		return err
	}
	i.follow(&r.Event)
	return nil
}

// Pass counts n events that could not be read, which change nothing.
func (i *Inspection) Pass(n int) { i.len += Seq(n) }

func (i *Inspection) admit(ev *Event, seq Seq) error {
	s := &i.s
	if ev.state&textValid == 0 {
		// Made by hand, as a store in memory may hold it.
		if err := jsonwire.Strict(ev.Data); err != nil {
			return refuse("NOT_JSON", seq, "data cannot be written: "+err.Error())
		}
	}
	var info *msgInfo
	if ev.class().surface() {
		info = &i.info
		*info = msgInfo{parts: &i.parts}
	}
	if err := s.admit(ev, fromReading, seq, info); err != nil {
		return err
	}
	i.known = info != nil
	if i.calls = i.calls[:0]; ev.Type == TypeAssistantMessage {
		i.calls = appendCalls(i.calls, i.parts.content)
	}
	switch {
	case info != nil && ev.Op.kind == opNone && s.noMarkers():
		if s.unmarked < 0 {
			s.unmarked = seq
		}
		return nil
	case info != nil && s.unmarked >= 0:
		return refuse("SURFACE_MARKER_REQUIRED", s.unmarked, "some messages carry a surface marker and this one does not")
	}
	pl, err := s.planner.plan(s.surface.nodes, ev, func(pos int) ([]byte, bool) {
		if !i.results[pos] {
			return nil, false
		}
		return i.data(s.surface.nodes[pos]), true
	})
	if err != nil {
		return err
	}
	isResult := ev.class() == classResult
	switch pl.kind {
	case opAppend:
		i.results = append(i.results, isResult)
	case opReplace:
		i.results[pl.at] = isResult
		i.results = slices.Delete(i.results, pl.at+1, pl.at+pl.n)
	}
	s.surface.apply(pl, seq)
	if info != nil && !info.empty {
		end := info.off + info.len
		i.message = ev.Data[info.off:end:end]
	}
	return nil
}

// look finds the parts of an event, unless admission has found them.
func (i *Inspection) look(ev *Event) *parts {
	if !i.known {
		i.known, i.parts, i.calls = true, partsOf(ev), i.calls[:0]
		if ev.Type == TypeAssistantMessage {
			i.calls = appendCalls(i.calls, i.parts.content)
		}
	}
	return &i.parts
}

// follow keeps what the closers of the open turn depend on.
func (i *Inspection) follow(ev *Event) {
	switch ev.Type {
	case TypeTurnStart:
		i.start = ev.Seq
		i.open = openTurn{turn: bytes.Clone(i.look(ev).turn)}
	case TypeTurnEnd:
		i.start = -1
		i.open = openTurn{}
	case TypeStepStart, TypeStepEnd:
		i.open.take(ev, i.look(ev), nil)
		i.open.step = bytes.Clone(i.open.step)
	case TypeAssistantMessage, TypeToolCall, TypeToolResult:
		if i.start < 0 || len(i.open.calls) >= maxOpenCalls {
			return
		}
		p := i.look(ev)
		i.open.take(ev, p, i.calls)
		// The log's memory is not kept for a number.
		if step := p.step; ev.Type == TypeAssistantMessage && step != nil {
			own := bytes.Clone(step)
			for k := range i.open.calls {
				if c := &i.open.calls[k]; unsafe.SliceData(c.step) == unsafe.SliceData(step) {
					c.step = own
				}
			}
		}
	}
}

// Check is v.Check for the record that was added last, which has been looked
// into already, but for that the record counts as seen by v whatever was found.
// Of a run one event stands for all: they have the same turn and step.
func (i *Inspection) Check(v *Invariants, r *Record) []Violation {
	p := &i.parts
	if r.Run != nil {
		*p = parts{}
		p.turn, p.step = r.Run.coordinates()
	} else {
		p = i.look(&r.Event)
	}
	found := v.judge(&r.Event, p)
	v.apply(&r.Event, p)
	return found
}

// Calls yields the ids and blocks of the calls in the assistant/message r, the
// record that was added last.
func (i *Inspection) Calls(r *Record) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		i.look(&r.Event)
		for _, c := range i.calls {
			if !yield(c.id, c.block) {
				return
			}
		}
	}
}

// Answers is the id of the call that the tool/result r, the record that was
// added last, answers; "" when it names none.
func (i *Inspection) Answers(r *Record) string {
	id, _ := jsonwire.Text(i.look(&r.Event).callID)
	return id
}

// Message is the message that the record which was added last brought to the
// surface, as it was logged; nil when it brought none that the model sees.
func (i *Inspection) Message() []byte { return i.message }

// Len is the number of events so far.
func (i *Inspection) Len() int { return int(i.len) }

// Nodes are the seqs of the surface in model order. The slice changes with the
// next record: read it only.
func (i *Inspection) Nodes() []Seq { return i.s.surface.nodes }

// Generation is how many replaces there were.
func (i *Inspection) Generation() int { return i.s.surface.generation }

// NoMarkers reports whether the log has messages but not one surface marker.
func (i *Inspection) NoMarkers() bool { return i.s.unmarked >= 0 }

// OpenTurn is what the function OpenTurn says about the log.
func (i *Inspection) OpenTurn() (turn, step int, open bool) {
	if i.start < 0 {
		return 0, 0, false
	}
	t, _ := jsonwire.Int(i.open.turn)
	s, _ := jsonwire.Int(i.open.step)
	return int(t), int(s), true
}

// CheckClosers is what the function CheckClosers says about the log.
func (i *Inspection) CheckClosers() error {
	if i.start < 0 {
		return nil
	}
	return checkClosers(turnLog(i.start), i.open.close(i.len, 0))
}

// turnLog is the log of an open turn that begins at this seq, as far as the
// judgement of its closers looks at it.
type turnLog Seq

func (t turnLog) Len() int { return int(t) + 1 }

func (t turnLog) At(Seq) Event { return Event{Type: TypeTurnStart, Seq: Seq(t)} }

func (t turnLog) Records(Seq) iter.Seq[Record] {
	return func(yield func(Record) bool) { yield(Record{Event: t.At(Seq(t))}) }
}
