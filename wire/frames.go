package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
)

const (
	frameMagic     = 0xFD2FB528
	skippableMagic = 0x184D2A50 // to 0x184D2A5F
	maxBlockText   = 128 << 10  // the most text that one block holds
)

var magicBytes = []byte{0x28, 0xb5, 0x2f, 0xfd}

// frame is one zstd frame as its headers show it.
type frame struct {
	off, end int64
	window   uint64
	sum      bool  // ends in a checksum
	torn     bool  // the file ends inside it
	blocks   int64 // offset behind the last whole block
	whole    bool  // all blocks are there; only checksum bytes can be missing
	bound    int64 // the text is not longer than this
}

// byteSource gives n bytes at off, fewer only at the end of the source. The
// bytes are valid until the next call.
type byteSource interface {
	peek(off int64, n int) ([]byte, error)
}

// memory is a byteSource over bytes.
type memory []byte

func (m memory) peek(off int64, n int) ([]byte, error) {
	if off >= int64(len(m)) {
		return nil, nil
	}
	return m[off:min(off+int64(n), int64(len(m)))], nil
}

// window is a byteSource over a file: a sliding part of it, read ahead.
type window struct {
	r    io.ReaderAt
	size int64
	buf  []byte
	off  int64 // where buf starts in the file
	keep int64 // bytes from here on stay in the buffer, if that is not too much

	peeks int64
}

func (w *window) peek(off int64, n int) ([]byte, error) {
	w.peeks++
	end := min(off+int64(n), w.size)
	if off >= end {
		return nil, nil
	}
	if off >= w.off && end <= w.off+int64(len(w.buf)) {
		return w.buf[off-w.off : end-w.off], nil
	}
	from := off
	if w.keep < off && end-w.keep <= maxFrameBytes {
		from = w.keep
	}
	// A frame longer than a block is read in doubling parts.
	to := min(max(end, from+max(block, 2*(end-from))), w.size)
	if need := int(to - from); cap(w.buf) < need {
		w.buf = append(make([]byte, 0, need), w.have(from)...)
	} else if from != w.off {
		w.buf = append(w.buf[:0], w.have(from)...)
	}
	w.off = from
	got := len(w.buf)
	w.buf = w.buf[:to-from]
	if m, err := readFull(w.r, w.buf[got:], from+int64(got)); err != nil {
		w.buf = w.buf[:got+m]
		return nil, err
	}
	return w.buf[off-from : end-from], nil
}

// have is the part of the buffer from an offset on.
func (w *window) have(from int64) []byte {
	if from < w.off || from >= w.off+int64(len(w.buf)) {
		return nil
	}
	return w.buf[from-w.off:]
}

// readFull reads all of b at off.
func readFull(r io.ReaderAt, b []byte, off int64) (int, error) {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, fmt.Errorf("%d bytes at byte %d: %w", len(b), off, err)
}

// scanFrame walks the headers of the frame at off and decodes nothing. bad is
// what is wrong with the headers; err is an error of the source. A frame that
// the source ends in comes back torn.
func scanFrame(s byteSource, off int64) (f frame, bad *outcrop.Error, err error) {
	f = frame{off: off, end: off, blocks: off}
	torn := func() (frame, *outcrop.Error, error) {
		f.torn = true
		return f, nil, nil
	}
	b, err := s.peek(off, 18) // the longest frame header
	if err != nil {
		return f, nil, err
	}
	if len(b) < 4 {
		return torn()
	}
	if m := binary.LittleEndian.Uint32(b); m != frameMagic {
		msg := "no zstd frame starts here"
		if m&^0xf == skippableMagic {
			msg = "a skippable zstd frame, which a log never has"
		}
		return f, damage("FRAME_MAGIC", msg), nil
	}
	if len(b) < 5 {
		return torn()
	}
	d := b[4]
	if d&0x18 != 0 {
		return f, damage("FRAME_DESCRIPTOR", "a reserved bit of the frame descriptor is set"), nil
	}
	f.sum = d&4 != 0
	single := d&0x20 != 0
	size := [...]int{0, 2, 4, 8}[d>>6]
	if single && size == 0 {
		size = 1
	}
	head := 5 + [...]int{0, 1, 2, 4}[d&3] + size
	if !single {
		head++
	}
	if len(b) < head {
		return torn()
	}
	f.window = windowSize(b, single, size, head)
	p := off + int64(head)
	for last := false; !last; {
		b, err := s.peek(p, 3)
		if err != nil {
			return f, nil, err
		}
		if len(b) < 3 {
			return torn()
		}
		h := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		last = h&1 != 0
		n := int64(h >> 3)
		text := min(n, maxBlockText)
		switch h >> 1 & 3 {
		case 1:
			n = 1
		case 2:
			text = maxBlockText
		case 3:
			return f, damage("FRAME_BLOCK", "a block of the frame has a reserved type"), nil
		}
		end := p + 3 + n
		if b, err = s.peek(end-1, 1); err != nil {
			return f, nil, err
		} else if len(b) == 0 {
			return torn()
		}
		p, f.blocks = end, end
		f.bound += text
	}
	f.whole = true
	if f.sum {
		p += 4
		if b, err = s.peek(p-1, 1); err != nil {
			return f, nil, err
		} else if len(b) == 0 {
			return torn()
		}
	}
	f.end = p
	return f, nil, nil
}

