package wire

import (
	"io"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// Reader reads one log file of any format from 0 to formats.Newest. It is for
// one goroutine. Of a later format it gives the events of format 0 that the log
// says, under the seqs of that view; places are those of the file.
type Reader struct {
	r    io.ReaderAt
	size int64
	enc  Encoding

	header   outcrop.Header
	line     []byte
	from     int64 // where the records begin in the file
	fromText int64 // and in the text
	begin    int64 // where Records begins instead, 0 for from
	first    outcrop.Seq
	check    bool
	raw      bool // old shapes are left as they are

	pos   Pos
	tail  Tail
	warns warnings

	upgraded int
	lower    *formats.Lower // of the last Records; nil for formats 0 and 1
	carry    *formats.Lower // that Records begins with
	nextSeq  outcrop.Seq    // in the file, when Records has ended
}

// Tail says how the file ends, once Records has ended.
type Tail struct {
	Torn      bool  // the file has a torn tail
	Good      int64 // bytes of the file that stay when the tail is cut: all of them when it is not torn
	Recovered int   // events read that lie behind Good and have to be written again after a cut
	Reason    error // the first damage, a *outcrop.Error with its place; nil when there is none
}

// NewReader reads the header of a log file of size bytes. The errors are
// *outcrop.Error: what the file is instead of a log, or what is wrong with its
// header. It reads no more than the header, except where the log of a later
// format begins with inherited events: how many shows at their end, so such a log
// is read once.
func NewReader(r io.ReaderAt, size int64, enc Encoding) (*Reader, error) {
	h, line, end, seeded, err := readHeader(io.NewSectionReader(r, 0, size), enc)
	if err != nil {
		return nil, err
	}
	rd := &Reader{r: r, size: size, enc: enc, header: h, line: line, from: end, fromText: int64(len(line)) + 1}
	if seeded {
		for range rd.Records() {
		}
		if cut, ok := rd.lower.Cut(); ok {
			rd.header = formats.Seeded(h, cut)
		}
	}
	return rd, nil
}

// Header is the file's header, as one of format 0; its Format says which format
// the file has.
func (r *Reader) Header() outcrop.Header { return r.header }

// Format is the session format of the file.
func (r *Reader) Format() int { return int(r.header.Format) }

// Own is the seq in the file of the event from which one that Records gave was
// made; false for a seq that it did not give. In formats 0 and 1 it is the same.
func (r *Reader) Own(seen outcrop.Seq) (outcrop.Seq, bool) {
	if r.lower == nil {
		return seen, seen >= 0
	}
	return r.lower.Own(seen)
}

// Seen is the seq that Records gave to an event of the file, the last of several
// that it became; false when it became none, such as a system prompt, and for one
// that was not read yet.
func (r *Reader) Seen(own outcrop.Seq) (outcrop.Seq, bool) {
	if r.lower == nil {
		return own, own >= 0
	}
	return r.lower.Seen(own)
}

// HeaderLine is the header line without its newline.
func (r *Reader) HeaderLine() []byte { return r.line }

// HeaderEnd is the offset behind the header: the end of its line or its frame.
func (r *Reader) HeaderEnd() int64 { return r.from }

// Begin makes Records begin at an offset of the file where a record with this
// seq begins: behind a newline, or at a frame. Nothing before it is read or
// judged, and places have no line number. Call it before Records. A log of format
// 2 or later cannot be begun so: what its events become depends on those before.
func (r *Reader) Begin(offset int64, seq outcrop.Seq) { r.begin, r.first = offset, seq }

// GoOn makes Records begin where those of another reader of the same file ended:
// behind what it read, at Tail().Good. That reader must have come to the end by
// itself, with nothing recovered behind that place. It is not used again: what it
// knew of the events that it read is taken over. Call it before Records.
func (r *Reader) GoOn(from *Reader) {
	r.begin, r.first = from.tail.Good, from.nextSeq
	r.carry = from.lower
}

// CheckContent makes Records look for duplicate names, invalid UTF-8 and
// numbers that JavaScript cannot hold, and warn of them. It costs a second pass
// over the text. Call it before Records.
func (r *Reader) CheckContent() { r.check = true }

// Pos is the place of the record, or of the error, that Records gave last.
func (r *Reader) Pos() Pos { return r.pos }

// Tail is how the file ends. It holds after Records has ended by itself.
func (r *Reader) Tail() Tail { return r.tail }

// Warnings are the first of the odd things that were read over, in order, and
// how many there were.
func (r *Reader) Warnings() ([]Warning, int) { return r.warns.list, r.warns.count }

// Upgraded is the number of events so far that have an old shape: what Records
// gives of them is not what their line says. Made ids name the session, so a
// fork cannot take over such lines.
func (r *Reader) Upgraded() int { return r.upgraded }

// Records yields the records in order, each read anew from the file. A torn
// tail ends them quietly. An error comes
//
//   - with code RECORD_TOO_BIG for a record beyond the limits and with a FORMAT_
//     code for one that a later format cannot hold, with an empty record, and with
//     a LEGACY_ code for half an old shape, with the record as it is stored:
//     whoever goes on ranging gets the records behind it;
//   - for damage that is no torn tail (outcrop.ErrDamaged) and when the file
//     cannot be read: the last thing that is yielded.
//
// Events share the memory of the text that was read, which is never written
// again; who keeps one event keeps up to 1 MiB.
func (r *Reader) Records() iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		r.upgraded = 0
		from, fromText := r.from, r.fromText
		if r.begin > 0 {
			if from = r.begin; r.enc == Plain {
				fromText = from
			}
		}
		r.pos, r.tail, r.warns, r.lower = Pos{Line: 1}, Tail{Good: from}, warnings{}, nil
		p := &parser{
			Reader: r, yield: yield, lineNo: 2, textOff: fromText, frameOff: from, frame: from,
			up: upgrader{session: r.header.ID}, next: r.first, good: from, ranged: formats.MaxRanged,
		}
		p.up.ids = r.resultIDs
		if r.header.Format >= 2 {
			if r.lower, r.carry = r.carry, nil; r.lower == nil {
				r.lower = formats.NewLower(int(r.header.Format))
			}
			p.emit = func(rec outcrop.Record) bool {
				p.since += rec.Count()
				return yield(rec, nil)
			}
		}
		var s source
		if r.enc == Zstd {
			s = &zstdSource{r: r.r, off: from, size: r.size}
		} else {
			s = &plainSource{r: r.r, off: from, size: r.size}
		}
		decodeAll(s, r.size-from <= enough, r.check, p.feed)
	}
}
