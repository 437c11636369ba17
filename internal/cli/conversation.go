package cli

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// resultLines is how many lines of a tool result a conversation shows.
const resultLines = 8

// eventText prints one message: who speaks, then what, indented.
func (a *app) eventText(ev outcrop.Event, st style) {
	who, _ := nodeParts(ev)
	msg, err := message.Parse(messageOf(ev))
	if err != nil {
		a.text(st.red(fmt.Sprintf("%s [%d] no message: %v", who, ev.Seq, err)) + "\n")
		return
	}
	head := st.bold(who) + st.dim(fmt.Sprintf(" [%d]", ev.Seq))
	if string(jsonwire.Get(ev.Data, "interrupted")) == "true" {
		head += st.yellow(" interrupted")
	}
	if len(msg.Content) == 0 {
		a.text(head + st.dim(" (empty)") + "\n")
		return
	}
	a.text(head + "\n")
	for i := range msg.Content {
		a.blockText(&msg.Content[i], ev.Seq, st)
	}
}

func (a *app) blockText(b *message.Block, seq outcrop.Seq, st style) {
	switch b.Type {
	case message.TextBlock:
		a.indented(b.Text, 0, seq, func(s string) string { return s })
	case message.ReasoningBlock:
		a.indented(b.Text, resultLines, seq, st.dim)
	case message.ToolCallBlock:
		a.text("  " + st.cyan(cut(oneLine(b.Name+" "+argumentsLine(b.Arguments)), width-2)) + "\n")
	case message.ToolResultBlock:
		paint := st.dim
		if b.IsError {
			paint = st.red
		}
		text := message.PlainText(b.Content)
		if text == "" {
			text = "(no output)"
		}
		a.indented(text, resultLines, seq, paint)
		for i := range b.Content {
			if b.Content[i].Type != message.TextBlock {
				a.blockText(&b.Content[i], seq, st)
			}
		}
	case message.ImageBlock:
		id, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "attachmentId"))
		a.text("  " + st.dim(cut("[image "+oneLine(id)+"]", width-2)) + "\n")
	default:
		a.text("  " + st.dim(cut("["+oneLine(string(b.Type))+"]", width-2)) + "\n")
	}
}

// indented prints text below its head line, at most most rows of it when most is
// not 0, and then how much is left.
func (a *app) indented(text string, most int, seq outcrop.Seq, paint func(string) string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	rows := 0
	for i, l := range lines {
		parts := wrap(escapeText(strings.TrimSuffix(l, "\r")), width-2)
		fits := most == 0 || rows+len(parts) <= most || i == len(lines)-1 && rows+len(parts) == most+1
		if !fits {
			parts = parts[:most-rows]
		}
		for _, p := range parts {
			a.text(strings.TrimRight("  "+paint(p), " ") + "\n")
		}
		if rows += len(parts); fits {
			continue
		}
		left := plural(len(lines)-i, "more line")
		if len(parts) > 0 {
			left = "the line goes on"
			if rest := len(lines) - i - 1; rest > 0 {
				left += ", " + plural(rest, "more line")
			}
		}
		a.text("  " + paint(fmt.Sprintf("(%s; all of it: show TARGET --log --json, event %d)", left, seq)) + "\n")
		return
	}
}

// editText prints one line about an event that took the place of others.
func (a *app) editText(ev outcrop.Event) {
	start, end, _ := ev.Op.Range()
	what := "replaced"
	switch {
	case ev.Type == outcrop.TypeToolResult:
		what = "pruned"
	case isCheckpoint(jsonwire.Get(messageOf(ev), "source")):
		what = "compacted"
	case isEmpty(messageOf(ev)):
		what = "rewound"
	}
	where := fmt.Sprintf("nodes %d to %d", start, end)
	if start == end {
		where = fmt.Sprintf("node %d", start)
	}
	a.text(a.style().yellow(fmt.Sprintf("-- %s: %s -> %d", what, where, ev.Seq)) + "\n")
}

// isEmpty reports a message without content.
func isEmpty(msg []byte) bool {
	for range jsonwire.Elements(jsonwire.Get(msg, "content")) {
		return false
	}
	return true
}

func (a *app) turnText(ev outcrop.Event) {
	n, _ := jsonwire.Int(jsonwire.Get(ev.Data, "turn"))
	a.text(a.style().dim(fmt.Sprintf("-- turn %d, %s", n, when(ev.Time))) + "\n")
}

// turnEndText prints how a turn ended, unless it just was completed.
func (a *app) turnEndText(ev outcrop.Event) {
	if how := turnEnding(ev.Data); how != "completed" {
		a.text(a.style().yellow("-- "+cut("turn ended: "+how, width-3)) + "\n")
	}
}
