package wire

import (
	"bytes"
	"io"
	"slices"
	"sync"

	"github.com/outcrop-dev/outcrop"
)

// TurnState is what the end of a log shows about its last turn.
type TurnState uint8

const (
	TurnUnknown TurnState = iota // the turn began before the part that was read
	TurnClosed
	TurnOpen
)

// Last is what the end of a log shows without reading the rest. It is a view
// for listings: damage further up is not seen. Of a later format Seq and Type are
// those of the file.
type Last struct {
	Known bool         // a record was found; Seq and Time count
	Seq   outcrop.Seq  // of the last event, so Seq+1 is the number of events; -1 when there is none
	Type  outcrop.Type // of the last event
	Time  int64        // of the last event, Unix milliseconds
	Turn  TurnState
	Torn  bool // the file seems to end in a torn tail
}

// tailBytes is how much of the end of a file, and of its text, LastEvents
// looks at.
const tailBytes = 64 << 10

// tails holds the memory that LastEvents works in: a listing asks thousands of
// times, and nothing of it is kept.
var tails = sync.Pool{New: func() any { return &tailRoom{file: make([]byte, tailBytes)} }}

type tailRoom struct{ file, frame []byte }

// LastEvents reads at most the last 64 KiB of a log file. It trusts only lines
// that decode and, in a Zstd file, frames that pass their checksum; when there
// are none in that part, Known is false. The error is one of reading.
func LastEvents(r io.ReaderAt, size int64, enc Encoding) (Last, error) {
	none := Last{Seq: -1}
	room := tails.Get().(*tailRoom)
	defer tails.Put(room)
	for _, n := range [...]int64{4 << 10, 16 << 10, tailBytes} {
		n = min(n, size)
		b := room.file[:n]
		if m, err := readFull(r, b, size-n); err != nil && int64(m) < n {
			return none, err
		}
		var last Last
		var inside bool
		if enc == Zstd {
			last, inside = lastFrames(b, n == size, &room.frame)
		} else {
			last, inside = lastLines(b, n == size)
		}
		if last.Known && last.Turn != TurnUnknown || n == size || n == tailBytes {
			if inside && last.Turn == TurnUnknown {
				last.Turn = TurnOpen
			}
			return last, nil
		}
	}
	return none, nil
}

// lastLines walks lines backwards, until one begins or ends a turn. What lies
// behind a bad line or a seq gap is a torn tail and does not count. whole says
// that the text begins with the log's header line. inside: the turn began above
// the text, and an event that has its place in a step stands in it.
func lastLines(text []byte, whole bool) (last Last, inside bool) {
	last = Last{Seq: -1}
	end := bytes.LastIndexByte(text, '\n')
	last.Torn = end != len(text)-1
	var first outcrop.Seq // of the record behind
	for end >= 0 {
		start := bytes.LastIndexByte(text[:end], '\n') + 1
		line := text[start:end]
		end = start - 1
		if start == 0 {
			if whole {
				last.Known, last.Turn = true, TurnClosed // no turn ever began
				return last, false
			}
			break // the line may begin further up
		}
		var d decoded
		d.decode(line, false)
		switch {
		case d.what == isBlank:
			continue
		case d.what != isRecord || d.rec.Seq < 0:
			last, inside = Last{Seq: -1, Torn: true}, false
			continue
		case last.Known && d.rec.Last()+1 != first:
			last, inside = Last{Seq: -1, Torn: true}, false
		}
		if !last.Known {
			last.Known, last.Seq, last.Type, last.Time = true, d.rec.Last(), d.rec.Type, d.rec.Time
			if run := d.rec.Run; run != nil {
				last.Time = run.At(run.Len - 1).Time
			}
		}
		first = d.rec.Seq
		switch d.rec.Type {
		case outcrop.TypeTurnEnd:
			last.Turn = TurnClosed
			return last, false
		case outcrop.TypeTurnStart:
			last.Turn = TurnOpen
			return last, false
		case outcrop.TypeStepStart, outcrop.TypeStepEnd, outcrop.TypeAssistantChunk, outcrop.TypeAssistantMessage, outcrop.TypeToolCall,
			"system/message", "assistant/attempt": // of later formats
			inside = true
		}
	}
	return last, inside
}

// lastFrames looks for the last frames in b by their magic, from the end.
func lastFrames(b []byte, whole bool, room *[]byte) (last Last, inside bool) {
	last = Last{Seq: -1, Torn: true}
	var text []byte
	next := -1       // where the frame behind starts
	var starts []int // searching forward is much faster than backward
	for at := 0; ; at++ {
		i := bytes.Index(b[at:], magicBytes)
		if i < 0 {
			break
		}
		at += i
		starts = append(starts, at)
	}
	for _, at := range slices.Backward(starts) {
		f, bad, _ := scanFrame(memory(b), int64(at))
		if bad != nil || f.torn || !f.sum || next >= 0 && int(f.end) != next {
			continue
		}
		if f.bound > 4<<20 { // a frame that a listing does not open
			break
		}
		part, bad := decodeFrame(slices.Grow((*room)[:0], int(f.bound)), b[f.off:f.end], f)
		if bad != nil {
			continue
		}
		*room = part
		torn := next < 0 && int(f.end) != len(b) || next >= 0 && last.Torn
		text = slices.Concat(part, text)
		next = at
		first := whole && at == 0
		last, inside = lastLines(text, first)
		last.Torn = last.Torn || torn
		if last.Known && last.Turn != TurnUnknown || len(text) >= tailBytes {
			return last, inside
		}
	}
	return last, inside
}
