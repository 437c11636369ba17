package outcrop

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Seq is an event's index in its log: dense, from 0.
type Seq int64

// Event is one immutable entry of a log. It is a view: Data, Sources and Line
// share the log's memory, are read-only and have no spare capacity; Clone
// detaches them.
//
// The JSON form is that of session format version 0: an object with exactly
// the members type, seq, time, data and, where they apply, sourceEventSeqs,
// surfaceOp and ignorable (true).
type Event struct {
	Type      Type
	Seq       Seq
	Time      int64 // Unix milliseconds; may go backwards from one event to the next
	Data      json.RawMessage
	Sources   Sources
	Op        SurfaceOp
	Ignorable bool // a reader that does not know Type may skip the event

	line    []byte   // the stored line without its newline; nil when the event was made by hand
	dataOff uint32   // where Data and Sources start in line; valid when text is
	srcOff  uint32   //
	state   evState  // what is known about the bytes
	tag     typeTag  // of Type
	bad     envFault // first fault of the envelope, judged at admission
}

type evState uint8

const (
	textValid  evState = 1 << iota // Data and Sources are valid JSON
	inLine                         // Data and Sources are spans of line
	seqUnknown                     // seq is not a non-negative safe integer
	distinct                       // see MarkDistinct
)

// envFault is the part of an envelope that is out of contract.
type envFault uint8

const (
	envGood    envFault = iota
	envMember           // a member outside the seven
	envType             // type absent or not a string
	envSeq              // seq not a non-negative safe integer
	envTime             // time not a safe integer
	envData             // no data
	envIgnored          // ignorable is something else than true
)

func (f envFault) String() string {
	return [...]string{"", "unknown member", "type is not a string", "seq is not a non-negative integer",
		"time is not an integer", "data is missing", "ignorable is not true"}[f]
}

// DecodeEvent reads one event from its JSON text and keeps the bytes: Data,
// Sources and Line are spans of line, which must not change afterwards.
//
// It fails only when line is not one JSON object. An object whose members are
// out of contract is returned as it is and refused at admission, so that a
// reader can still show it.
func DecodeEvent(line []byte) (Event, error) {
	e := Event{line: line[:len(line):len(line)], state: inLine}
	i := jsonwire.Space(line, 0)
	if i >= len(line) {
		return e, &jsonwire.SyntaxError{Offset: i, Msg: "empty line"}
	}
	if line[i] != '{' {
		if err := jsonwire.Valid(line); err != nil {
			return e, err
		}
		return e, ErrNotObject
	}
	var fault envFault
	note := func(f envFault) {
		if fault == envGood {
			fault = f
		}
	}
	var have uint8 // 1 type, 2 seq, 4 time, 8 data
	i = jsonwire.Space(line, i+1)
	for first := true; ; first = false {
		if i >= len(line) {
			return e, &jsonwire.SyntaxError{Offset: i, Msg: "text ends inside an object"}
		}
		if line[i] == '}' && first {
			i++
			break
		}
		if line[i] != '"' {
			return e, &jsonwire.SyntaxError{Offset: i, Msg: "member name missing"}
		}
		nameEnd, err := jsonwire.String(line, i)
		if err != nil {
			return e, err
		}
		key := line[i+1 : nameEnd-1]
		if i = jsonwire.Space(line, nameEnd); i >= len(line) || line[i] != ':' {
			return e, &jsonwire.SyntaxError{Offset: i, Msg: "colon missing"}
		}
		i = jsonwire.Space(line, i+1)
		end, err := jsonwire.Value(line, i)
		if err != nil {
			return e, err
		}
		v := line[i:end:end]
		at := i
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(jsonwire.Key(key))
		}
		switch string(key) {
		case "type":
			have |= 1
			e.Type, e.tag = internType(v)
			if e.tag == noTag {
				s, ok := jsonwire.Text(v)
				if e.Type, e.tag = Type(s), Type(s).tag(); !ok {
					note(envType)
				}
			}
		case "seq":
			have |= 2
			e.state &^= seqUnknown
			n, ok := jsonwire.Int(v)
			e.Seq = Seq(n)
			if !ok || n < 0 {
				e.Seq = -1
				e.state |= seqUnknown
				note(envSeq)
			}
		case "time":
			have |= 4
			n, ok := jsonwire.Int(v)
			e.Time = n
			if !ok {
				note(envTime)
			}
		case "data":
			have |= 8
			e.Data, e.dataOff = json.RawMessage(v), uint32(at)
		case "sourceEventSeqs":
			e.Sources, e.srcOff = Sources{v}, uint32(at)
		case "surfaceOp":
			e.Op = parseOp(v)
		case "ignorable":
			e.Ignorable = string(v) == "true"
			if !e.Ignorable {
				note(envIgnored)
			}
		default:
			note(envMember)
		}
		i = jsonwire.Space(line, end)
		if i < len(line) && line[i] == ',' {
			i = jsonwire.Space(line, i+1)
			continue
		}
		if i < len(line) && line[i] == '}' {
			i++
			break
		}
		return e, &jsonwire.SyntaxError{Offset: i, Msg: "expected , or }"}
	}
	if i = jsonwire.Space(line, i); i != len(line) {
		return e, &jsonwire.SyntaxError{Offset: i, Msg: "trailing bytes after the object"}
	}
	switch {
	case have&1 == 0:
		note(envType)
	case have&2 == 0:
		e.Seq = -1
		e.state |= seqUnknown
		note(envSeq)
	case have&4 == 0:
		note(envTime)
	case have&8 == 0:
		note(envData)
	}
	if have&2 == 0 {
		e.Seq = -1
		e.state |= seqUnknown
	}
	e.bad = fault
	e.state |= textValid
	if e.tag == noTag {
		e.tag = foreignTag
	}
	return e, nil
}

