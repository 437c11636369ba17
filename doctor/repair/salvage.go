package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/doctor/internal/frames"
	"github.com/outcrop-dev/outcrop/wire"
)

// salvor gives the text of a damaged file line by line, and says where bytes
// stand that are no text. Unlike a reader it goes on behind damage: what counts
// is for its user to decide.
type salvor struct {
	ctx  context.Context
	t    doctor.Target
	line func(l salvaged) error // the bytes are valid until it returns
	// gap hears of bytes [from, to) of the file that are no text.
	gap func(code outcrop.Code, msg string, from, to int64) error

	pos   wire.Pos // of the line that goes on, or of the next one
	text  int64    // bytes of text so far
	at    int64    // where the frame, or the plain piece, of the next byte begins
	held  []byte
	parts [][]byte // what follows held of a long line
	size  int      // bytes of the line that goes on; more than held when it is too long
	none  bool     // it is no record

	budget int64
}

// salvaged is one line.
type salvaged struct {
	text    []byte // without its newline; only the first bytes when it was not kept
	size    int
	none    bool // it begins as no record does, and was not kept because it is long
	newline bool // it ended in one
	pos     wire.Pos
}

// run goes over the whole file. The error is one of reading, of ctx, or of the
// user.
func (s *salvor) run() error {
	s.pos.Line = 1
	s.budget = 4*s.t.Size + 256<<20
	var err error
	if s.t.Encoding == wire.Zstd {
		err = s.frames()
	} else {
		err = frames.NewChunks(io.NewSectionReader(s.t.R, 0, s.t.Size)).Each(s.ctx, s.plain)
	}
	if err == nil {
		err = s.flush()
	}
	return err
}

func (s *salvor) plain(p []byte) error {
	s.at = s.text
	return s.feed(p)
}

// feed takes the next bytes of text.
func (s *salvor) feed(p []byte) error {
	for len(p) > 0 {
		if s.size == 0 {
			s.pos.Offset, s.pos.TextOffset = s.at, s.text
			if s.t.Encoding == wire.Plain {
				s.pos.Offset = s.text
			}
		}
		n := bytes.IndexByte(p, '\n')
		part := p
		if n >= 0 {
			part = p[:n]
		}
		s.text += int64(len(part))
		line := part
		if s.size > 0 || n < 0 {
			s.hold(part)
			if n >= 0 {
				if err := s.whole(); err != nil {
					return err
				}
			}
			line = s.held
		}
		if n < 0 {
			return nil
		}
		size := max(s.size, len(line))
		s.text++
		p = p[n+1:]
		if err := s.line(salvaged{text: line, size: size, none: s.none, newline: true, pos: s.pos}); err != nil {
			return err
		}
		s.next()
	}
	return nil
}

// hold keeps a part of the line that goes on. Of one that can be no record, or
// none that is read, the first bytes are kept, so that a file of zeros needs no
// memory. A long line of a plain file is read again when its end is known, so
// that there is one copy of it; one of frames is kept in parts until then.
func (s *salvor) hold(part []byte) {
	s.size += len(part)
	if s.none || s.size > wire.MaxLine {
		if s.parts = nil; len(s.held) > 1<<10 {
			s.held = bytes.Clone(s.held[:1<<10])
		}
		return
	}
	switch {
	case s.size <= maxIndent:
		s.held = append(s.held, part...)
		return
	case s.t.Encoding == wire.Zstd:
		s.parts = append(s.parts, bytes.Clone(part))
	}
	begin := bytes.TrimLeft(s.held, "\x00 \t\r")
	s.none = len(begin) == 0 || begin[0] != '{'
}

// whole puts the line together that was held, as far as it is wanted.
func (s *salvor) whole() error {
	if s.none || s.size <= maxIndent || s.size > wire.MaxLine {
		return nil
	}
	if s.t.Encoding == wire.Zstd {
		line := append(make([]byte, 0, s.size), s.held...)
		for i, part := range s.parts {
			line = append(line, part...)
			s.parts[i] = nil
		}
		s.held, s.parts = line, nil
		return nil
	}
	s.held = make([]byte, s.size)
	if _, err := io.ReadFull(io.NewSectionReader(s.t.R, s.pos.Offset, int64(s.size)), s.held); err != nil {
		return fmt.Errorf("%d bytes at byte %d: %w", s.size, s.pos.Offset, err)
	}
	return nil
}

// maxIndent is how far into a line that is kept its record begins.
const maxIndent = 1 << 20

