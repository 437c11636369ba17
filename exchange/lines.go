package exchange

import (
	"bytes"
	"errors"
	"hash"
	"io"
	"iter"
	"strings"

	"github.com/outcrop-dev/outcrop"
)

// MaxLine is the longest line of a source that is read, in bytes; a longer one
// is passed over.
const MaxLine = outcrop.MaxRecord

// Line is one line of a text.
type Line struct {
	Number int64  // from 1
	Offset int64  // of its first byte
	Text   []byte // without its line end; valid until the next line
	Bytes  int64  // with its line end
	Torn   bool   // the text ends without a line end
	Long   bool   // it has more than MaxLine bytes; Text is its beginning
}

// mark is the byte order mark that some editors put before a text.
const mark = "\xef\xbb\xbf"

// TrimMark is a text without a byte order mark at its beginning.
func TrimMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(mark)) }

// Lines yields the lines of a text, empty ones too. A byte order mark before the
// first line is no part of it. sum, when it is not nil,
// gets every byte that was read. What is held is one line. An error of r ends
// it.
func Lines(r io.Reader, sum hash.Hash) iter.Seq2[Line, error] {
	const room = 1 << 20
	return func(yield func(Line, error) bool) {
		buf := make([]byte, 0, room)
		line := Line{Number: 1}
		done, looked := 0, 0 // bytes of buf that were yielded, and that hold no line end
		skipped := int64(0)  // bytes of a long line that are gone
		begun, ended := false, false
		for {
			if i := bytes.IndexByte(buf[looked:], '\n'); i >= 0 {
				end := looked + i
				line.Bytes = int64(end+1-done) + skipped
				if !line.Long {
					line.Text = trimCR(buf[done:end:end])
				}
				if !yield(line, nil) {
					return
				}
				line = Line{Number: line.Number + 1, Offset: line.Offset + line.Bytes}
				done, looked, skipped = end+1, end+1, 0
				continue
			}
			looked = len(buf)
			if ended {
				if line.Bytes = int64(len(buf)-done) + skipped; line.Bytes > 0 {
					line.Torn = true
					if !line.Long {
						line.Text = buf[done:]
					}
					yield(line, nil)
				}
				return
			}
			switch {
			case looked-done > MaxLine:
				line.Long = true
				line.Text = bytes.Clone(buf[done : done+200])
				skipped += int64(looked - done)
				buf, done, looked = buf[:0], 0, 0
			case line.Long:
				skipped += int64(looked - done)
				buf, done, looked = buf[:0], 0, 0
			case done > 0:
				n := copy(buf, buf[done:])
				if cap(buf) > 8*room && n < room {
					buf = append(make([]byte, 0, room), buf[:n]...)
				}
				buf, done, looked = buf[:n], 0, n
			}
			if cap(buf)-len(buf) < room/4 {
				buf = append(make([]byte, 0, max(2*cap(buf), room)), buf...)
			}
			n, err := r.Read(buf[len(buf):cap(buf)])
			if sum != nil {
				sum.Write(buf[len(buf) : len(buf)+n])
			}
			buf = buf[:len(buf)+n]
			if !begun && (len(buf) >= len(mark) || err != nil || !strings.HasPrefix(mark, string(buf))) {
				begun = true
				if bytes.HasPrefix(buf, []byte(mark)) {
					done, looked, line.Offset = len(mark), len(mark), int64(len(mark))
				}
			}
			if errors.Is(err, io.EOF) {
				ended = true
			} else if err != nil {
				yield(line, err)
				return
			}
		}
	}
}

func trimCR(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return b[:n-1]
	}
	return b
}
