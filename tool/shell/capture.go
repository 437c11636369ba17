package shell

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// capture keeps the first and the last half bytes of a stream and counts what
// it drops between.
type capture struct {
	half    int
	head    []byte
	tail    []byte // a ring once it is full
	at      int    // where the ring goes on
	dropped int64
}

// fill reads r to its end, or to an error, which ends the stream as well.
func (c *capture) fill(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		c.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (c *capture) add(b []byte) {
	if room := c.half - len(c.head); room > 0 {
		n := min(room, len(b))
		c.head = append(c.head, b[:n]...)
		b = b[n:]
	}
	if room := c.half - len(c.tail); room > 0 {
		n := min(room, len(b))
		c.tail = append(c.tail, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(c.tail[c.at:], b)
		c.at = (c.at + n) % c.half
		c.dropped += int64(n)
		b = b[n:]
	}
}

// text is what was kept, as UTF-8.
func (c *capture) text() string {
	var b strings.Builder
	tail := string(c.tail[c.at:]) + string(c.tail[:c.at])
	head := string(c.head)
	if c.dropped > 0 {
		// No character is cut in two at the gap.
		for i := len(head) - 1; i >= max(0, len(head)-utf8.UTFMax); i-- {
			if utf8.RuneStart(head[i]) {
				if !utf8.FullRuneInString(head[i:]) {
					head = head[:i]
				}
				break
			}
		}
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		head += fmt.Sprintf("\n[... %d bytes of output not kept ...]\n", c.dropped)
	}
	b.WriteString(head)
	b.WriteString(tail)
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
