package ask

import (
	"bufio"
	"context"
	"io"
)

// lineReader reads lines from a stream whose reads cannot be interrupted. It
// reads only when it is asked: what is typed between two questions stays in the
// terminal, where it can be dropped. A read that was given up answers the next
// question.
type lineReader struct {
	r   io.Reader
	in  *bufio.Reader
	got chan readLine // not nil: a read is under way
}

type readLine struct {
	text string
	err  error
}

func (l *lineReader) read(ctx context.Context) (string, error) {
	if l.in == nil {
		l.in = bufio.NewReader(l.r)
	}
	if l.got == nil {
		got := make(chan readLine, 1)
		l.got = got
		go func() {
			text, err := l.in.ReadString('\n')
			if text != "" {
				err = nil // a last line without a newline
			}
			got <- readLine{text, err}
		}()
	}
	select {
	case v := <-l.got:
		l.got = nil
		return v.text, v.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
