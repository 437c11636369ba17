package doctor

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// dshFile is what dsh's physical read makes of a file.
type dshFile struct {
	header     dshHeader
	headerLine []byte
	fatal      string // class of the refusal
	events     int64  // events that count
	cut        int64  // byte where a torn tail begins, -1 without one
}

// readDSHFile reads a file as dsh 0.1 does before it looks into events. The
// error is that of reading, or of ctx.
func readDSHFile(ctx context.Context, r io.ReaderAt, size int64, compressed bool) (dshFile, error) {
	if compressed {
		return readDSHZstd(ctx, r, size)
	}
	f := dshFile{cut: -1}
	br := newChunks(io.NewSectionReader(r, 0, size))
	header, found, err := br.line(ctx)
	if err != nil {
		return f, err
	}
	if !found {
		f.fatal = "file-no-header"
		return f, nil
	}
	f.headerLine, f.header = header, readDSHHeader(header)
	if f.fatal = f.header.early; f.fatal != "" {
		return f, nil
	}
	s := dshLines{}
	if err := br.each(ctx, s.write); err != nil && !errors.Is(err, errFatal) {
		return f, err
	}
	f.events, f.fatal = s.events, s.fatal
	if at := int64(len(header)) + 1 + s.committed; at < size {
		f.cut = at
	}
	return f, nil
}

func readDSHZstd(ctx context.Context, r io.ReaderAt, size int64) (dshFile, error) {
	f := dshFile{cut: -1}
	frames, err := findDSHFrames(r, size)
	var class errFrame
	switch {
	case errors.As(err, &class):
		f.fatal = string(class)
		return f, nil
	case err != nil:
		return f, err
	case frames.count == 0 || frames.first.torn:
		f.fatal = "file-no-frame"
		return f, nil
	}
	dec, err := newFrameDecoder()
	if err != nil {
		return f, err
	}
	defer dec.Close()
	z := frameText{r: r, dec: dec}

	var header []byte
	if err := z.whole(ctx, frames.first, func(p []byte) error {
		if len(header) <= maxHeader {
			header = append(header, p...)
		}
		return nil
	}); err != nil {
		return f.refuseFrame(err)
	}
	if n := bytes.IndexByte(header, '\n'); n < 0 || n != len(header)-1 {
		f.fatal = "file-zstd-header-frame"
		return f, nil
	}
	f.headerLine = header[:len(header)-1]
	f.header = readDSHHeader(f.headerLine)
	if f.fatal = f.header.early; f.fatal != "" {
		return f, nil
	}
	s := dshLines{}
	err = frames.each(func(fr dshFrame) error {
		if fr.start == frames.first.start || fr.torn {
			return nil
		}
		return z.whole(ctx, fr, s.write)
	})
	if err != nil && !errors.Is(err, errFatal) {
		return f.refuseFrame(err)
	}
	if s.fatal == "" && s.committed != s.fed {
		s.fatal = "file-zstd-torn-record"
	}
	if s.fatal == "" && frames.torn != nil {
		f.cut = frames.torn.start
		if err := z.torn(ctx, *frames.torn, s.write); err != nil && !errors.Is(err, errFatal) {
			return f, err
		}
	}
	f.events, f.fatal = s.events, s.fatal
	return f, nil
}

// errFatal ends the decoding of frames: the text was refused.
var errFatal = errors.New("refused")

// newFrameDecoder makes the decoder of frameText.
func newFrameDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoded))
}

const (
	maxHeader  = 16 << 20  // a longer header line is none, here as in package wire
	maxWindow  = 128 << 20 // the largest window that Node's decoder takes
	maxDecoded = 1 << 62   // frames are streamed, so their size is no limit
)

var errDecode = errors.New("zstd frame cannot be decoded")

// refuseFrame turns a frame that does not decode into the refusal.
func (f dshFile) refuseFrame(err error) (dshFile, error) {
	if errors.Is(err, errDecode) {
		f.fatal = "zstd-decode"
		return f, nil
	}
	return f, err
}

// frameText streams the text of frames.
type frameText struct {
	r   io.ReaderAt
	dec *zstd.Decoder
	buf []byte
}

// whole gives the text of a complete frame to write, checksum checked.
func (z *frameText) whole(ctx context.Context, f dshFrame, write func([]byte) error) error {
	src := &readErr{r: io.NewSectionReader(z.r, f.start, f.end-f.start)}
	return z.stream(ctx, src, write)
}

// torn gives the text that can be had from an incomplete frame: all of it when
// only checksum bytes are missing, else its complete blocks.
func (z *frameText) torn(ctx context.Context, f dshFrame, write func([]byte) error) error {
	var src io.Reader = io.NewSectionReader(z.r, f.start, f.end-f.start)
	if f.lastBlock > 0 {
		// The decoder holds the last block back until it has seen the
		// checksum, so it is told that there is none.
		head := make([]byte, 5)
		if _, err := z.r.ReadAt(head, f.start); err != nil {
			return err
		}
		head[4] &^= 0x04
		src = io.MultiReader(bytes.NewReader(head), io.NewSectionReader(z.r, f.start+5, f.lastBlock-f.start-5))
	}
	e := &readErr{r: src}
	err := z.stream(ctx, e, write)
	if errors.Is(err, errDecode) {
		return nil
	}
	return err
}

func (z *frameText) stream(ctx context.Context, src *readErr, write func([]byte) error) error {
	if err := z.dec.Reset(src); err != nil {
		return errDecode
	}
	var no error // of write
	if z.buf == nil {
		z.buf = make([]byte, 64<<10)
	}
	err := (&chunks{r: z.dec, buf: z.buf}).each(ctx, func(p []byte) error {
		no = write(p)
		return no
	})
	switch {
	case err == nil:
		return nil
	case no != nil:
		return no
	case src.err != nil:
		return src.err
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return errDecode
	}
}

// readErr remembers an error of the file itself, so that it is not taken for a
// damaged frame.
type readErr struct {
	r   io.Reader
	err error
}

func (r *readErr) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		r.err = err
	}
	return n, err
}

// chunks reads in blocks and hands them on.
type chunks struct {
	r    io.Reader
	buf  []byte
	left []byte // bytes of buf behind the line that line() returned
}

func newChunks(r io.Reader) *chunks { return &chunks{r: r, buf: make([]byte, 64<<10)} }

func (c *chunks) next(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n, err := c.r.Read(c.buf)
	return c.buf[:n], err
}

// line returns the first line without its newline; found is false when there
// is no newline at all, or none within maxHeader.
func (c *chunks) line(ctx context.Context) (line []byte, found bool, err error) {
	for {
		p, err := c.next(ctx)
		if n := bytes.IndexByte(p, '\n'); n >= 0 {
			line = append(line, p[:n]...)
			c.left = p[n+1:]
			return line, true, nil
		}
		line = append(line, p...)
		if err == io.EOF || len(line) > maxHeader {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// each gives every block to write until the end, or until write says no.
func (c *chunks) each(ctx context.Context, write func([]byte) error) error {
	if len(c.left) > 0 {
		if err := write(c.left); err != nil {
			return err
		}
		c.left = nil
	}
	for {
		p, err := c.next(ctx)
		if len(p) > 0 {
			if err := write(p); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
