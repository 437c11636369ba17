package frames

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	MaxHeader  = 16 << 20  // a longer header line is none, here as in package wire
	maxWindow  = 128 << 20 // the largest window that Node's decoder takes
	maxDecoded = 1 << 62   // frames are streamed, so their size is no limit
)

// NewText makes a Text of a file. Close frees its decoder.
func NewText(r io.ReaderAt) (*Text, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoded))
	return &Text{r: r, dec: dec}, err
}

// Close frees the decoder.
func (z *Text) Close() { z.dec.Close() }

var ErrDecode = errors.New("zstd frame cannot be decoded")

// Text streams the text of frames.
type Text struct {
	r   io.ReaderAt
	dec *zstd.Decoder
	buf []byte
}

// whole gives the text of a complete frame to write, checksum checked.
func (z *Text) Whole(ctx context.Context, f Frame, write func([]byte) error) error {
	src := &readErr{r: io.NewSectionReader(z.r, f.Start, f.End-f.Start)}
	return z.stream(ctx, src, write)
}

// torn gives the text that can be had from an incomplete frame: all of it when
// only checksum bytes are missing, else its complete blocks.
func (z *Text) Torn(ctx context.Context, f Frame, write func([]byte) error) error {
	var src io.Reader = io.NewSectionReader(z.r, f.Start, f.End-f.Start)
	if f.LastBlock > 0 {
		// The decoder holds the last block back until it has seen the
		// checksum, so it is told that there is none.
		head := make([]byte, 5)
		if _, err := z.r.ReadAt(head, f.Start); err != nil {
			return err
		}
		head[4] &^= 0x04
		src = io.MultiReader(bytes.NewReader(head), io.NewSectionReader(z.r, f.Start+5, f.LastBlock-f.Start-5))
	}
	e := &readErr{r: src}
	err := z.stream(ctx, e, write)
	if errors.Is(err, ErrDecode) {
		return nil
	}
	return err
}

func (z *Text) stream(ctx context.Context, src *readErr, write func([]byte) error) error {
	if err := z.dec.Reset(src); err != nil {
		return ErrDecode
	}
	var no error // of write
	if z.buf == nil {
		z.buf = make([]byte, 64<<10)
	}
	err := (&Chunks{r: z.dec, buf: z.buf}).Each(ctx, func(p []byte) error {
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
		return ErrDecode
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

// Chunks reads in blocks and hands them on.
type Chunks struct {
	r    io.Reader
	buf  []byte
	left []byte // bytes of buf behind the line that line() returned
}

func NewChunks(r io.Reader) *Chunks { return &Chunks{r: r, buf: make([]byte, 64<<10)} }

func (c *Chunks) next(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n, err := c.r.Read(c.buf)
	return c.buf[:n], err
}

// line returns the first line without its newline; found is false when there
// is no newline at all, or none within MaxHeader.
func (c *Chunks) Line(ctx context.Context) (line []byte, found bool, err error) {
	for {
		p, err := c.next(ctx)
		if n := bytes.IndexByte(p, '\n'); n >= 0 {
			line = append(line, p[:n]...)
			c.left = p[n+1:]
			return line, true, nil
		}
		line = append(line, p...)
		if err == io.EOF || len(line) > MaxHeader {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// each gives every block to write until the end, or until write says no.
func (c *Chunks) Each(ctx context.Context, write func([]byte) error) error {
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
