package dsh

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/outcrop-dev/outcrop/doctor/internal/frames"
)

// file is what dsh's physical read makes of a file.
type file struct {
	header     Header
	headerLine []byte
	fatal      string // class of the refusal
	events     int64  // events that count
	cut        int64  // byte where a torn tail begins, -1 without one
}

// readFile reads a file as dsh 0.1 does before it looks into events; its lines
// only when sound is closed without having said how many events they are. The
// error is that of reading, or of ctx.
func readFile(ctx context.Context, r io.ReaderAt, size int64, compressed bool, sound <-chan int64) (file, error) {
	if compressed {
		return readZstd(ctx, r, size, sound)
	}
	f := file{cut: -1}
	br := frames.NewChunks(io.NewSectionReader(r, 0, size))
	header, found, err := br.Line(ctx)
	if err != nil {
		return f, err
	}
	if !found {
		f.fatal = "file-no-header"
		return f, nil
	}
	f.headerLine, f.header = header, readHeader(header)
	if f.fatal = f.header.early; f.fatal != "" {
		return f, nil
	}
	if whole, err := f.lines(ctx, sound); whole || err != nil {
		return f, err
	}
	s := scanner{}
	if err := br.Each(ctx, s.write); err != nil && !errors.Is(err, errFatal) {
		return f, err
	}
	f.events, f.fatal = s.events, s.fatal
	if at := int64(len(header)) + 1 + s.committed; at < size {
		f.cut = at
	}
	return f, nil
}

// lines waits for what is known of the lines; whole: nothing has to be read.
func (f *file) lines(ctx context.Context, sound <-chan int64) (whole bool, err error) {
	select {
	case f.events, whole = <-sound:
		return whole, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func readZstd(ctx context.Context, r io.ReaderAt, size int64, sound <-chan int64) (file, error) {
	f := file{cut: -1}
	all, err := frames.Find(r, size)
	var class frames.Class
	switch {
	case errors.As(err, &class):
		f.fatal = string(class)
		return f, nil
	case err != nil:
		return f, err
	case all.Count == 0 || all.First.Torn:
		f.fatal = "file-no-frame"
		return f, nil
	}
	z, err := frames.NewText(r)
	if err != nil {
		return f, err
	}
	defer z.Close()

	var header []byte
	if err := z.Whole(ctx, all.First, func(p []byte) error {
		if len(header) <= frames.MaxHeader {
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
	f.header = readHeader(f.headerLine)
	if f.fatal = f.header.early; f.fatal != "" {
		return f, nil
	}
	if whole, err := f.lines(ctx, sound); whole || err != nil {
		return f, err
	}
	s := scanner{}
	err = all.Each(func(fr frames.Frame) error {
		if fr.Start == all.First.Start || fr.Torn {
			return nil
		}
		return z.Whole(ctx, fr, s.write)
	})
	if err != nil && !errors.Is(err, errFatal) {
		return f.refuseFrame(err)
	}
	if s.fatal == "" && s.committed != s.fed {
		s.fatal = "file-zstd-torn-record"
	}
	if s.fatal == "" && all.Torn != nil {
		f.cut = all.Torn.Start
		if err := z.Torn(ctx, *all.Torn, s.write); err != nil && !errors.Is(err, errFatal) {
			return f, err
		}
	}
	f.events, f.fatal = s.events, s.fatal
	return f, nil
}

// errFatal ends the decoding of frames: the text was refused.
var errFatal = errors.New("refused")

// refuseFrame turns a frame that does not decode into the refusal.
func (f file) refuseFrame(err error) (file, error) {
	if errors.Is(err, frames.ErrDecode) {
		f.fatal = "zstd-decode"
		return f, nil
	}
	return f, err
}
