package wire

import (
	"bytes"
	"io"

	"github.com/outcrop-dev/outcrop"
)

// A source gives the text behind the header in order, in pieces that become
// the log's arenas: a piece is never written again once it was given out.
type source interface {
	// run calls emit with each piece until emit returns false. The last piece
	// says in end why there is no more.
	run(emit func(piece) bool)
}

// piece is a part of a log's text.
type piece struct {
	text    []byte
	borders []border // frames that start in the piece, or behind its last byte
	end     *ending
}

// border says that the frame at file offset off starts at text[at].
type border struct {
	at  int
	off int64
}

// ending is why the text ends.
type ending struct {
	err  error          // reading failed
	bad  *outcrop.Error // a frame is damaged or torn; nil at the clean end of the file
	off  int64          // where that frame starts
	lost bool           // a turn/end lies behind it
}

// plainSource reads the text of a plain file.
type plainSource struct {
	r         io.ReaderAt
	off, size int64
}

func (s *plainSource) run(emit func(piece) bool) {
	for off := s.off; off < s.size; {
		b := make([]byte, min(block, s.size-off))
		n, err := readFull(s.r, b, off)
		if err != nil {
			if n > 0 && !emit(piece{text: b[:n:n]}) {
				return
			}
			emit(piece{end: &ending{err: err}})
			return
		}
		if !emit(piece{text: b}) {
			return
		}
		off += int64(n)
	}
	emit(piece{end: &ending{}})
}

// zstdSource decodes the frames of a file.
type zstdSource struct {
	r         io.ReaderAt
	off, size int64

	emit    func(piece) bool
	arena   []byte // text so far; the free part is its capacity
	from    int    // what of it was given out already
	borders []border
	scratch []byte
	stopped bool
	reuse   bool // who takes a piece is done with it at once
}

// enough is how much text is worth a hand-over.
const enough = block / 4

func (s *zstdSource) run(emit func(piece) bool) {
	s.emit = emit
	w := &window{r: s.r, size: s.size}
	for off := s.off; ; {
		if off >= s.size {
			s.flush(&ending{})
			return
		}
		w.keep = off
		f, bad, err := scanFrame(w, off)
		if err == nil && bad == nil && !f.torn {
			bad, err = s.frame(w, f)
		}
		switch {
		case s.stopped:
			return
		case err != nil:
			s.flush(&ending{err: err})
			return
		case bad != nil || f.torn:
			s.broken(w, f, bad)
			return
		}
		off = f.end
	}
}

// frame takes one complete frame.
func (s *zstdSource) frame(w *window, f frame) (bad *outcrop.Error, err error) {
	if f.bound <= int64(cap(s.arena)-len(s.arena)) {
		// The usual case: decode to the place where the text stays.
		src, err := w.peek(f.off, int(f.end-f.off))
		if err != nil {
			return nil, err
		}
		n := len(s.arena)
		text, bad := decodeFrame(s.arena, src, f)
		if bad != nil {
			return bad, nil
		}
		s.borders = append(s.borders, border{n - s.from, f.off})
		s.arena = text
		if len(s.arena)-s.from >= enough {
			s.flush(nil)
		}
		return nil, nil
	}
	first := true
	return frameText(w, f, &s.scratch, func(text []byte) bool {
		if first {
			s.borders = append(s.borders, border{len(s.arena) - s.from, f.off})
			first = false
		}
		return s.copy(text)
	})
}

// copy appends text to the arenas.
func (s *zstdSource) copy(text []byte) bool {
	for len(text) > 0 && !s.stopped {
		if len(s.arena) == cap(s.arena) {
			s.flush(nil)
			if s.reuse && cap(s.arena) > 0 {
				s.arena, s.from = s.arena[:0], 0
				continue
			}
			// Small logs get a small arena.
			s.arena, s.from = make([]byte, 0, min(block, max(len(text), int(min(block, 16*(s.size-s.off)))))), 0
		}
		n := min(len(text), cap(s.arena)-len(s.arena))
		s.arena = append(s.arena, text[:n]...)
		text = text[n:]
	}
	if len(s.arena)-s.from >= enough {
		s.flush(nil)
	}
	return !s.stopped
}