// next begins a line.
func (s *salvor) next() {
	s.pos.Line++
	s.none = false
	s.parts = nil
	if s.size, s.held = 0, s.held[:0]; cap(s.held) > 4<<20 {
		s.held = nil
	}
}

// flush gives the line that lacks its newline.
func (s *salvor) flush() error {
	if s.size == 0 {
		return nil
	}
	if err := s.whole(); err != nil {
		return err
	}
	err := s.line(salvaged{text: s.held, size: s.size, none: s.none, pos: s.pos})
	s.next()
	return err
}

// frames goes over the frames of a zstd file.
func (s *salvor) frames() error {
	z, err := frames.NewText(s.t.R)
	if err != nil {
		return err
	}
	defer z.Close()
	w := frames.NewWalker(s.t.R, s.t.Size)
	for at := int64(0); at < s.t.Size; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		f, code, msg, err := s.look(z, w, at)
		if err != nil {
			return err
		}
		if code == "" {
			s.at = f.Start
			if err := z.Whole(s.ctx, f, s.feed); err != nil {
				return err
			}
			at = f.End
			continue
		}
		// What could be decoded of a torn frame at the end counts as far as its
		// lines are whole.
		next, err := s.nextFrame(z, w, at+1)
		if err != nil {
			return err
		}
		if code == "FRAME_TORN" && next == s.t.Size {
			s.at = at
			if err := z.Torn(s.ctx, f, s.feed); err != nil {
				return err
			}
			s.size, s.none, s.held, s.parts = 0, false, s.held[:0], nil // a line that was cut off here
		}
		if err := s.flush(); err != nil {
			return err
		}
		if err := s.gap(code, msg, at, next); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// look judges the frame at an offset; code is "" for one whose text counts.
func (s *salvor) look(z *frames.Text, w *frames.Walker, at int64) (f frames.Frame, code outcrop.Code, msg string, err error) {
	f, err = w.Frame(at)
	var class frames.Class
	switch {
	case errors.As(err, &class):
		switch class {
		case "file-zstd-reserved-bit":
			return f, "FRAME_DESCRIPTOR", "a frame has a reserved bit", nil
		case "file-zstd-block-type":
			return f, "FRAME_BLOCK", "a frame has a block of a reserved type", nil
		}
		return f, "FRAME_MAGIC", "bytes that begin no frame", nil
	case err != nil:
		return f, "", "", err
	case f.Torn:
		return f, "FRAME_TORN", "a frame that does not end in the file", nil
	}
	err = z.Whole(s.ctx, f, func([]byte) error { return nil })
	if errors.Is(err, frames.ErrDecode) {
		return f, "FRAME_DECODE", "a frame that cannot be decoded or fails its checksum", nil
	}
	return f, "", "", err
}

// nextFrame is where the next frame begins that is complete, has a checksum and
// passes it, or the end of the file. A file that makes the search long on
// purpose is not searched to its end.
func (s *salvor) nextFrame(z *frames.Text, w *frames.Walker, from int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for from+4 <= s.t.Size && s.budget > 0 {
		n := min(int64(len(buf)), s.t.Size-from)
		if _, err := io.ReadFull(io.NewSectionReader(s.t.R, from, n), buf[:n]); err != nil {
			return 0, fmt.Errorf("%d bytes at byte %d: %w", n, from, err)
		}
		s.budget -= n
		i := bytes.Index(buf[:n], zstdMagicBytes)
		if i < 0 {
			from += n - 3
			continue
		}
		from += int64(i)
		before := w.Taken
		f, code, _, err := s.candidate(z, w, from)
		s.budget -= 16*(w.Taken-before) + int64(i) // what was walked over
		if err != nil {
			return 0, err
		}
		if code == "" && f.Descriptor&0x04 != 0 {
			return from, nil
		}
		from++
	}
	return s.t.Size, nil
}

// candidate is look, without decoding what its headers rule out.
func (s *salvor) candidate(z *frames.Text, w *frames.Walker, at int64) (f frames.Frame, code outcrop.Code, msg string, err error) {
	f, err = w.Frame(at)
	var class frames.Class
	if errors.As(err, &class) || err == nil && (f.Torn || f.Descriptor&0x04 == 0) {
		return f, "FRAME_MAGIC", "", nil
	}
	if err != nil {
		return f, "", "", err
	}
	s.budget -= f.End - f.Start
	return s.look(z, w, at)
}

var zstdMagicBytes = []byte{0x28, 0xb5, 0x2f, 0xfd}
