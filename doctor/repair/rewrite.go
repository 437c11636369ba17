package repair

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop/wire"
)

// rewriter writes the lines of a log as they are, for zstd in frames.
type rewriter struct {
	w    io.Writer
	enc  wire.Encoding
	head bool // the header is written
	text []byte
	out  []byte
	z    *zstd.Encoder
}

// frameBytes is how much text a frame has, unless a line has more.
const frameBytes = 256 << 10

// line writes a line; the first one is the header.
func (r *rewriter) line(b []byte) error {
	r.text = append(append(r.text, b...), '\n')
	if !r.head || len(r.text) >= frameBytes {
		r.head = true
		return r.flush()
	}
	return nil
}

// flush writes what was held back.
func (r *rewriter) flush() error {
	if len(r.text) == 0 {
		return nil
	}
	b := r.text
	if r.enc == wire.Zstd {
		if r.z == nil {
			var err error
			if r.z, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithWindowSize(2<<20), zstd.WithLowerEncoderMem(true)); err != nil {
				return err
			}
		}
		r.out = r.z.EncodeAll(r.text, r.out[:0])
		b = r.out
	}
	_, err := r.w.Write(b)
	if r.text = r.text[:0]; cap(r.text) > 4*frameBytes {
		r.text, r.out = nil, nil
	}
	return err
}

// aside keeps what is left out in files of their own. A nil aside keeps nothing.
type aside struct {
	open  func(name string) (io.WriteCloser, error)
	files map[string]io.WriteCloser
}

func (a *aside) file(name string) (io.WriteCloser, error) {
	if f := a.files[name]; f != nil {
		return f, nil
	}
	f, err := a.open(name)
	if err != nil {
		return nil, err
	}
	if a.files == nil {
		a.files = map[string]io.WriteCloser{}
	}
	a.files[name] = f
	return f, nil
}

// add appends a line to a file.
func (a *aside) add(name string, line []byte) error {
	if a == nil {
		return nil
	}
	f, err := a.file(name)
	if err == nil {
		_, err = f.Write(append(line[:len(line):len(line)], '\n'))
	}
	return err
}

// line appends a line of the file to a file. One that was not kept is copied
// from a plain file; of a frame's text its beginning has to do.
func (a *aside) line(name string, m *mender, l salvaged) error {
	if a == nil || l.size == len(l.text) || m.t.Encoding == wire.Zstd {
		return a.add(name, l.text)
	}
	f, err := a.file(name)
	if err == nil {
		_, err = io.Copy(f, io.NewSectionReader(m.t.R, l.pos.Offset, int64(l.size)))
	}
	if err == nil {
		_, err = f.Write([]byte{'\n'})
	}
	return err
}

// frame keeps bytes of the file as they are. Many of them share a file, one
// behind the other.
func (a *aside) frame(m *mender, from, to int64) error {
	if a == nil {
		return nil
	}
	name := fmt.Sprintf("frame-%d.zst", from)
	if len(a.files) >= maxFrameFiles {
		name = "frames.bin"
	}
	f, err := a.file(name)
	if err == nil {
		_, err = io.Copy(f, io.NewSectionReader(m.t.R, from, to-from))
	}
	return err
}

// maxFrameFiles bounds how many files are open.
const maxFrameFiles = 32

func (a *aside) close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		errs = append(errs, a.files[name].Close())
	}
	return errors.Join(errs...)
}
