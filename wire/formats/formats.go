// Package formats turns the events of dsh's later session formats into events
// of format 0, and those of format 0 into events of format 3. It knows nothing
// of files: package wire reads and writes their lines and frames.
//
//	format  file                       written by
//	0       session.jsonl[.zstd]       dsh 0.0.1 to 0.1.2, this program
//	1       session.v1.jsonl[.zstd]    no release
//	2       session.v2.jsonl[.zstd]    dsh 0.1.3
//	3       session.v3.jsonl[.zstd]    dsh 0.1.5 and 0.1.6
//	4       session.v4.jsonl[.zstd]    dsh 0.1.7 and later
//
// The way down is a chain of adjacent steps, each of which knows two formats:
//
//	4 to 3  role tool of results, kinds of sources, plugin: names, developer/message
//	3 to 2  system/message into request/header, names of replace and of dispatched calls
//	2 to 1  embedded streams into assistant/chunk, the cut of a seed
//	1 to 0  nothing but the number
//
// # Seqs
//
// Events that come, go or become several make the seqs of two formats differ.
// Each step numbers anew and carries every reference of a log to itself along:
// sourceEventSeqs, the ends of a replace, and the members of data that name
// events. What Lower gives are the seqs of the view, as format 0 has them; Own
// and Seen tell one from the other. Numbers that name events of something else
// (delivery marks, captured references, turns, indexes of a stream) stay.
//
// # A view grows with its log
//
// The events made from the beginning of a log are the beginning of the events
// made from all of it: no step waits for what comes later. So a reader may stop
// and go on, and a fork of a prefix is a prefix.
//
// # What has no place in format 0
//
// Unknown members and types pass through. A system prompt that stands inside the
// conversation becomes a user/message that the program injected; a
// developer/message likewise, without its changes of tools, which are kept in
// its member toolChanges. Later log-only types of dsh become ignorable.
//
// # Codes
//
//	FORMAT_MARKER      a surfaceOp in the words of another format
//	FORMAT_REFERENCE   a replace or sources name an event that does not stand before
//	FORMAT_RANGE       a range in sourceEventSeqs that is no range of earlier seqs
//	FORMAT_UNWRITABLE  an event that format 3 cannot hold
package formats

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
)

// Newest is the latest format that is read.
const Newest = 4

// Types of later formats.
const (
	typeSystem    outcrop.Type = "system/message"
	typeDeveloper outcrop.Type = "developer/message"
	typeAttempt   outcrop.Type = "assistant/attempt"

	typeCodeStart outcrop.Type = "tool/code-dispatch-start"
	typeCode      outcrop.Type = "tool/code-dispatch"
	typePTCStart  outcrop.Type = "tool/ptc-dispatch-start"
	typePTC       outcrop.Type = "tool/ptc-dispatch"

	typePreset       outcrop.Type = "agent-preset/selected"
	typeTitleRequest outcrop.Type = "session/title-llm-request"
)

// later are log-only types that came with later formats or with the last
// releases of format 0. A program that writes format 0 may skip them.
var later = map[outcrop.Type]bool{
	"model/selection":                        true,
	"subagent/model-selection-policy":        true,
	"session-log-deepseek/delivery-accepted": true,
	"feedback/message-put":                   true,
	"feedback/message-delete":                true,
	"deliverables/presented":                 true,
	"subagent/catalog":                       true,
	"image/offload":                          true,
}

// stage is one step of a chain. Its events come in order, each with a seq of its
// format that is the number of events before it; where one could not be read its
// place stays free.
type stage interface {
	// add takes the next event and passes on what becomes of it. It reports
	// false when nothing more is wanted. An event that is refused keeps its
	// place, which stays free.
	add(outcrop.Event) (bool, *outcrop.Error)
	// gap leaves n seqs free.
	gap(n outcrop.Seq)
}

func refuse(code outcrop.Code, e *outcrop.Event, msg string) *outcrop.Error {
	return &outcrop.Error{Op: "read", Code: code, Seq: e.Seq, Offset: -1, Err: outcrop.ErrRefused, Msg: msg}
}

