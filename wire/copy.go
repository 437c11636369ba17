package wire

import (
	"bytes"
	"io"
	"os"

	"github.com/outcrop-dev/outcrop"
)

// CopyPrefix copies the bytes of a log's records from the first one through
// the event with seq through, without the header, as they are. It reports
// false, with nothing written, when that is not possible: the seq is not on a
// border (inside a packed row or, for Zstd, inside a frame), the log does not
// have it, old shapes are in it, whose made ids name the session, or it is of
// format 2 or later. The caller encodes the records anew then.
//
// The border is looked for by halving, so only a few records are decoded; what
// is copied is not checked. Memory does not grow with the log, except for eight
// bytes a frame. When both are *os.File the kernel copies if it can; src's
// position in the file moves.
func CopyPrefix(dst io.Writer, src io.ReaderAt, size int64, enc Encoding, through outcrop.Seq) (bool, error) {
	r, err := NewReader(src, size, enc)
	if err != nil {
		return false, err
	}
	if through < 0 {
		return true, nil
	}
	if r.Format() >= 2 || r.beginsOld() {
		return false, nil
	}
	find := r.lineBorder
	if enc == Zstd {
		find = r.frameBorder
	}
	end, err := find(through)
	if err != nil || end < 0 {
		return false, err
	}
	return true, copyRange(dst, src, r.from, end-r.from)
}

// beginsOld reports whether the first records have old shapes. Writers did not
// go back to them, so the first messages tell.
func (r *Reader) beginsOld() bool {
	seen := 0
	for rec, err := range r.Records() {
		if seen++; err != nil || rec.Type == outcrop.TypeTurnEnd || r.Upgraded() > 0 || seen > 64 {
			break
		}
	}
	return r.Upgraded() > 0
}

// lineBorder finds the offset behind the line that ends with the event
// through, -1 when there is none.
func (r *Reader) lineBorder(through outcrop.Seq) (int64, error) {
	// The line starts at or behind lo, which is the start of a line, and
	// before hi.
	lo, hi := r.from, r.size
	for hi-lo > 4*headChunk {
		mid := lo + (hi-lo)/2
		at, d, err := r.lineFrom(mid, hi)
		switch {
		case err != nil:
			return -1, err
		case d == nil:
			hi = mid
		case d.rec.Seq <= through:
			lo = at
		default:
			hi = mid
		}
	}
	for lo < r.size {
		line, err := r.lineAt(lo)
		if err != nil || line == nil {
			return -1, err
		}
		lo += int64(len(line)) + 1
		var d decoded
		switch d.decode(line, false); {
		case d.what == isBlank:
		case d.what != isRecord || d.rec.Last() > through:
			return -1, nil
		case d.rec.Last() == through:
			return lo, nil
		}
	}
	return -1, nil
}

// lineFrom finds the first record whose line starts behind from and before
// limit; nil when there is none.
func (r *Reader) lineFrom(from, limit int64) (int64, *decoded, error) {
	for at := from; ; {
		line, err := r.lineAt(at)
		if err != nil || line == nil {
			return 0, nil, err
		}
		if at > from {
			var d decoded
			if d.decode(line, false); d.what == isRecord && d.rec.Seq >= 0 {
				return at, &d, nil
			}
		}
		if at += int64(len(line)) + 1; at >= limit {
			return 0, nil, nil
		}
	}
}

// lineAt reads from an offset to the next newline; nil when there is none.
func (r *Reader) lineAt(off int64) ([]byte, error) {
	for n := int64(headChunk); ; n *= 2 {
		n = min(n, r.size-off)
		b := make([]byte, n)
		if _, err := readFull(r.r, b, off); err != nil {
			return nil, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return b[:i:i], nil
		}
		if off+n >= r.size || n > MaxLine {
			return nil, nil
		}
	}
}

// frameBorder finds the offset behind the frame that ends with the event
// through, -1 when there is none.
func (r *Reader) frameBorder(through outcrop.Seq) (int64, error) {
	w := &window{r: r.r, size: r.size}
	var starts []int64
	end := r.from
	for end < r.size {
		w.keep = end
		f, bad, err := scanFrame(w, end)
		if err != nil {
			return -1, err
		}
		if bad != nil || f.torn {
			break
		}
		starts = append(starts, f.off)
		end = f.end
	}
	// The event lies in a frame from lo on and before hi.
	lo, hi := 0, len(starts)
	var found frameRecords
	for lo < hi {
		mid := lo + (hi-lo)/2
		at, got, err := r.recordsFrom(w, starts, mid, hi)
		switch {
		case err != nil:
			return -1, err
		case !got.any || got.first > through:
			hi = mid
		default:
			lo, found = at+1, got
		}
	}
	if !found.any || found.last != through || !found.clean {
		return -1, nil
	}
	return found.end, nil
}

// frameRecords is what a frame holds.
type frameRecords struct {
	any         bool
	first, last outcrop.Seq
	clean       bool // it ends with the newline of a record
	end         int64
}

// recordsFrom finds the first frame from i on and before limit in which a
// record ends.
func (r *Reader) recordsFrom(w *window, starts []int64, i, limit int) (int, frameRecords, error) {
	var scratch []byte
	for ; i < limit; i++ {
		w.keep = starts[i]
		f, bad, err := scanFrame(w, starts[i])
		if err != nil || bad != nil {
			return i, frameRecords{}, err
		}
		got := frameRecords{end: f.end}
		var held []byte
		bad, err = frameText(w, f, &scratch, func(text []byte) bool {
			held = append(held, text...)
			for {
				n := bytes.IndexByte(held, '\n')
				if n < 0 {
					break
				}
				var d decoded
				d.decode(held[:n:n], false)
				if d.what == isRecord && d.rec.Seq >= 0 {
					if !got.any {
						got.any, got.first = true, d.rec.Seq
					}
					got.last = d.rec.Last()
				}
				got.clean = d.what == isRecord || d.what == isBlank
				held = held[n+1:]
			}
			got.clean = got.clean && len(held) == 0
			return len(held) <= MaxLine
		})
		if err != nil || bad != nil {
			return i, frameRecords{}, err
		}
		if got.any {
			return i, got, nil
		}
	}
	return i, frameRecords{}, nil
}

// copyRange copies n bytes from off on.
func copyRange(dst io.Writer, src io.ReaderAt, off, n int64) error {
	var part io.Reader = io.NewSectionReader(src, off, n)
	if from, ok := src.(*os.File); ok {
		if _, ok := dst.(*os.File); ok {
			// A limited file lets ReadFrom leave the copying to the kernel.
			if _, err := from.Seek(off, io.SeekStart); err == nil {
				part = io.LimitReader(from, n)
			}
		}
	}
	m, err := io.CopyBuffer(dst, part, make([]byte, block))
	if err == nil && m != n {
		err = io.ErrUnexpectedEOF
	}
	return err
}
