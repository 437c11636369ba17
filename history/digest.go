package history

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/history/cut"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Who wrote a summary that no model did, as compaction/summary names it.
const (
	DigestProvider = "outcrop"
	DigestModel    = "model-free"
)

// Digest condenses messages without a model: what people wrote, which tools
// ran and how they ended, what the model said, and the heads of summaries that
// are among them. It is the same for the same messages and has at most most
// code points, but never less than a line. When it does not fit, the middle is
// left out, because the first lines say what was asked for and the last ones
// where the work stands.
func Digest(nodes []llm.Node, most int64) string {
	d := digester{calls: map[string]string{}}
	for i := range nodes {
		d.node(&nodes[i])
	}
	limit := max(int(min(most, 1<<20)), 64)
	head := "Condensed without a model: what was said and done, in order."
	text := head + "\n" + d.fit(limit-utf8.RuneCountInString(head)-1)
	return strings.ReplaceAll(text, frameName, strings.ReplaceAll(frameName, "-", " ")) // nobody's text closes the frame
}

type digester struct {
	lines []string
	calls map[string]string // a call's line, until its result comes
}

func (d *digester) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *digester) node(n *llm.Node) {
	for i := range n.Content {
		b := &n.Content[i]
		switch b.Type {
		case message.TextBlock:
			d.text(n, b.Text)
		case message.ToolCallBlock:
			line := fmt.Sprintf("ran %s %s", oneLine(b.Name, 64), oneLine(b.Arguments, 160))
			d.calls[b.ID] = line
		case message.ToolResultBlock:
			d.result(b)
		case message.ReasoningBlock:
		default:
			d.add("[%s]", oneLine(string(b.Type), 32))
		}
	}
}

func (d *digester) text(n *llm.Node, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	switch {
	case n.Source.Kind == message.FromUser.Kind:
		d.add("user: %s", oneLine(text, 600))
	case n.Source.Kind == pluginKind && n.Source.Plugin == compactPlugin:
		// The frame is written again around what this becomes part of.
		if strings.HasPrefix(text, checkpointHead) || text == checkpointTail || strings.HasSuffix(text, checkpointOpen) {
			return
		}
		d.add("before: %s", oneLine(text, 1200))
	case n.Role == message.Assistant:
		d.add("assistant: %s", oneLine(text, 400))
	default:
		d.add("note: %s", oneLine(text, 200))
	}
}

func (d *digester) result(b *message.Block) {
	call, ok := d.calls[b.ToolCallID]
	if !ok {
		call = "a result"
	}
	delete(d.calls, b.ToolCallID)
	text := message.PlainText(b.Content)
	how := fmt.Sprintf("%s characters", llm.Thousands(int64(cut.Points(b.Content))))
	if b.IsError {
		how = "failed"
	}
	if first := oneLine(text, 100); first != "" {
		how += ": " + first
	}
	d.add("%s -> %s", call, how)
}

// fit joins the lines. Too many lose their middle.
func (d *digester) fit(most int) string {
	size := func(s string) int { return utf8.RuneCountInString(s) + 1 }
	total := 0
	for _, l := range d.lines {
		total += size(l)
	}
	if total <= most {
		return strings.Join(d.lines, "\n")
	}
	const note = "[%d lines left out]"
	room := most - len(note) - 8
	var head, tail []string
	i, j := 0, len(d.lines)
	for used := 0; i < j; i++ {
		if used += size(d.lines[i]); used > room/3 {
			break
		}
		head = append(head, d.lines[i])
		room -= size(d.lines[i])
	}
	for used := 0; j > i; j-- {
		if used += size(d.lines[j-1]); used > room {
			break
		}
		tail = append([]string{d.lines[j-1]}, tail...)
	}
	return strings.Join(append(append(head, fmt.Sprintf(note, j-i)), tail...), "\n")
}

// oneLine is text in one line of at most n code points.
func oneLine(s string, n int) string { return clip(squeeze(llm.Clean(s)), n) }

// clip cuts text to n code points and says so.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return cut.Text(s, n-1, 0, "…")
}
