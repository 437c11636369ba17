package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

const (
	maxLine      = 16 << 20 // bytes of one message
	maxPerCall   = 64 << 20 // bytes that a server sends during one call
	maxQuestions = 1_000    // requests that a program makes during one call
)

var errTooMuch = errors.New("it sent more than a call may")

// allowance is what a server may still send. Each call refills it.
type allowance struct{ bytes, questions atomic.Int64 }

func (a *allowance) refill() {
	a.bytes.Store(maxPerCall)
	a.questions.Store(maxQuestions)
}

// lines reads the messages of a program, one a line, and passes on those that
// the client has a use for. Notifications are told to notified and end here:
// nothing that a server sends unasked can pile up. A line that is no message,
// such as one that was meant for people, is told to odd and skipped; answers are
// mended.
type lines struct {
	r        *bufio.Reader
	left     *allowance
	notified func(method string)
	odd      func(line []byte)
	rest     []byte // of the line that is being read
	err      error
}

func newLines(r io.Reader, left *allowance, notified func(string), odd func([]byte)) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), left: left, notified: notified, odd: odd}
}

// Read implements io.Reader: whole messages, each with its newline.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		var line []byte
		if line, l.err = l.next(); l.err != nil && !errors.Is(l.err, io.EOF) {
			return 0, l.err
		}
		if line, l.err = l.pass(bytes.TrimSpace(line), l.err); len(line) > 0 {
			l.rest = append(line, '\n')
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads one line, however long it is.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if l.left.bytes.Add(-int64(len(part))) < 0 {
			return nil, errTooMuch
		}
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("%w: a message of over %d bytes", errTooMuch, maxLine)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// pass returns the line when the client is to read it. err goes through.
func (l *lines) pass(line []byte, err error) ([]byte, error) {
	switch {
	case len(line) == 0:
		return nil, err
	case line[0] != '{':
		// Also batches, which answer batches, and none is ever sent.
		l.odd(line)
		return nil, err
	}
	line = mend(line)
	if jsonwire.Valid(line) != nil || depth(line) > maxDepth {
		l.odd(line)
		return nil, err
	}
	method, ok := jsonwire.Text(jsonwire.Get(line, "method"))
	if !ok {
		return line, err
	}
	if id := jsonwire.Get(line, "id"); id == nil || string(id) == "null" {
		l.notified(method)
		return nil, err
	}
	if l.left.questions.Add(-1) < 0 {
		return nil, errTooMuch
	}
	return line, err
}
