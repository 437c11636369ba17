package view

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
)

// resultLines is how many lines of a tool result a conversation shows.
const resultLines = 8

// Message prints one message: who speaks, then what, indented.
func (p Printer) Message(ev outcrop.Event) {
	who, _ := brief.Parts(ev)
	msg, err := message.Parse(brief.MessageOf(ev))
	if err != nil {
		p.text(p.Style.Red(fmt.Sprintf("%s [%d] no message: %v", who, ev.Seq, err)) + "\n")
		return
	}
	head := p.Style.Bold(who) + p.Style.Dim(fmt.Sprintf(" [%d]", ev.Seq))
	if string(jsonwire.Get(ev.Data, "interrupted")) == "true" {
		head += p.Style.Yellow(" interrupted")
	}
	if len(msg.Content) == 0 {
		p.text(head + p.Style.Dim(" (empty)") + "\n")
		return
	}
	p.text(head + "\n")
	for i := range msg.Content {
		p.block(&msg.Content[i], ev.Seq)
	}
}

func (p Printer) block(b *message.Block, seq outcrop.Seq) {
	switch b.Type {
	case message.TextBlock:
		p.indented(b.Text, 0, seq, func(s string) string { return s })
	case message.ReasoningBlock:
		p.indented(b.Text, resultLines, seq, p.Style.Dim)
	case message.ToolCallBlock:
		p.text("  " + p.Style.Cyan(term.Cut(term.OneLine(b.Name+" "+brief.Arguments(b.Arguments)), term.Width-2)) + "\n")
	case message.ToolResultBlock:
		paint := p.Style.Dim
		if b.IsError {
			paint = p.Style.Red
		}
		text := message.PlainText(b.Content)
		if text == "" {
			text = "(no output)"
		}
		p.indented(text, resultLines, seq, paint)
		for i := range b.Content {
			if b.Content[i].Type != message.TextBlock {
				p.block(&b.Content[i], seq)
			}
		}
	case message.ImageBlock:
		p.text("  " + p.Style.Dim(term.Cut("["+image(b.Attachment)+"]", term.Width-2)) + "\n")
	default:
		p.text("  " + p.Style.Dim(term.Cut("["+term.OneLine(string(b.Type))+"]", term.Width-2)) + "\n")
	}
}

// image says what an attachment is, as far as its reference tells.
func image(ref []byte) string {
	parts := []string{"image"}
	for _, name := range [...]string{"name", "mediaType"} {
		if s, ok := jsonwire.Text(jsonwire.Get(ref, name)); ok && s != "" {
			parts = append(parts, term.Cut(term.OneLine(s), 30))
			break
		}
	}
	width, okW := jsonwire.Int(jsonwire.Get(ref, "width"))
	height, okH := jsonwire.Int(jsonwire.Get(ref, "height"))
	if okW && okH {
		parts = append(parts, fmt.Sprintf("%dx%d", width, height))
	}
	id, _ := jsonwire.Text(jsonwire.Get(ref, "attachmentId"))
	if hex, ok := strings.CutPrefix(id, "sha256:"); ok && len(hex) > 12 {
		id = "sha256:" + hex[:12] + "…"
	}
	return strings.TrimSpace(strings.Join(append(parts, term.OneLine(id)), " "))
}

// indented prints text below its head line, at most most rows of it when most is
// not 0, and then how much is left.
func (p Printer) indented(text string, most int, seq outcrop.Seq, paint func(string) string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	rows := 0
	for i, l := range lines {
		parts := term.Wrap(term.Text(strings.TrimSuffix(l, "\r")), term.Width-2)
		fits := most == 0 || rows+len(parts) <= most || i == len(lines)-1 && rows+len(parts) == most+1
		if !fits {
			parts = parts[:most-rows]
		}
		for _, part := range parts {
			p.text(strings.TrimRight("  "+paint(part), " ") + "\n")
		}
		if rows += len(parts); fits {
			continue
		}
		left := term.Plural(len(lines)-i, "more line")
		if len(parts) > 0 {
			left = "the line goes on"
			if rest := len(lines) - i - 1; rest > 0 {
				left += ", " + term.Plural(rest, "more line")
			}
		}
		p.text("  " + paint(fmt.Sprintf("(%s; all of it: show TARGET --log --json, event %d)", left, seq)) + "\n")
		return
	}
}

// Edit prints one line about an event that took the place of others.
func (p Printer) Edit(ev outcrop.Event) {
	start, end, _ := ev.Op.Range()
	what := "replaced"
	switch {
	case ev.Type == outcrop.TypeToolResult:
		what = "pruned"
	case brief.IsCheckpoint(jsonwire.Get(brief.MessageOf(ev), "source")):
		what = "compacted"
	case brief.IsEmpty(brief.MessageOf(ev)):
		what = "rewound"
	}
	where := fmt.Sprintf("nodes %d to %d", start, end)
	if start == end {
		where = fmt.Sprintf("node %d", start)
	}
	p.text(p.Style.Yellow(fmt.Sprintf("-- %s: %s -> %d", what, where, ev.Seq)) + "\n")
}

// Turn prints where a turn begins.
func (p Printer) Turn(ev outcrop.Event) {
	n, _ := jsonwire.Int(jsonwire.Get(ev.Data, "turn"))
	p.text(p.Style.Dim(fmt.Sprintf("-- turn %d, %s", n, term.Time(ev.Time))) + "\n")
}

// TurnEnd prints how a turn ended, unless it just was completed.
func (p Printer) TurnEnd(ev outcrop.Event) {
	if how := brief.Ending(ev.Data); how != "completed" {
		p.text(p.Style.Yellow("-- "+term.Cut("turn ended: "+how, term.Width-3)) + "\n")
	}
}
