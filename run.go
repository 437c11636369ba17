package outcrop

import (
	"bytes"
	"iter"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Run is a packed row: one line of a log that stands for several
// assistant/chunk events which differ only in their text and time.
//
//	{"type":"text-chunks","seq0":4,"time0":1000,
//	 "data":{"turn":2,"step":1,"index":0,"dt":[2,2],"texts":["Go"," is"," fun"]}}
//
// Member i is the event with seq seq0+i and time time0+dt[0]+...+dt[i-1]. A
// row of tool calls has id, an optional name, and args in place of texts.
// Turn, step, index and the strings stay the tokens that the line has, so that
// odd numbers and halves of surrogate pairs survive.
type Run struct {
	First Seq
	Len   int

	line    []byte // the whole row
	time0   int64
	skip    int32  // members of the row that stand before First (a run cut at its head)
	dataOff uint32 // data inside line
	dataLen uint32
	kind    rowKind
	part    bool // only a part of its row
	usual   bool // see Usual
}

// rowKind tells the three kinds of rows apart; the zero value is none.
type rowKind byte

const (
	textRow rowKind = iota + 1
	reasoningRow
	callRow
)

func (k rowKind) String() string {
	return [...]string{"", rowText, rowReasoning, rowToolCall}[k]
}

// rowSpans are the parts of a row's data, as spans of its line.
type rowSpans struct {
	kind                                     rowKind
	turn, step, index, id, name, dt, members []byte
}

// spans walks the row's data, whose shape was checked. They are not kept: most
// rows are loaded and never looked into.
func (r *Run) spans() rowSpans {
	s := rowSpans{kind: r.kind}
	s.fill(r.data())
	return s
}

func (r *Run) data() []byte { return r.line[r.dataOff : r.dataOff+r.dataLen] }

// IsRow reports whether a line that is one valid JSON object is a packed row.
func IsRow(line []byte) bool {
	// Every writer puts the type first.
	if i := jsonwire.Space(line, 0); i < len(line) && line[i] == '{' {
		rest := line[i:]
		if bytes.HasPrefix(rest, []byte(`{"type":"`)) {
			return rowKindOf(rest[8:min(len(rest), 27)]) != 0
		}
	}
	return rowKindOf(jsonwire.Get(line, "type")) != 0
}

// rowKindOf looks at a type token, possibly with bytes behind it.
func rowKindOf(tok []byte) rowKind {
	switch {
	case bytes.HasPrefix(tok, []byte(`"text-chunks"`)):
		return textRow
	case bytes.HasPrefix(tok, []byte(`"reasoning-chunks"`)):
		return reasoningRow
	case bytes.HasPrefix(tok, []byte(`"tool-call-chunks"`)):
		return callRow
	}
	return 0
}

// DecodeRun reads a packed row from its line, which must not change
// afterwards, and checks its shape in full. A line that is no JSON gives a
// syntax error, a bad row one of the ROW_ codes.
func DecodeRun(line []byte) (Run, error) {
	if r, ok := scanRow(line); ok {
		r.usual = true
		return r, nil
	}
	return parseRow(line)
}

// parseRow reads a row in any spelling.
func parseRow(line []byte) (Run, error) {
	r := Run{line: line[:len(line):len(line)]}
	if end, err := jsonwire.Value(line, 0); err != nil {
		return r, err
	} else if end = jsonwire.Space(line, end); end != len(line) {
		return r, &jsonwire.SyntaxError{Offset: end, Msg: "trailing bytes after the object"}
	}
	var typ, seq0, time0, data []byte
	extra := false
	for k, v := range jsonwire.Members(line) {
		switch jsonwire.Key(k) {
		case "type":
			typ = v
		case "seq0":
			seq0 = v
		case "time0":
			time0 = v
		case "data":
			data = v
		default:
			extra = true
		}
	}
	bad := func(code Code, msg string) (Run, error) {
		return r, refuse(code, -1, "packed row: "+msg)
	}
	if typ != nil && bytes.IndexByte(typ, '\\') >= 0 {
		s, _ := jsonwire.Text(typ)
		typ = jsonwire.AppendString(nil, s)
	}
	r.kind = rowKindOf(typ)
	if extra || seq0 == nil || time0 == nil || data == nil || r.kind == 0 {
		return bad("ROW_ENVELOPE", "members must be type, seq0, time0, data")
	}
	n, ok := jsonwire.Int(seq0)
	if !ok || n < 0 {
		return bad("ROW_SEQ0", "seq0 is not a non-negative integer")
	}
	r.First = Seq(n)
	if r.time0, ok = jsonwire.Int(time0); !ok {
		return bad("ROW_TIME0", "time0 is not an integer")
	}
	switch jsonwire.Kind(data) {
	case '{':
	case '[':
		return bad("ROW_DATA_KEYS", "data has not the members of its row")
	default:
		return bad("ROW_DATA_OBJECT", "data is not an object")
	}
	r.dataOff, r.dataLen = spanOffset(line, data), uint32(len(data))
	parts := rowSpans{kind: r.kind}
	if !parts.fill(data) {
		return bad("ROW_DATA_KEYS", "data has not the members of its row")
	}
	return r.checkMembers(&parts)
}

// fill takes the members of data and reports whether they are exactly those
// of the row's kind.
func (s *rowSpans) fill(data []byte) bool {
	ok := true
	for k, v := range jsonwire.Members(data) {
		switch string(k) {
		case "turn":
			s.turn = v
		case "step":
			s.step = v
		case "index":
			s.index = v
		case "dt":
			s.dt = v
		case "texts":
			ok = ok && s.kind != callRow
			s.members = v
		case "args":
			ok = ok && s.kind == callRow
			s.members = v
		case "id":
			ok = ok && s.kind == callRow
			s.id = v
		case "name":
			ok = ok && s.kind == callRow
			s.name = v
		default:
			ok = false
		}
	}
	return ok && s.turn != nil && s.step != nil && s.index != nil && s.dt != nil && s.members != nil &&
		(s.kind == callRow) == (s.id != nil)
}

func (r Run) checkMembers(s *rowSpans) (Run, error) {
	bad := func(code Code, msg string) (Run, error) {
		return r, refuse(code, -1, "packed row: "+msg)
	}
	for _, v := range [...][]byte{s.turn, s.step, s.index} {
		if jsonwire.Kind(v) != '0' {
			return bad("ROW_COORDINATES", "turn, step and index must be numbers")
		}
	}
	if s.id != nil && s.id[0] != '"' || s.name != nil && s.name[0] != '"' {
		return bad("ROW_ID", "id and name must be strings")
	}
	n := countStrings(s.members)
	if n <= 0 {
		return bad("ROW_PAYLOAD", "the members must be a non-empty list of strings")
	}
	r.Len = n
	if jsonwire.Kind(s.dt) != '[' {
		return bad("ROW_DT", "dt is not a list of integers")
	}
	t, steps := r.time0, 0
	inRange := true
	var notInt bool
	eachInt(s.dt, func(d int64, ok bool) {
		if !ok {
			notInt = true
			return
		}
		steps++
		if t += d; t > jsonwire.MaxSafe || t < -jsonwire.MaxSafe {
			inRange = false
		}
	})
	switch {
	case notInt:
		return bad("ROW_DT", "dt is not a list of integers")
	case steps != n-1:
		return bad("ROW_DT_LENGTH", "dt must have one element less than the members")
	case !inRange:
		return bad("ROW_TIME_RANGE", "a time leaves the range of exact integers")
	case int64(r.First)+int64(n)-1 > jsonwire.MaxSafe+1:
		return bad("ROW_SEQ_RANGE", "a seq leaves the range of exact integers")
	}
	return r, nil
}

// countStrings counts the elements of an array of strings; -1 when it is no
// array or has another element.
func countStrings(arr []byte) int {
	if jsonwire.Kind(arr) != '[' {
		return -1
	}
	i, n := jsonwire.Space(arr, 0)+1, 0
	for {
		i = jsonwire.Space(arr, i)
		if i >= len(arr) || arr[i] == ']' {
			return n
		}
		if arr[i] != '"' {
			return -1
		}
		n++
		i = jsonwire.Space(arr, jsonwire.Skip(arr, i))
		if i < len(arr) && arr[i] == ',' {
			i++
		}
	}
}

// eachInt calls f for each element of an array of numbers.
func eachInt(arr []byte, f func(n int64, ok bool)) {
	i := jsonwire.Space(arr, 0) + 1
	for i < len(arr) {
		// The common element: digits and a comma.
		start, n := i, int64(0)
		for i < len(arr) && arr[i]-'0' <= 9 && i-start < 15 {
			n = n*10 + int64(arr[i]-'0')
			i++
		}
		if i > start && i < len(arr) && (arr[i] == ',' || arr[i] == ']') {
			f(n, true)
			if arr[i] == ']' {
				return
			}
			i++
			continue
		}
		i = jsonwire.Space(arr, start)
		if i >= len(arr) || arr[i] == ']' {
			return
		}
		end := jsonwire.Skip(arr, i)
		f(jsonwire.Int(arr[i:end]))
		i = jsonwire.Space(arr, end)
		if i < len(arr) && arr[i] == ',' {
			i++
		} else {
			return
		}
	}
}

// Usual reports whether DecodeRun found the row spelled as every writer spells
// it: members in their order, each once, and plain integers.
func (r *Run) Usual() bool { return r.usual }

// coordinates are the tokens of turn and step.
func (r *Run) coordinates() (turn, step []byte) {
	if !r.usual {
		s := r.spans()
		return s.turn, s.step
	}
	d := r.data()[len(`{"turn":`):]
	turn = d[:bytes.IndexByte(d, ',')]
	d = d[len(turn)+len(`,"step":`):]
	return turn, d[:bytes.IndexByte(d, ',')]
}

// Line is the row as it is stored; nil when the run was cut and its line would
// say more than the run holds.
func (r *Run) Line() []byte {
	if r.part {
		return nil
	}
	return r.line
}

// Last is the seq of the run's last event.
func (r *Run) Last() Seq { return r.First + Seq(r.Len) - 1 }

// Events yields the events of the run in order, each in dsh's member order.
func (r *Run) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		s := r.spans()
		r.each(&s, func(i int, time int64, member []byte) bool {
			return yield(r.event(&s, i, time, member))
		})
	}
}