// Lower sees a log of a later format as one of format 0. It is for one goroutine
// and one log, whose records it gets in order. Its memory grows by 16 bytes for
// each stretch of events whose seqs move together.
type Lower struct {
	format  int
	first   stage
	next    outcrop.Seq // of the own log
	expand  int         // seqs that ranges may still stand for
	yield   func(outcrop.Record) bool
	unified *seqs // of the step 3 to 2, nil below
	chunks  *streams
}

// MaxRanged is how many seqs the ranges of one log may stand for in all, beside
// each of its events once: replies cite their chunks. A compaction names what it
// covers; this is a thousand compactions of a surface of 4,000 nodes.
const MaxRanged = 4 << 20

// NewLower begins a log of a format from 2 to Newest. Format 1 has the events of
// format 0.
func NewLower(format int) *Lower {
	l := &Lower{format: format, expand: MaxRanged}
	l.chunks = &streams{next: (*out)(l), cut: -1}
	l.first = l.chunks
	if format >= 3 {
		p := &prompts{next: l.first, head: -1}
		l.unified = &p.seqs
		l.first = p
	}
	if format >= 4 {
		l.first = &kinds{next: l.first}
	}
	return l
}

// Format is the format of the log.
func (l *Lower) Format() int { return l.format }

// Add takes the next record of the log as it is stored, and calls yield with
// what becomes of it. It reports false when yield did. The error is the refusal
// of the record, with its own seq; the next one may be added all the same.
func (l *Lower) Add(rec outcrop.Record, yield func(outcrop.Record) bool) (bool, *outcrop.Error) {
	l.yield = yield
	if gap := rec.Seq - l.next; gap > 0 {
		l.first.gap(gap) // a record that was too big to be read
	}
	l.next = rec.Last() + 1
	l.expand += rec.Count()
	if rec.Run == nil {
		return l.event(rec.Event)
	}
	// No writer of these formats makes rows; one that is there is read.
	for e := range rec.Run.Events() {
		if more, err := l.event(e); err != nil || !more {
			return more, err
		}
	}
	return true, nil
}

func (l *Lower) event(e outcrop.Event) (bool, *outcrop.Error) {
	own, more := e.Seq, true
	e, err := l.plain(e)
	if err != nil {
		l.first.gap(1)
	} else {
		more, err = l.first.add(e)
	}
	if err != nil {
		err.Seq = own
		err.Msg = fmt.Sprintf("dsh format %d: %s", l.format, err.Msg)
	}
	return more, err
}

// Cut is how many events of the view were inherited, as the last mark of a seed
// so far says; false when there was none.
func (l *Lower) Cut() (outcrop.Seq, bool) { return l.chunks.cut, l.chunks.cut >= 0 }

// Own is the seq in the log's own format of the event from which an event of the
// view was made; false for one that was not given yet.
func (l *Lower) Own(seen outcrop.Seq) (outcrop.Seq, bool) {
	if seen < 0 || seen >= l.chunks.seqs.next {
		return -1, false
	}
	own := l.chunks.seqs.back(seen)
	if l.unified != nil {
		own = l.unified.back(own)
	}
	return own, true
}

// Seen is the seq in the view of an event of the log: the last of several that
// it became. It is false for one that became none, such as a system prompt, and
// for one that was not added yet.
func (l *Lower) Seen(own outcrop.Seq) (outcrop.Seq, bool) {
	ok := true
	if l.unified != nil {
		own, ok = l.unified.of(own)
	}
	if !ok {
		return -1, false
	}
	return l.chunks.seqs.of(own)
}

// out is the end of the chain: what format 0 holds.
type out Lower

func (o *out) add(e outcrop.Event) (bool, *outcrop.Error) {
	if later[e.Type] && !e.Type.Known() {
		e.Ignorable = true
	}
	return o.yield(outcrop.Record{Event: e}), nil
}

func (o *out) row(r *outcrop.Run) bool { return o.yield(outcrop.RunRecord(r)) }

func (o *out) gap(outcrop.Seq) {}
