package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// chunk is how much of a file is searched at a time, in bytes.
	chunk = 128 << 10
	// maxLine is how much of one line is searched, in bytes.
	maxLine = 256 << 10
	// maxShown is how much of one line is shown, in bytes, and lead how much
	// of that stands before the match.
	maxShown = 400
	lead     = 100
)

// searcher finds the lines that match in one file. A line is what stands
// between two line ends, LF or CRLF. It may be used by many goroutines.
type searcher struct {
	re      *regexp.Regexp
	literal string // in every line that matches, "" when not known
	fold    bool   // literal is in lower case and stands for both
	context int
	limit   int  // most matches
	first   bool // that there is a match is enough
}

// found is what one file has.
type found struct {
	name   string
	lines  []foundLine
	more   bool // matches beyond the limit
	gaps   bool // lines are matches and context, with gaps between
	binary bool
	long   bool // a line was over maxLine
	failed bool // it could not be read
}

type foundLine struct {
	number int
	text   string
	match  bool
}

// buffers are what a search works with; each goroutine has its own.
type buffers struct{ data, lower []byte }

// scan is one search of one file.
type scan struct {
	*searcher
	found
	buf     *buffers
	pos     int // where in buf.data the search goes on, always a line's start
	line    int // the number of the line at pos
	matches int
	size    int // bytes of the lines taken
	after   int // lines of context still to come
	done    bool
}

// file searches r to its end, with memory that does not depend on it.
func (s *searcher) file(ctx context.Context, r io.Reader, buf *buffers) (found, error) {
	if buf.data == nil {
		buf.data = make([]byte, chunk)
	}
	sc := &scan{searcher: s, buf: buf, line: 1}
	sc.gaps = s.context > 0
	n, begun, skipping := 0, false, false
	for !sc.done {
		if err := ctx.Err(); err != nil {
			return found{}, err
		}
		m, err := r.Read(buf.data[n:])
		n += m
		eof := errors.Is(err, io.EOF)
		if err != nil && !eof {
			return found{}, err
		}
		if !begun && (n >= headSize || eof) {
			begun = true
			head := buf.data[:min(n, headSize)]
			if utf16Name(head) != "" || bytes.IndexByte(head, 0) >= 0 {
				sc.binary = true
				break
			}
			if bytes.HasPrefix(head, []byte(utf8BOM)) {
				n = copy(buf.data, buf.data[len(utf8BOM):n])
			}
		}
		if !begun {
			continue
		}
		if skipping {
			// The rest of a line that was too long.
			i := bytes.IndexByte(buf.data[sc.pos:n], '\n')
			if i < 0 {
				n = sc.pos
				if eof {
					break
				}
				continue
			}
			n = sc.pos + copy(buf.data[sc.pos:], buf.data[sc.pos+i+1:n])
			skipping = false
		}
		end := n
		if !eof {
			end = sc.pos + bytes.LastIndexByte(buf.data[sc.pos:n], '\n') + 1
		}
		if end == sc.pos && !eof && n == len(buf.data) {
			switch {
			case sc.pos > 0:
				// Room for the line counts more than context.
				n = copy(buf.data, buf.data[sc.pos:n])
				sc.pos = 0
			case len(buf.data) < maxLine:
				buf.data = slices.Grow(buf.data, len(buf.data))[:2*len(buf.data)]
			default:
				next := sc.line + 1
				sc.long = true
				sc.search(n)
				n, sc.pos, sc.line = 0, 0, next
				skipping = true
			}
			continue
		}
		sc.search(end)
		if eof {
			break
		}
		keep := sc.keep()
		n = copy(buf.data, buf.data[keep:n])
		sc.pos -= keep
	}
	return sc.found, nil
}

// search searches the lines from pos to end and leaves pos there.
func (sc *scan) search(end int) {
	data := sc.buf.data
	hay := data
	if sc.literal != "" && sc.fold {
		if len(sc.buf.lower) < len(data) {
			sc.buf.lower = make([]byte, len(data))
		}
		lower(sc.buf.lower[sc.pos:end], data[sc.pos:end])
		hay = sc.buf.lower
	}
	for sc.pos < end && !sc.done {
		if sc.after == 0 && sc.literal != "" {
			next := end
			if i := bytes.Index(hay[sc.pos:end], []byte(sc.literal)); i >= 0 {
				next = sc.pos + bytes.LastIndexByte(data[sc.pos:sc.pos+i], '\n') + 1
			}
			sc.line += bytes.Count(data[sc.pos:next], []byte{'\n'})
			if sc.pos = next; next == end {
				return
			}
		}
		next := end
		text := data[sc.pos:end]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			next = sc.pos + i + 1
			text = bytes.TrimSuffix(text[:i], []byte{'\r'})
		}
		switch {
		case sc.re.Match(text):
			sc.match(text)
		case sc.after > 0:
			sc.after--
			sc.take(sc.line, text, nil)
		}
		sc.pos = next
		sc.line++
	}
}

// match takes a line that matches, and the context before it.
func (sc *scan) match(text []byte) {
	if sc.matches == sc.limit {
		sc.more, sc.done = true, true
		return
	}
	sc.matches++
	sc.before()
	sc.take(sc.line, text, sc.re.FindIndex(text))
	sc.after = sc.context
	sc.done = sc.done || sc.first
}

// before takes the lines of context before pos that were not taken yet.
func (sc *scan) before() {
	last := 0
	if n := len(sc.lines); n > 0 {
		last = sc.lines[n-1].number
	}
	data, start, n := sc.buf.data, sc.pos, 0
	for n < sc.context && start > 0 && sc.line-n-1 > last {
		start = bytes.LastIndexByte(data[:start-1], '\n') + 1
		n++
	}
	for ; n > 0; n-- {
		end := start + bytes.IndexByte(data[start:], '\n')
		sc.take(sc.line-n, bytes.TrimSuffix(data[start:end], []byte{'\r'}), nil)
		start = end + 1
	}
}

// take keeps one line; at is where it matches, nil for context.
func (sc *scan) take(number int, text []byte, at []int) {
	l := foundLine{number, excerpt(text, at), at != nil}
	sc.lines = append(sc.lines, l)
	if sc.size += len(l.text) + 1; sc.size > MaxRead {
		sc.more, sc.done = true, true // no result holds more
	}
}

// keep is where the lines begin that may be needed as context.
func (sc *scan) keep() int {
	const most = 64 << 10
	start := sc.pos
	for n := 0; n < sc.context && start > 0; n++ {
		prev := bytes.LastIndexByte(sc.buf.data[:start-1], '\n') + 1
		if sc.pos-prev > most {
			break
		}
		start = prev
	}
	return start
}

// excerpt is a line as it is shown: of a long one the part around the match.
func excerpt(text []byte, at []int) string {
	if len(text) <= maxShown {
		return strings.ToValidUTF8(string(text), "\uFFFD")
	}
	from := 0
	if at != nil {
		from = max(0, min(at[0]-lead, len(text)-maxShown))
	}
	to := from + maxShown
	for from > 0 && from < to && !utf8.RuneStart(text[from]) {
		from++
	}
	out := strings.ToValidUTF8(string(wholeRunes(text[from:to])), "\uFFFD")
	if from > 0 {
		out = "[...] " + out
	}
	if to < len(text) {
		out += " [...]"
	}
	return out
}
