package tool

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/message"
)

// DefaultInline is the most bytes of text that a result keeps by default.
const DefaultInline = 50_000

// Spill keeps the whole text of results that are too long to stand in the log.
type Spill interface {
	// Save stores text and returns where a person or the read tool finds it.
	// It is durable when Save returns nil.
	Save(ctx context.Context, call Call, text string) (path string, err error)
}

// limiter cuts long results: head and tail stay, on rune borders.
type limiter struct {
	inline int
	spill  Spill
}

func newLimiter(o Options) limiter {
	l := limiter{inline: o.Inline, spill: o.Spill}
	if l.inline <= 0 {
		l.inline = DefaultInline
	}
	return l
}

// apply returns blocks, or blocks with all text replaced by a shortened one
// that says what is missing and where it is. Blocks that are no text stay.
func (l limiter) apply(ctx context.Context, call Call, blocks []message.Block, logger *slog.Logger) []message.Block {
	size := 0
	for _, b := range blocks {
		if b.Type == message.TextBlock {
			size += len(b.Text)
		}
	}
	if size <= l.inline {
		return blocks
	}
	var whole strings.Builder
	var rest []message.Block
	for _, b := range blocks {
		if b.Type != message.TextBlock {
			rest = append(rest, b)
			continue
		}
		if whole.Len() > 0 && !strings.HasSuffix(whole.String(), "\n") {
			whole.WriteByte('\n')
		}
		whole.WriteString(b.Text)
	}
	text := whole.String()
	where := "the part between is not kept"
	if l.spill != nil {
		// The save must not be lost with the call that it belongs to.
		path, err := l.spill.Save(context.WithoutCancel(ctx), call, text)
		if err != nil {
			logger.Warn("the whole output could not be saved", "tool", call.Name, "call", call.ID, "err", err)
			where = "the part between could not be saved"
		} else {
			where = "the whole output is in " + path
		}
	}
	head := cutHead(text, l.inline/2)
	tail := cutTail(text, l.inline-l.inline/2)
	cut := len(text) - len(head) - len(tail)
	notice := fmt.Sprintf("\n\n[... %d of %d bytes cut; %s ...]\n\n", cut, len(text), where)
	return append([]message.Block{message.Text(head + notice + tail)}, rest...)
}

// cutHead is the longest prefix of at most n bytes that splits no rune.
func cutHead(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cutTail is the longest suffix of at most n bytes that splits no rune.
func cutTail(s string, n int) string {
	if n >= len(s) {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}
