package outcrop

import (
	"bytes"
	"iter"
	"sort"
	"unsafe"
)

// Log is an immutable prefix of a session's events. It stays valid and does
// not change while the session goes on. It is safe for many goroutines.
type Log interface {
	// Len is the number of events.
	Len() int
	// At returns the event with this seq; it panics when seq is not in
	// [0, Len), as a slice does.
	At(Seq) Event
	// Records yields what the log stores from seq from on: events one by one,
	// packed rows as one record each. A row that holds from in its middle is
	// cut so that it begins there.
	Records(from Seq) iter.Seq[Record]
}

// An entry is one stored record: an event, or a row that stands for several.
// It is 56 bytes and points into memory that holds the record's line, either
// the block that a reader filled or an arena of the log.
type entry struct {
	p       *byte // the line, n bytes
	time    int64
	n       uint32
	dataOff uint32 // data inside the line
	dataLen uint32
	aux     uint32 // where the sources are in the line; for a row the number of its events
	msgOff  uint32 // message inside the line, for surface types
	msgLen  uint32
	idOff   uint32 // the message's id
	delta   uint32 // seq less the first seq of its chunk
	typ     typeID
	flags   entryFlags
}

type entryFlags uint16

const (
	flagRow entryFlags = 1 << iota
	flagAppend
	flagReplace
	flagIgnorable
	flagSources  // sources are known
	flagEmpty    // the message has no content and derives to nothing
	flagOriginal // the stored line is another one, see logData.originals
)

func (e *entry) line() []byte { return unsafe.Slice(e.p, int(e.n)) }

// A chunk is what a small session pays before its first event, so it is not
// long.
const chunkLen = 256

type chunk [chunkLen]entry // a size that the allocator has

// logData holds the entries. The slices only grow, and what is behind a
// captured length is never written again, so that a copy of the struct is an
// immutable view.
type logData struct {
	chunks    []*chunk
	firsts    []Seq // first seq of each chunk
	entries   int   // in all chunks
	len       Seq   // events
	names     []Type
	replaces  []replaceAt // by seq
	originals []original  // by seq
}

type replaceAt struct{ seq, start, end Seq }

// original is the stored line of an event whose entry holds an upgraded view.
type original struct {
	seq  Seq
	line []byte
}

// Len implements Log.
func (d *logData) Len() int { return int(d.len) }

func (d *logData) entry(k int) (*entry, Seq) {
	e := &d.chunks[k/chunkLen][k%chunkLen]
	return e, d.firsts[k/chunkLen] + Seq(e.delta)
}

// find returns the index of the entry that holds seq.
func (d *logData) find(seq Seq) int {
	// Without rows an entry stands at its seq; with rows before it, earlier.
	c := min(int(seq/chunkLen), len(d.chunks)-1)
	if d.firsts[c] > seq || c+1 < len(d.firsts) && d.firsts[c+1] <= seq {
		c = sort.Search(len(d.firsts), func(i int) bool { return d.firsts[i] > seq }) - 1
	}
	ch := d.chunks[c]
	n := min(d.entries-c*chunkLen, chunkLen)
	want := uint32(seq - d.firsts[c])
	if int(want) < n && ch[want].delta == want {
		return c*chunkLen + int(want)
	}
	k := sort.Search(n, func(i int) bool { return ch[i].delta > want }) - 1
	return c*chunkLen + k
}

func (d *logData) typeOf(id typeID) Type {
	if int(id) < len(typeTable) {
		return typeTable[id]
	}
	return d.names[int(id)-len(typeTable)]
}

// At implements Log.
func (d *logData) At(seq Seq) Event {
	if seq < 0 || seq >= d.len {
		panic("outcrop: seq out of range")
	}
	e, first := d.entry(d.find(seq))
	if e.flags&flagRow != 0 {
		r := e.run(first)
		return r.At(int(seq - first))
	}
	var ev Event
	d.fill(&ev, e, first)
	return ev
}

