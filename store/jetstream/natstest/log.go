package natstest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// tailBytes is how much of what a server says last is kept.
const tailBytes = 8 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
	cut bool
}

// Write is io.Writer's.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, b...)
	if over := len(t.end) - tailBytes; over > 0 {
		if line := bytes.IndexByte(t.end[over:], '\n'); line >= 0 {
			over += line + 1
		}
		t.end, t.cut = append(t.end[:0], t.end[over:]...), true
	}
	return len(b), nil
}

// String is what was kept, as it is told to people: indented, below a line of
// its own.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.end) == 0 {
		return "it logged nothing"
	}
	head := "its log"
	if t.cut {
		head = "the end of its log"
	}
	return head + ":\n\t" + strings.ReplaceAll(strings.TrimRight(string(t.end), "\n"), "\n", "\n\t")
}

// logger is what a server logs to: lines in w. A server that cannot go on says
// so by Fatalf, and does not end by itself.
type logger struct {
	w     io.Writer
	once  sync.Once
	fatal chan string // gets the reason
}

func newLogger(w io.Writer) *logger { return &logger{w: w, fatal: make(chan string, 1)} }

func (l *logger) line(level, format string, v []any) string {
	text := fmt.Sprintf(format, v...)
	fmt.Fprintf(l.w, "[%s] %s\n", level, text)
	return text
}

func (l *logger) Noticef(format string, v ...any) { l.line("INF", format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.line("WRN", format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.line("ERR", format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.line("DBG", format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.line("TRC", format, v) }
func (l *logger) Fatalf(format string, v ...any) {
	text := l.line("FTL", format, v)
	l.once.Do(func() { l.fatal <- text })
}
