package wire

import (
	"bytes"

	"github.com/klauspost/compress/zstd"
)

// part is the head of a frame, up to where the zero bytes begin that end the
// file.
type part struct {
	window *window
	frame  frame
}

// zeroed reports whether a frame that was refused is one whose write arrived in
// part: the file is as long as the write made it, and ends in zero bytes where
// the rest was to be. Its checksum, which ends it, is among them; when some bytes
// of the checksum are there, they must be those of the text.
func zeroed(w *window, f frame) (bool, part, error) {
	if f.end <= f.off || !f.sum {
		return false, part{}, nil
	}
	at, err := zeroTail(w, f.off)
	if err != nil || at >= f.end {
		return false, part{}, err
	}
	p := part{window: &window{r: w.r, size: at, keep: f.off}}
	head, bad, err := scanFrame(p.window, f.off)
	if err != nil || bad != nil || !head.torn {
		return false, part{}, err
	}
	p.frame = head
	if some := at - head.blocks; head.whole && some > 0 {
		// The text is all there, or was changed and its checksum ends in zeros
		// by chance.
		have, err := p.window.peek(head.blocks, int(some))
		if err != nil {
			return false, part{}, err
		}
		have = bytes.Clone(have)
		if head.bound > maxFrameText {
			return false, part{}, nil
		}
		var text []byte
		if err := looseText(p.window, head, func(b []byte) bool { text = append(text, b...); return true }); err != nil {
			return false, part{}, err
		}
		return bytes.HasPrefix(checksum(text), have), p, nil
	}
	return true, p, nil
}

// checksum is the checksum that a frame of this text ends in.
func checksum(text []byte) []byte {
	z := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(z)
	b := z.EncodeAll(text, nil)
	return b[len(b)-min(4, len(b)):]
}

// zeroTail is where the zero bytes at the end of a file begin, not looking
// before an offset.
func zeroTail(w *window, from int64) (int64, error) {
	b := make([]byte, 64<<10)
	for at := w.size; at > from; {
		n := min(int64(len(b)), at-from)
		if m, err := readFull(w.r, b[:n], at-n); err != nil && int64(m) < n {
			return 0, err
		}
		if rest := bytes.TrimRight(b[:n], "\x00"); len(rest) > 0 {
			return at - n + int64(len(rest)), nil
		}
		at -= n
	}
	return from, nil
}