func (s *zstdSource) flush(end *ending) {
	if s.stopped || end == nil && len(s.arena) == s.from && len(s.borders) == 0 {
		return
	}
	n := len(s.arena)
	s.stopped = !s.emit(piece{text: s.arena[s.from:n:n], borders: s.borders, end: end})
	s.from, s.borders = n, nil
}

// broken decides what a bad or torn frame means, and saves what a torn one
// still holds.
func (s *zstdSource) broken(w *window, f frame, bad *outcrop.Error) {
	s.borders = append(s.borders, border{len(s.arena) - s.from, f.off})
	end := &ending{bad: bad, off: f.off}
	if bad != nil {
		// What arrived of it in part, with zero bytes for the rest, is torn.
		if torn, part, err := zeroed(w, f); err != nil {
			end.err = err
		} else if torn {
			w, f, bad = part.window, part.frame, nil
		}
	}
	if end.err == nil {
		end.lost, end.err = turnEndBehind(w, f.off+1, &s.scratch)
	}
	switch {
	case end.err != nil:
	case bad == nil:
		end.bad = damage("FRAME_TORN", "the last frame is torn")
		if !end.lost {
			end.err = looseText(w, f, s.copy)
		}
	case !end.lost && f.blocks > f.off:
		// The frame itself may show that a turn ended in it.
		var lines turnEnds
		end.err = looseText(w, f, lines.add)
		end.lost = lines.found
	}
	s.flush(end)
}

// turnEnds looks for a turn/end line in pieces of text.
type turnEnds struct {
	found bool
	carry []byte // the start of a line that goes on in the next piece
}

func (t *turnEnds) add(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			break
		}
		line := text[:i]
		if len(t.carry) > 0 {
			line = append(t.carry, line...)
			t.carry = t.carry[:0]
		}
		if isTurnEnd(line) {
			t.found = true
			return false
		}
		text = text[i+1:]
	}
	if len(t.carry)+len(text) <= block { // no turn/end is longer
		t.carry = append(t.carry, text...)
	}
	return true
}

// turnEndBehind looks at frames that are complete, carry a checksum and pass
// it, anywhere from an offset on, and reports whether one of them holds a
// turn/end line. A file that makes the search long on purpose is answered with
// true: nothing of it may be cut.
func turnEndBehind(w *window, from int64, scratch *[]byte) (bool, error) {
	var lines turnEnds
	next := int64(-1)
	budget := 4*w.size + 256<<20 // bytes walked and decoded
	for {
		off, err := findMagic(w, from)
		if off < 0 || err != nil {
			return false, err
		}
		w.keep, w.peeks = off, 0
		f, bad, err := scanFrame(w, off)
		if err != nil {
			return false, err
		}
		from = off + 1
		if budget -= 3 * w.peeks; budget < 0 {
			return true, nil
		}
		if bad != nil || f.torn || !f.sum {
			continue
		}
		if budget -= f.bound; budget < 0 {
			return true, nil
		}
		if off != next {
			lines.carry = lines.carry[:0]
		}
		bad, err = frameText(w, f, scratch, lines.add)
		if err != nil || lines.found {
			return lines.found, err
		}
		if bad == nil {
			from, next = f.end, f.end
		}
	}
}

// findMagic returns the offset of the next frame magic, -1 when there is none.
func findMagic(w *window, off int64) (int64, error) {
	for off+4 <= w.size {
		w.keep = off
		b, err := w.peek(off, int(min(block/4, w.size-off)))
		if err != nil {
			return -1, err
		}
		if i := bytes.Index(b, magicBytes); i >= 0 {
			return off + int64(i), nil
		}
		off += int64(len(b) - 3)
	}
	return -1, nil
}

// isTurnEnd reports whether a line is a decodable turn/end event.
func isTurnEnd(line []byte) bool {
	e, err := outcrop.DecodeEvent(line)
	return err == nil && e.Type == outcrop.TypeTurnEnd
}
