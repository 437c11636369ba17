package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// MaxEvent is the longest line, and the longest event, in bytes.
const MaxEvent = 16 << 20

// maxLooks is for how many lines of one event it is asked whether they are
// complete: each look reads all of them.
const maxLooks = 20

// ErrTooLong says that a line or an event is longer than MaxEvent.
var ErrTooLong = errors.New("event too long")

// Done is the data of the event that ends some streams.
var Done = []byte("[DONE]")

// Events reads the data of server-sent events. Event names, ids and comments
// are passed over. A line ends in LF, CRLF or CR. Events should be set apart by
// blank lines; where they are not, data that is complete by itself is an event
// of its own.
type Events struct {
	// Ended says that the stream ended with the event that was read last.
	Ended bool
	// Other says that a line was seen that belongs to no event stream.
	Other bool

	r    *bufio.Reader
	line []byte
	cr   bool   // the last line ended in CR: a LF that follows belongs to it
	next []byte // data that belongs to the event after this one
	held bool   // next is set
}

// NewEvents reads events from r.
func NewEvents(r io.Reader) *Events { return &Events{r: bufio.NewReaderSize(r, 64<<10)} }

// Read returns the data of the next event, io.EOF after the last one. The data
// is valid until the next call.
func (e *Events) Read() ([]byte, error) {
	var data []byte
	have, lines := false, 0
	if e.held {
		data, have, e.held = e.next, true, false
	}
	for {
		if e.Ended {
			if have {
				return data, nil
			}
			return nil, io.EOF
		}
		line, err := e.readLine()
		switch {
		case err == io.EOF:
			e.Ended = true
		case err != nil:
			return nil, err
		}
		value, ok := e.data(line)
		switch {
		case !ok && len(line) == 0 && have:
			return data, nil
		case !ok:
		case !have:
			data, have = bytes.Clone(value), true
		case bytes.Equal(data, Done), lines < maxLooks && jsonwire.Valid(data) == nil:
			e.next, e.held = bytes.Clone(value), true
			return data, nil
		case len(data)+len(value) > MaxEvent:
			return nil, ErrTooLong
		default:
			data = append(append(data, '\n'), value...)
			lines++
		}
	}
}

// data is the value of a data line. A bare JSON object counts as one: it is how
// some servers report an error in the middle of a stream.
func (e *Events) data(line []byte) ([]byte, bool) {
	if v, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		return bytes.TrimPrefix(v, []byte{' '}), true
	}
	if len(line) == 0 || line[0] == ':' {
		return nil, false
	}
	if line[0] == '{' {
		return line, true
	}
	switch name, _, _ := bytes.Cut(line, []byte{':'}); string(name) {
	case "data", "event", "id", "retry":
	default:
		e.Other = true
	}
	return nil, false
}

// readLine returns the next line without its end; with io.EOF, what stands
// before the end of the stream. It waits for no byte behind the end of a line:
// the event may be the last one for a long time.
func (e *Events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		if _, err := e.r.Peek(1); err != nil {
			return bytes.TrimPrefix(e.line, []byte("\ufeff")), err
		}
		part, _ := e.r.Peek(e.r.Buffered())
		if e.cr && part[0] == '\n' {
			part = part[1:]
			e.r.Discard(1)
		}
		if e.cr = false; len(part) == 0 {
			continue
		}
		end := len(part)
		for _, c := range [...]byte{'\n', '\r'} {
			if i := bytes.IndexByte(part[:end], c); i >= 0 {
				end = i
			}
		}
		if len(e.line)+end > MaxEvent {
			return nil, ErrTooLong
		}
		e.line = append(e.line, part[:end]...)
		if end == len(part) {
			e.r.Discard(end)
			continue
		}
		e.cr = part[end] == '\r'
		e.r.Discard(end + 1)
		return bytes.TrimPrefix(e.line, []byte("\ufeff")), nil
	}
}
