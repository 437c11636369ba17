package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// maxEvent is the longest line, and the longest event, in bytes.
const maxEvent = 16 << 20

var errTooLong = errors.New("event too long")

var doneMark = []byte("[DONE]")

// events reads the data of server-sent events. Event names, ids and comments
// are passed over. Events should be set apart by blank lines; where they are
// not, data that is complete by itself is an event of its own.
type events struct {
	r     *bufio.Reader
	line  []byte
	next  []byte // data that belongs to the event after this one
	held  bool   // next is set
	ended bool
	other bool // a line was seen that belongs to no event stream
}

func newEvents(r io.Reader) *events { return &events{r: bufio.NewReaderSize(r, 64<<10)} }

// read returns the data of the next event, io.EOF after the last one. The data
// is valid until the next call.
func (e *events) read() ([]byte, error) {
	var data []byte
	have := false
	if e.held {
		data, have, e.held = e.next, true, false
	}
	for {
		if e.ended {
			if have {
				return data, nil
			}
			return nil, io.EOF
		}
		line, err := e.readLine()
		switch {
		case err == io.EOF:
			e.ended = true
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
		case bytes.Equal(data, doneMark) || jsonwire.Valid(data) == nil:
			e.next, e.held = bytes.Clone(value), true
			return data, nil
		case len(data)+len(value) > maxEvent:
			return nil, errTooLong
		default:
			data = append(append(data, '\n'), value...)
		}
	}
}

// data is the value of a data line. A bare JSON object counts as one: it is how
// some servers report an error in the middle of a stream.
func (e *events) data(line []byte) ([]byte, bool) {
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
		e.other = true
	}
	return nil, false
}

// readLine returns the next line without its end; with io.EOF, what stands
// before the end of the stream.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if len(e.line)+len(part) > maxEvent {
			return nil, errTooLong
		}
		e.line = append(e.line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		line := bytes.TrimSuffix(e.line, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		return bytes.TrimPrefix(line, []byte("\ufeff")), err
	}
}
