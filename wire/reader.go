package wire

import (
	"io"
	"iter"

	"github.com/outcrop-dev/outcrop"
)

// Reader reads one log file. It is for one goroutine.
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
// header. It reads no more than the header.
func NewReader(r io.ReaderAt, size int64, enc Encoding) (*Reader, error) {
	h, line, end, err := readHeader(io.NewSectionReader(r, 0, size), enc)
	if err != nil {
		return nil, err
	}
	return &Reader{r: r, size: size, enc: enc, header: h, line: line, from: end, fromText: int64(len(line)) + 1}, nil
}

// Header is the file's header.
func (r *Reader) Header() outcrop.Header { return r.header }

// HeaderLine is the header line without its newline.
func (r *Reader) HeaderLine() []byte { return r.line }

// HeaderEnd is the offset behind the header: the end of its line or its frame.
func (r *Reader) HeaderEnd() int64 { return r.from }

// Begin makes Records begin at an offset of the file where a record with this
// seq begins: behind a newline, or at a frame. Nothing before it is read or
// judged, and places have no line number. Call it before Records.
func (r *Reader) Begin(offset int64, seq outcrop.Seq) { r.begin, r.first = offset, seq }

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
//   - with code RECORD_TOO_BIG for a record beyond the limits, with an empty
//     record, and with a LEGACY_ code for half an old shape, with the record as
//     it is stored: whoever goes on ranging gets the records behind it;
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
		r.pos, r.tail, r.warns = Pos{Line: 1}, Tail{Good: from}, warnings{}
		p := &parser{
			Reader: r, yield: yield, lineNo: 2, textOff: fromText, frameOff: from, frame: from,
			up: upgrader{session: r.header.ID}, next: r.first, good: from,
		}
		p.up.ids = r.resultIDs
		var s source
		if r.enc == Zstd {
			s = &zstdSource{r: r.r, off: from, size: r.size}
		} else {
			s = &plainSource{r: r.r, off: from, size: r.size}
		}
		decodeAll(s, r.size-from <= enough, r.check, p.feed)
	}
}
