package doctor

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

const zstdMagic = 0xFD2FB528

// dshFrame is one zstd frame as its block headers show it, or the torn rest of
// the last one.
type dshFrame struct {
	start, end int64 // bytes in the file
	torn       bool
	lastBlock  int64 // end of the last block when it is there in full, else 0
	descriptor byte
}

// errFrame carries the class of a refusal.
type errFrame string

func (e errFrame) Error() string { return string(e) }

// dshFrames are the frames of a file by their headers alone, the way dsh finds
// them before it decodes anything. They are walked over once to judge them and
// once more to decode them, so that a file of many costs no memory.
type dshFrames struct {
	r     io.ReaderAt
	size  int64
	first dshFrame
	count int
	torn  *dshFrame // the rest of the last one
}

func findDSHFrames(r io.ReaderAt, size int64) (*dshFrames, error) {
	f := &dshFrames{r: r, size: size}
	err := f.each(func(fr dshFrame) error {
		if f.count == 0 {
			f.first = fr
		}
		f.count++
		if fr.torn {
			f.torn = &fr
		}
		return nil
	})
	return f, err
}

// each calls visit for each frame, from the first one on.
func (f *dshFrames) each(visit func(dshFrame) error) error {
	w := newWalker(f.r, f.size)
	for at := int64(0); at < f.size; {
		fr, err := w.frame(at)
		if err == nil {
			err = visit(fr)
		}
		if err != nil {
			return err
		}
		at = fr.end
	}
	return nil
}

// walker reads forward with few calls, and jumps over block payloads.
type walker struct {
	r    io.ReaderAt
	size int64
	at   int64 // where buf stands in the file
	buf  *bufio.Reader

	taken int64 // how many times it looked at the file
}

func newWalker(r io.ReaderAt, size int64) *walker {
	return &walker{r: r, size: size, buf: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 4096)}
}

var errShort = errors.New("file ends")

func (w *walker) seek(at int64) {
	if at >= w.at && at-w.at <= int64(w.buf.Buffered()) {
		w.buf.Discard(int(at - w.at))
	} else {
		w.buf.Reset(io.NewSectionReader(w.r, at, w.size-at))
	}
	w.at = at
}

// take reads the next n bytes, at most eight.
func (w *walker) take(n int) (uint64, error) {
	if w.taken++; w.size-w.at < int64(n) {
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
func (w *walker) frame(at int64) (dshFrame, error) {
	f := dshFrame{start: at}
	err := w.blocks(&f)
	if errors.Is(err, errShort) {
		f.torn, f.end = true, w.size
		return f, nil
	}
	return f, err
}

func (w *walker) blocks(f *dshFrame) error {
	w.seek(f.start)
	magic, err := w.take(4)
	if err != nil {
		return err
	}
	if magic != zstdMagic {
		return errFrame("file-zstd-magic")
	}
	d, err := w.take(1)
	if err != nil {
		return err
	}
	if d&0x18 != 0 {
		return errFrame("file-zstd-reserved-bit")
	}
	f.descriptor = byte(d)
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
			return errFrame("file-zstd-block-type")
		}
		if w.size-w.at < n {
			return errShort
		}
		w.seek(w.at + n)
		if h&1 != 0 {
			break
		}
	}
	f.lastBlock = w.at
	if d&0x04 != 0 {
		if _, err := w.take(4); err != nil {
			return err
		}
	}
	f.end = w.at
	return nil
}