// windowSize reads the window or, for a single segment, the content size.
func windowSize(b []byte, single bool, size, head int) uint64 {
	if !single {
		exp, mant := uint(b[5]>>3), uint64(b[5]&7)
		base := uint64(1) << (10 + exp)
		return base + base/8*mant
	}
	var n uint64
	for k := range size {
		n |= uint64(b[head-size+k]) << (8 * k)
	}
	if size == 2 {
		n += 256
	}
	return n
}

// decoders holds idle decoders; a zstd decoder is too big to make for each of
// many small logs. Idle ones hold no goroutine and no input.
var decoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow), zstd.WithDecoderMaxMemory(maxFrameText+block))
	if err != nil {
		panic("wire: options of the zstd decoder: " + err.Error()) // they are constants
	}
	return d
}}

// decodeFrame appends the text of one complete frame to dst. The frame's bound
// must be at most maxFrameText.
func decodeFrame(dst, src []byte, f frame) ([]byte, *outcrop.Error) {
	if bad := f.tooWide(); bad != nil {
		return dst, bad
	}
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	out, err := d.DecodeAll(src, dst)
	if err != nil {
		return dst, frameError(err)
	}
	return out, nil
}

func (f frame) tooWide() *outcrop.Error {
	if f.window > MaxWindow {
		return damage("FRAME_WINDOW", fmt.Sprintf("the frame asks for a window of %d bytes, the limit is %d", f.window, int64(MaxWindow)))
	}
	return nil
}

func frameError(err error) *outcrop.Error {
	switch {
	case errors.Is(err, zstd.ErrCRCMismatch):
		return damage("FRAME_CHECKSUM", "the frame fails its checksum")
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return damage("FRAME_WINDOW", "the frame asks for too large a window")
	}
	return damage("FRAME_DECODE", "the frame cannot be decoded: "+err.Error())
}

// streamFrame decodes a frame, or what is there of a torn one, in pieces of at
// most len(buf) bytes, which emit must not keep. It stops when emit returns
// false. Pieces come before the checksum was seen; it counts when checked.
func streamFrame(src io.Reader, buf []byte, checked bool, emit func([]byte) bool) error {
	d, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow), zstd.IgnoreChecksum(!checked))
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		n, err := d.Read(buf)
		if n > 0 && !emit(buf[:n]) {
			return nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// frameText decodes a complete frame and calls emit with its text, in pieces
// that emit must not keep, after its checksum was seen to fit. Memory stays
// bounded whatever the frame decodes to.
func frameText(w *window, f frame, scratch *[]byte, emit func([]byte) bool) (bad *outcrop.Error, err error) {
	if f.bound <= maxFrameText && f.end-f.off <= maxFrameBytes {
		src, err := w.peek(f.off, int(f.end-f.off))
		if err != nil {
			return nil, err
		}
		if int64(cap(*scratch)) < f.bound {
			*scratch = make([]byte, 0, f.bound+64)
		}
		text, bad := decodeFrame((*scratch)[:0], src, f)
		if bad != nil {
			return bad, nil
		}
		emit(text)
		return nil, nil
	}
	if bad := f.tooWide(); bad != nil {
		return bad, nil
	}
	part := func() io.Reader { return io.NewSectionReader(w.r, f.off, f.end-f.off) }
	buf := make([]byte, block)
	if err := streamFrame(part(), buf, true, func([]byte) bool { return true }); err != nil {
		return frameError(err), nil
	}
	if err := streamFrame(part(), buf, true, emit); err != nil {
		return frameError(err), nil
	}
	return nil, nil
}

// looseText decodes what can be decoded of a torn or bad frame: the text of its
// whole blocks. Nothing proves that it is right; only whole lines of it count.
//
// When nothing but checksum bytes are missing, the frame is decoded as one
// without checksum: a stream decoder would hold the last block back until it
// has seen the checksum.
func looseText(w *window, f frame, emit func([]byte) bool) error {
	if f.tooWide() != nil || f.blocks == f.off {
		return nil
	}
	head, err := w.peek(f.off, 5)
	if err != nil || len(head) < 5 {
		return err
	}
	end := w.size
	if f.whole {
		end = f.blocks
	}
	src := io.NewSectionReader(w.r, f.off+5, end-f.off-5)
	first := []byte{head[0], head[1], head[2], head[3], head[4]}
	if f.whole {
		first[4] &^= 4
	}
	// An error only means that no more can be decoded.
	_ = streamFrame(io.MultiReader(bytes.NewReader(first), src), make([]byte, block), false, emit)
	return nil
}