// fill makes the view of an event.
func (d *logData) fill(ev *Event, e *entry, seq Seq) {
	line := e.line()
	ev.Type = d.typeOf(e.typ)
	ev.Seq = seq
	ev.Time = e.time
	end := e.dataOff + e.dataLen
	ev.Data = line[e.dataOff:end:end]
	ev.Sources.text = nil
	ev.Op = SurfaceOp{}
	ev.Ignorable = false
	ev.line = line
	ev.dataOff, ev.srcOff = e.dataOff, 0
	ev.state = textValid | inLine
	ev.tag = foreignTag
	if int(e.typ) < len(typeTable) {
		ev.tag = typeTag(e.typ + 1)
	}
	ev.bad = envGood
	if e.flags&^flagEmpty == 0 {
		return
	}
	if e.flags&flagSources != 0 {
		ev.Sources.text = arrayAt(line, e.aux)
		ev.srcOff = e.aux
	}
	if e.flags&flagAppend != 0 {
		ev.Op = Tail
	} else if e.flags&flagReplace != 0 {
		ev.Op = d.replaceOf(seq)
	}
	ev.Ignorable = e.flags&flagIgnorable != 0
	if e.flags&flagOriginal != 0 {
		ev.line = d.originalOf(seq)
		ev.state &^= inLine
	}
}

// arrayAt is the array of numbers that starts at off.
func arrayAt(line []byte, off uint32) []byte {
	end := int(off) + bytes.IndexByte(line[off:], ']') + 1
	return line[off:end:end]
}

func (d *logData) replaceOf(seq Seq) SurfaceOp {
	i := sort.Search(len(d.replaces), func(i int) bool { return d.replaces[i].seq >= seq })
	return Replace(d.replaces[i].start, d.replaces[i].end)
}

func (d *logData) originalOf(seq Seq) []byte {
	i := sort.Search(len(d.originals), func(i int) bool { return d.originals[i].seq >= seq })
	return d.originals[i].line
}

// run rebuilds a row from its line, whose shape was checked.
func (e *entry) run(first Seq) Run {
	return Run{First: first, Len: int(e.aux), line: e.line(), time0: e.time,
		dataOff: e.dataOff, dataLen: e.dataLen, kind: rowKind(e.msgOff)}
}

// Records implements Log.
func (d *logData) Records(from Seq) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		if from < 0 {
			from = 0
		}
		if from >= d.len {
			return
		}
		var rec Record
		for k := d.find(from); k < d.entries; k++ {
			e, seq := d.entry(k)
			if seq >= d.len {
				return
			}
			if e.flags&flagRow == 0 {
				rec.Run = nil
				d.fill(&rec.Event, e, seq)
				if !yield(rec) {
					return
				}
				continue
			}
			r := e.run(seq)
			if seq < from {
				r.cutHead(int(from - seq))
			}
			if r.Last() >= d.len {
				r.cutTail(int(d.len - r.First))
			}
			if !yield(RunRecord(&r)) {
				return
			}
		}
	}
}

// cutHead drops the run's first n events.
func (r *Run) cutHead(n int) {
	r.skip += int32(n)
	r.First += Seq(n)
	r.Len -= n
	r.part = true
}

// cutTail keeps the run's first n events.
func (r *Run) cutTail(n int) {
	r.part = r.part || n < r.Len
	r.Len = n
}

// Head is the run of the first n events of r, n from 1 to Len.
func (r Run) Head(n int) Run {
	r.cutTail(n)
	return r
}

// prefix is the view of the first n events.
func (d *logData) prefix(n Seq) *logData {
	c := *d
	if n < c.len {
		c.len = max(n, 0)
	}
	return &c
}

// Prefix returns the first n events of a log as a log.
func Prefix(log Log, n int) Log {
	if n >= log.Len() {
		return log
	}
	if d, ok := log.(*logData); ok {
		return d.prefix(Seq(n))
	}
	return prefixLog{log, Seq(max(n, 0))}
}

type prefixLog struct {
	Log
	n Seq
}

func (p prefixLog) Len() int { return int(p.n) }

func (p prefixLog) At(seq Seq) Event {
	if seq >= p.n {
		panic("outcrop: seq out of range")
	}
	return p.Log.At(seq)
}

func (p prefixLog) Records(from Seq) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for r := range p.Log.Records(from) {
			if r.Seq >= p.n {
				return
			}
			if r.Run != nil && r.Run.Last() >= p.n {
				cut := *r.Run
				cut.cutTail(int(p.n - cut.First))
				r = RunRecord(&cut)
			}
			if !yield(r) {
				return
			}
		}
	}
}

// Events yields the events of a log from seq from on, rows expanded.
func Events(log Log, from Seq) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for r := range log.Records(from) {
			for ev := range r.Events() {
				if !yield(ev) {
					return
				}
			}
		}
	}
}