// At returns event i of the run, 0 the first. It walks the row up to i.
func (r *Run) At(i int) (e Event) {
	s := r.spans()
	r.each(&s, func(k int, time int64, member []byte) bool {
		if k == i {
			e = r.event(&s, k, time, member)
			return false
		}
		return true
	})
	return e
}

// each calls f with index, time and string token of each event.
func (r *Run) each(s *rowSpans, f func(i int, time int64, member []byte) bool) {
	dt, mem := s.dt, s.members
	skip := int(r.skip)
	d, m := jsonwire.Space(dt, 0)+1, jsonwire.Space(mem, 0)+1
	t := r.time0
	for k := 0; k < skip+r.Len; k++ {
		m = jsonwire.Space(mem, m)
		if m >= len(mem) || mem[m] == ']' {
			return
		}
		end := jsonwire.Skip(mem, m)
		if k >= skip && !f(k-skip, t, mem[m:end]) {
			return
		}
		m = jsonwire.Space(mem, end)
		if m < len(mem) && mem[m] == ',' {
			m++
		}
		d = jsonwire.Space(dt, d)
		if d < len(dt) && dt[d] != ']' {
			end := jsonwire.Skip(dt, d)
			n, _ := jsonwire.Int(dt[d:end])
			t += n
			d = jsonwire.Space(dt, end)
			if d < len(dt) && dt[d] == ',' {
				d++
			}
		}
	}
}

