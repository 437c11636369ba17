// Package cut takes the middle out of long content. What is kept is the head
// and the tail, counted in code points over all text blocks together; a marker
// stands where the middle was. Other blocks stay where they are and cost
// nothing.
//
// Half of a surrogate pair counts as one code point and is never split from
// its bytes; a cluster of code points that a reader sees as one sign may be.
package cut

import (
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Points is the number of code points of the text blocks.
func Points(blocks []message.Block) (n int) {
	for i := range blocks {
		if blocks[i].Type == message.TextBlock {
			n += points(blocks[i].Text)
		}
	}
	return n
}

// Middle keeps the first head and the last tail code points of the text and
// puts marker into the first block that loses some. Blocks without text that
// is left are dropped. The caller sees to it that there is something to cut:
// when head and tail cover the text, blocks comes back as it is.
func Middle(blocks []message.Block, head, tail int, marker string) []message.Block {
	sizes := make([]int, len(blocks))
	total := 0
	for i := range blocks {
		if blocks[i].Type == message.TextBlock {
			sizes[i] = points(blocks[i].Text)
			total += sizes[i]
		}
	}
	from, to := head, total-tail // what goes
	if from >= to {
		return blocks
	}
	out := make([]message.Block, 0, len(blocks))
	at := 0
	for i, b := range blocks {
		if b.Type != message.TextBlock {
			out = append(out, b)
			continue
		}
		n, text := sizes[i], b.Text
		if lo, hi := max(from-at, 0), min(to-at, n); lo < hi {
			var s strings.Builder
			s.WriteString(text[:offset(text, lo)])
			s.WriteString(marker)
			s.WriteString(text[tailOffset(text, n-hi):])
			text, marker = s.String(), ""
		}
		at += n
		if text != "" {
			out = append(out, withText(b, text))
		}
	}
	return out
}

// Text is Middle for one text; it comes back whole when it has at most head
// and tail code points.
func Text(s string, head, tail int, marker string) string {
	if n := points(s); n > head+tail {
		return s[:offset(s, head)] + marker + s[tailOffset(s, tail):]
	}
	return s
}

// withText gives a text block other text; members that this version does not
// know stay.
func withText(b message.Block, text string) message.Block {
	if b.Text == text {
		return b
	}
	if b.Raw == nil {
		return message.Text(text)
	}
	raw := []byte{'{'}
	for k, v := range jsonwire.Members(b.Raw) {
		if jsonwire.KeyIs(k, "text") {
			v = jsonwire.AppendString(nil, text)
		}
		if len(raw) > 1 {
			raw = append(raw, ',')
		}
		raw = append(raw, '"')
		raw = append(raw, k...)
		raw = append(append(raw, '"', ':'), v...)
	}
	b.Raw, b.Text = append(raw, '}'), text
	return b
}

// points counts the bytes that begin a code point.
func points(s string) (n int) {
	for i := 0; i < len(s); i++ {
		if s[i]&0xC0 != 0x80 {
			n++
		}
	}
	return n
}

// offset is where code point n begins.
func offset(s string, n int) int {
	for i := 0; i < len(s); i++ {
		if s[i]&0xC0 != 0x80 {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return len(s)
}

// tailOffset is where the last n code points begin.
func tailOffset(s string, n int) int {
	i := len(s)
	for ; n > 0 && i > 0; i-- {
		if s[i-1]&0xC0 != 0x80 {
			n--
		}
	}
	return i
}
