package wire

import (
	"bytes"
	"fmt"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
)

// Encoder turns headers and records into the bytes of a log file. It is for
// one goroutine, but for Frame, and reuses its buffers; what it appended to dst is
// the caller's.
type Encoder struct {
	// Unpacked writes every event on a line of its own.
	Unpacked bool
	// Quick compresses about twice as fast, to about an eighth more: for whole
	// logs, which nobody wants to wait for.
	Quick bool

	enc  Encoding
	text []byte
	pack packer
}

// NewEncoder makes an encoder.
func NewEncoder(enc Encoding) *Encoder { return &Encoder{enc: enc} }

// Header appends the header line, for Zstd as a frame of its own.
func (e *Encoder) Header(dst []byte, h outcrop.Header) []byte {
	e.text = append(append(e.text[:0], h.Line()...), '\n')
	return e.put(dst, e.text)
}

// Batch appends records, for Zstd as one frame; nothing for no record. It is Text
// and Frame in one.
//
// The error names a record that no log can hold; dst comes back unchanged then.
func (e *Encoder) Batch(dst []byte, recs iter.Seq[outcrop.Record]) ([]byte, error) {
	text, err := e.Text(e.text[:0], recs)
	if err != nil {
		return dst, err
	}
	if e.text = text; cap(e.text) > 4*block {
		e.text = nil
	}
	return e.Frame(dst, text), nil
}

// Text appends the lines of records.
//
// An event that has a line goes out as that line, any other one in the member
// order of a live writer. Three or more adjacent chunk deltas that differ in
// text and time only become a packed row, provided that the row gives back the
// very same text of each: an event whose line has another member order or
// another spelling stays as it is. Rows never reach over the end of a batch.
// A record that is a run goes out as its row.
//
// The error names a record that no log can hold; dst comes back unchanged then.
func (e *Encoder) Text(dst []byte, recs iter.Seq[outcrop.Record]) ([]byte, error) {
	text := dst
	p := &e.pack
	p.reset(&text)
	for rec := range recs {
		if rec.Run != nil {
			p.flush()
			text = e.run(text, rec.Run)
			continue
		}
		if err := storable(&rec.Event); err != nil {
			return dst, err
		}
		if e.Unpacked || !p.add(&rec.Event) {
			p.flush()
			text = appendLine(text, &rec.Event)
		}
	}
	p.flush()
	return text, nil
}

// Frame appends what Text made in the encoding, for Zstd as one frame; nothing for
// no text. It may run while the next text is made.
func (e *Encoder) Frame(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	return e.put(dst, text)
}

func (e *Encoder) run(dst []byte, r *outcrop.Run) []byte {
	if !e.Unpacked {
		return append(r.AppendLine(dst), '\n')
	}
	for ev := range r.Events() {
		dst = appendLine(dst, &ev)
	}
	return dst
}

// appendLine appends an event and its newline. JSON has newlines between
// tokens only, where a space says the same, so hand-made data with line breaks
// still makes one line.
func appendLine(dst []byte, e *outcrop.Event) []byte {
	n := len(dst)
	dst = e.AppendJSON(dst)
	for at := n; ; {
		i := bytes.IndexByte(dst[at:], '\n')
		if i < 0 {
			break
		}
		at += i
		dst[at] = ' '
	}
	return append(dst, '\n')
}

// storable refuses what would not be read as the event that it is.
func storable(e *outcrop.Event) error {
	switch e.Type {
	case "text-chunks", "reasoning-chunks", "tool-call-chunks", "session":
		return &outcrop.Error{
			Op: "encode", Code: "TYPE_RESERVED", Seq: e.Seq, Offset: -1, Err: outcrop.ErrRefused,
			Msg: fmt.Sprintf("an event cannot have the type %s, which a log uses for its rows and its header", e.Type),
		}
	}
	if e.Data == nil && e.Line() == nil {
		return &outcrop.Error{Op: "encode", Code: "DATA_MISSING", Seq: e.Seq, Offset: -1, Err: outcrop.ErrRefused, Msg: "the event has no data"}
	}
	return nil
}

// put appends text in the encoding.
func (e *Encoder) put(dst, text []byte) []byte {
	if e.enc != Zstd {
		return append(dst, text...)
	}
	pool := &encoders
	if e.Quick {
		pool = &quickEncoders
	}
	z := pool.Get().(*zstd.Encoder)
	defer pool.Put(z)
	return z.EncodeAll(text, dst)
}

// encoders holds idle encoders: a process may have a thousand sessions open
// that write now and then, and an encoder has tables of a megabyte or more.
var (
	encoders      = sync.Pool{New: func() any { return newZstd(zstd.SpeedDefault) }}
	quickEncoders = sync.Pool{New: func() any { return newZstd(zstd.SpeedFastest) }}
)

func newZstd(level zstd.EncoderLevel) *zstd.Encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithEncoderLevel(level), zstd.WithWindowSize(2<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("wire: options of the zstd encoder: " + err.Error()) // they are constants
	}
	return z
}
