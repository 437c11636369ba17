package outcrop

import (
	"slices"
	"unsafe"
)

// logWriter adds entries to a log. One goroutine uses it at a time.
type logWriter struct {
	logData
	nameIDs map[Type]typeID
	arena   []byte // the arena that is being filled
	kept    int    // bytes of all that was taken for lines
}

// Arenas grow from 4 KiB, so that a small session stays small, to 1 MiB; each is a
// quarter of what was kept before, so that at most so much is free.
const (
	firstArena = 4 << 10
	lastArena  = 1 << 20
)

// keep copies b into the log's own memory.
func (w *logWriter) keep(b []byte) []byte {
	if cap(w.arena)-len(w.arena) < len(b) {
		size := min(max(firstArena, w.kept/4), lastArena)
		if len(b) >= size/2 {
			// A line of its own size gets memory of its own size, so that the
			// arena in use is not given up for it.
			w.kept += len(b)
			return append(make([]byte, 0, len(b)), b...)
		}
		w.arena = slices.Grow([]byte(nil), size) // all that comes with it
		w.kept += cap(w.arena)
	}
	n := len(w.arena)
	w.arena = append(w.arena, b...)
	return w.arena[n:len(w.arena):len(w.arena)]
}

// unkeep gives back the last bytes that keep copied, when it still can.
func (w *logWriter) unkeep(b []byte) {
	if n := len(w.arena); n >= len(b) && len(b) > 0 && unsafe.SliceData(w.arena[n-len(b):]) == unsafe.SliceData(b) {
		w.arena = w.arena[:n-len(b)]
	}
}

// idOf is the number of an event's type in this log.
func (w *logWriter) idOf(ev *Event) typeID {
	tag := ev.tag
	if tag == noTag {
		tag = ev.Type.tag()
	}
	if tag != foreignTag {
		return typeID(tag - 1)
	}
	if id, ok := w.nameIDs[ev.Type]; ok {
		return id
	}
	if w.nameIDs == nil {
		w.nameIDs = map[Type]typeID{}
	}
	id := typeID(len(typeTable) + len(w.names))
	w.nameIDs[ev.Type] = id
	w.names = append(w.names, ev.Type)
	return id
}

// slot returns the next free entry.
func (w *logWriter) slot() *entry {
	k := w.entries % chunkLen
	if k == 0 {
		w.chunks = append(w.chunks, new(chunk))
		w.firsts = append(w.firsts, w.len)
	}
	last := len(w.chunks) - 1
	e := &w.chunks[last][k]
	e.delta = uint32(w.len - w.firsts[last])
	w.entries++
	return e
}

// addEvent commits an event that admission has passed. ev.line must be in
// memory that nobody changes.
func (w *logWriter) addEvent(ev *Event, info *msgInfo) {
	e := w.slot()
	e.typ = w.idOf(ev)
	e.time = ev.Time
	if ev.state&inLine == 0 {
		// An upgraded view: the entry gets a line of its own, the stored line
		// is kept beside it.
		w.originals = append(w.originals, original{ev.Seq, ev.line})
		e.flags |= flagOriginal
		old := ev.line
		ev.line = nil
		*ev, _ = DecodeEvent(ev.appendCanonical(nil))
		e.set(ev)
		ev.line, ev.state = old, ev.state&^inLine
	} else {
		e.set(ev)
	}
	if info != nil {
		e.msgOff, e.msgLen, e.idOff = e.dataOff+info.off, info.len, e.dataOff+info.idOff
		if info.empty {
			e.flags |= flagEmpty
		}
	}
	if start, end, ok := ev.Op.Range(); ok {
		w.replaces = append(w.replaces, replaceAt{ev.Seq, start, end})
	}
	w.len++
}

func (e *entry) set(ev *Event) {
	e.p, e.n = unsafe.SliceData(ev.line), uint32(len(ev.line))
	e.dataOff, e.dataLen = ev.dataOff, uint32(len(ev.Data))
	if ev.Sources.Known() {
		e.aux = ev.srcOff
		e.flags |= flagSources
	}
	switch ev.Op.kind {
	case opAppend:
		e.flags |= flagAppend
	case opReplace:
		e.flags |= flagReplace
	}
	if ev.Ignorable {
		e.flags |= flagIgnorable
	}
}

// addRun commits a row, which must be whole.
func (w *logWriter) addRun(r *Run) {
	e := w.slot()
	e.typ = idChunk
	e.time = r.time0
	e.p, e.n = unsafe.SliceData(r.line), uint32(len(r.line))
	e.dataOff, e.dataLen = r.dataOff, r.dataLen
	e.aux = uint32(r.Len)
	e.msgOff = uint32(r.kind)
	e.flags = flagRow
	w.len += Seq(r.Len)
}
