// Package frames finds zstd frames by their headers and decodes them one by one,
// in bounded memory, as the verdict of dsh and a repair need it: nothing here
// judges what the text is.
package frames

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

const zstdMagic = 0xFD2FB528

// Frame is one zstd frame as its block headers show it, or the torn rest of
// the last one.
type Frame struct {
	Start, End int64 // bytes in the file
	Torn       bool
	LastBlock  int64 // end of the last block when it is there in full, else 0
	Descriptor byte
}

// Class carries the class of a refusal.
type Class string

func (e Class) Error() string { return string(e) }

// All are the frames of a file by their headers alone, the way dsh finds
// them before it decodes anything. They are walked over once to judge them and
// once more to decode them, so that a file of many costs no memory.
type All struct {
	r     io.ReaderAt
	size  int64
	First Frame
	Count int
	Torn  *Frame // the rest of the last one
}

func Find(r io.ReaderAt, size int64) (*All, error) {
	f := &All{r: r, size: size}
	err := f.Each(func(fr Frame) error {
		if f.Count == 0 {
			f.First = fr
		}
		f.Count++
		if fr.Torn {
			f.Torn = &fr
		}
		return nil
	})
	return f, err
}

// each calls visit for each frame, from the first one on.
func (f *All) Each(visit func(Frame) error) error {
	w := NewWalker(f.r, f.size)
	for at := int64(0); at < f.size; {
		fr, err := w.Frame(at)
		if err == nil {
			err = visit(fr)
		}
		if err != nil {
			return err
		}
		at = fr.End
	}
	return nil
}

// Walker reads forward with few calls, and jumps over block payloads.
type Walker struct {
	r    io.ReaderAt
	size int64
	at   int64 // where buf stands in the file
	buf  *bufio.Reader

	Taken int64 // how many times it looked at the file
}

func NewWalker(r io.ReaderAt, size int64) *Walker {
	return &Walker{r: r, size: size, buf: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 4096)}
}

var errShort = errors.New("file ends")

func (w *Walker) seek(at int64) {
	if at >= w.at && at-w.at <= int64(w.buf.Buffered()) {
		w.buf.Discard(int(at - w.at))
	} else {
		w.buf.Reset(io.NewSectionReader(w.r, at, w.size-at))
	}
	w.at = at
}

// take reads the next n bytes, at most eight.
func (w *Walker) take(n int) (uint64, error) {
	if w.Taken++; w.size-w.at < int64(n) {
		return 0, errShort
	}
	var b [8]byte
	if _, err := io.ReadFull(w.buf, b[:n]); err != nil {
		return 0, err
	}
	w.at += int64(n)
	return binary.LittleEndian.Uint64(b[:]), nil
}

// frame reads the frame that starts at byte at.
func (w *Walker) Frame(at int64) (Frame, error) {
	f := Frame{Start: at}
	err := w.blocks(&f)
	if errors.Is(err, errShort) {
		f.Torn, f.End = true, w.size
		return f, nil
	}
	return f, err
}

func (w *Walker) blocks(f *Frame) error {
	w.seek(f.Start)
	magic, err := w.take(4)
	if err != nil {
		return err
	}
	if magic != zstdMagic {
		return Class("file-zstd-magic")
	}
	d, err := w.take(1)
	if err != nil {
		return err
	}
	if d&0x18 != 0 {
		return Class("file-zstd-reserved-bit")
	}
	f.Descriptor = byte(d)
	single := d&0x20 != 0
	rest := [...]int{0, 1, 2, 4}[d&3] + [...]int{0, 2, 4, 8}[d>>6]
	if single && d>>6 == 0 {
		rest++
	}
	if !single {
		rest++
	}
	if w.size-w.at < int64(rest) {
		return errShort
	}
	w.seek(w.at + int64(rest))
	for {
		h, err := w.take(3)
		if err != nil {
			return err
		}
		n := int64(h >> 3)
		switch h >> 1 & 3 {
		case 1:
			n = 1
		case 3:
			return Class("file-zstd-block-type")
		}
		if w.size-w.at < n {
			return errShort
		}
		w.seek(w.at + n)
		if h&1 != 0 {
			break
		}
	}
	f.LastBlock = w.at
	if d&0x04 != 0 {
		if _, err := w.take(4); err != nil {
			return err
		}
	}
	f.End = w.at
	return nil
}