func (r *Run) event(s *rowSpans, i int, time int64, member []byte) Event {
	return Event{Type: TypeAssistantChunk, Seq: r.First + Seq(i), Time: time, Data: s.appendData(nil, member), state: textValid, tag: chunkTag}
}

// appendData builds the data of one event of the row.
func (s *rowSpans) appendData(dst, member []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, 96+len(s.turn)+len(s.step)+len(s.index)+len(s.id)+len(s.name)+len(member))
	}
	dst = append(append(dst, `{"turn":`...), s.turn...)
	dst = append(append(dst, `,"step":`...), s.step...)
	switch s.kind {
	case textRow:
		dst = append(dst, `,"chunk":{"type":"text-delta","index":`...)
	case reasoningRow:
		dst = append(dst, `,"chunk":{"type":"reasoning-delta","index":`...)
	default:
		dst = append(dst, `,"chunk":{"type":"tool-call-delta","index":`...)
	}
	dst = append(dst, s.index...)
	if s.kind == callRow {
		dst = append(append(dst, `,"id":`...), s.id...)
		if s.name != nil {
			dst = append(append(dst, `,"name":`...), s.name...)
		}
		dst = append(append(dst, `,"argumentsDelta":`...), member...)
	} else {
		dst = append(append(dst, `,"text":`...), member...)
	}
	return append(dst, '}', '}')
}

// Turn and Step are the coordinates of the run's chunks; 0 when they are no
// safe integers.
func (r *Run) Turn() int { s := r.spans(); n, _ := jsonwire.Int(s.turn); return int(n) }

// Step is the step of the run's chunks.
func (r *Run) Step() int { s := r.spans(); n, _ := jsonwire.Int(s.step); return int(n) }

// Record is what a log stores: one event, or a run of chunk deltas that stands
// for several. When Run is set, Event has the type, seq and time of its first
// event and no data.
type Record struct {
	Event
	Run *Run
}

// RunRecord makes the record of a run.
func RunRecord(r *Run) Record {
	return Record{Event: Event{Type: TypeAssistantChunk, Seq: r.First, Time: r.headTime(), state: textValid, tag: chunkTag}, Run: r}
}

func (r *Run) headTime() int64 {
	if r.skip == 0 {
		return r.time0
	}
	var t int64
	s := r.spans()
	r.each(&s, func(_ int, time int64, _ []byte) bool { t = time; return false })
	return t
}

// Count is the number of events that the record stands for.
func (r Record) Count() int {
	if r.Run != nil {
		return r.Run.Len
	}
	return 1
}

// Last is the seq of the record's last event.
func (r Record) Last() Seq { return r.Seq + Seq(r.Count()) - 1 }

// Events yields the record's events in order.
func (r Record) Events() iter.Seq[Event] {
	if r.Run != nil {
		return r.Run.Events()
	}
	return func(yield func(Event) bool) { yield(r.Event) }
}