// Sound reports whether Line is known to be the text of one event: DecodeEvent
// read it, or a session or an Encoder wrote it.
func (e *Event) Sound() bool { return e.line != nil && e.state&textValid != 0 && e.bad == envGood }

// class is the class of the event's type.
func (e *Event) class() class {
	if e.tag == noTag {
		return e.Type.class()
	}
	return e.tag.class()
}

// ErrNotObject is DecodeEvent's error for JSON that is not an object.
var ErrNotObject = fmt.Errorf("a record must be a JSON object: %w", ErrRefused)

// Line is the event as its log stores it, without the newline: the very bytes
// it came with. It is nil for an event that was made by hand or that came out
// of a packed row.
func (e Event) Line() []byte { return e.line }

// AppendJSON appends the event's JSON text: its line when it has one, else the
// members in the order of a live writer.
func (e Event) AppendJSON(dst []byte) []byte {
	if e.line != nil {
		return append(dst, e.line...)
	}
	return e.appendCanonical(dst)
}

func (e *Event) appendCanonical(dst []byte) []byte {
	dst = append(dst, `{"type":`...)
	dst = jsonwire.AppendString(dst, string(e.Type))
	dst = append(dst, `,"seq":`...)
	dst = jsonwire.AppendInt(dst, int64(e.Seq))
	dst = append(dst, `,"time":`...)
	dst = jsonwire.AppendInt(dst, e.Time)
	dst = append(dst, `,"data":`...)
	dst = append(dst, e.Data...)
	if e.Sources.Known() {
		dst = append(dst, `,"sourceEventSeqs":`...)
		dst = append(dst, e.Sources.text...)
	}
	if !e.Op.IsZero() {
		dst = append(dst, `,"surfaceOp":`...)
		dst = e.Op.appendJSON(dst)
	}
	if e.Ignorable {
		dst = append(dst, `,"ignorable":true`...)
	}
	return append(dst, '}')
}

// MarshalJSON implements json.Marshaler.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// Clone returns a copy that shares no memory with the log.
func (e Event) Clone() Event {
	if e.line != nil && e.state&inLine != 0 {
		c, err := DecodeEvent(bytes.Clone(e.line))
		if err == nil {
			return c
		}
	}
	e.line = bytes.Clone(e.line)
	e.Data = bytes.Clone(e.Data)
	e.Sources.text = bytes.Clone(e.Sources.text)
	return e
}

// Upgraded returns the event as a reader of old shapes sees it, with another
// type and other data, while Line stays the bytes that are stored. data must be
// valid JSON.
func (e Event) Upgraded(t Type, data json.RawMessage) Event {
	e.Type, e.Data, e.tag = t, data, t.tag()
	e.state &^= inLine | distinct
	return e
}

// MarkDistinct notes that no object in the event's line has two members of one
// name, so that whoever looks for a member may stop at the first.
func (e *Event) MarkDistinct() { e.state |= distinct }

// Sourced returns the event with its sources in another spelling, while Line
// stays the bytes that are stored. It is the view of a list in which runs of
// seqs are written as ranges.
func (e Event) Sourced(s Sources) Event {
	e.Sources = s
	e.state &^= inLine
	return e
}

// Recast returns the event as another session format has it: with another type,
// seq, data, sources and place on the surface, and without the line that it came
// with. data and sources must be parts of the event's own text or valid JSON.
func (e Event) Recast(t Type, seq Seq, data json.RawMessage, sources Sources, op SurfaceOp) Event {
	return Event{Type: t, Seq: seq, Time: e.Time, Data: data, Sources: sources, Op: op, Ignorable: e.Ignorable,
		state: e.state & textValid, tag: t.tag(), bad: e.bad}
}

// Current returns an event that is seen through an upgrade in the present
// shape alone, without the line it came with; another event as it is. A copy
// under another session id holds this: what an old shape leaves out is filled
// in from the id.
func (e Event) Current() Event {
	if e.line != nil && e.state&inLine == 0 {
		e.line = nil
	}
	return e
}
