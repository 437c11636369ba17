package history

import (
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// messageOf is the message in an event of a surface type; ok is false for any
// other event.
func messageOf(ev outcrop.Event) (m message.Message, ok bool) {
	raw := ev.Data
	switch ev.Type {
	case outcrop.TypeAssistantMessage, outcrop.TypeToolResult:
		raw = jsonwire.Get(ev.Data, "message")
	case outcrop.TypeUserMessage, outcrop.TypeContextMessage:
	default:
		return m, false
	}
	m, err := message.Parse(raw)
	return m, err == nil
}

// textOf is everything in a message that is text: what was said and thought,
// calls with their arguments, results.
func textOf(blocks []message.Block) string {
	var b strings.Builder
	for i := range blocks {
		text := blockText(&blocks[i])
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	return b.String()
}

func blockText(b *message.Block) string {
	switch b.Type {
	case message.TextBlock:
		return b.Text
	case message.ReasoningBlock:
		return "[reasoning] " + b.Text
	case message.ToolCallBlock:
		return "[call " + b.ID + "] " + b.Name + " " + b.Arguments
	case message.ToolResultBlock:
		return textOf(b.Content)
	case message.ImageBlock:
		id, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "attachmentId"))
		return "[image " + id + "]"
	}
	return "[" + string(b.Type) + "]"
}

// isCheckpoint reports a message that stands for compacted ones.
func isCheckpoint(m message.Message) bool { return m.Source.CompactionID != "" }

// who says in a word or two whose event it is.
func who(ev outcrop.Event, m message.Message, toolName string) string {
	switch {
	case ev.Type == outcrop.TypeAssistantMessage:
		return "assistant"
	case ev.Type == outcrop.TypeToolResult && toolName != "":
		return "result of " + toolName
	case ev.Type == outcrop.TypeToolResult:
		return "result"
	case isCheckpoint(m):
		return "checkpoint"
	case m.Source.Kind == "user":
		return "user"
	}
	return "context"
}

// callName finds the name of the tool of a result: that of the nearest earlier
// call of its id. It is "" when there is none.
func callName(log outcrop.Log, result outcrop.Event) string {
	id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(jsonwire.Get(result.Data, "message"), "source"), "callId"))
	for _, seq := range result.Sources.Seqs() {
		// What repair and the loop write cites its call, a rewritten result the
		// result that it stands for.
		if seq < 0 || seq >= result.Seq {
			continue
		}
		switch ev := log.At(seq); ev.Type {
		case outcrop.TypeToolCall:
			if jsonwire.TextIs(jsonwire.Get(ev.Data, "callId"), id) {
				name, _ := jsonwire.Text(jsonwire.Get(ev.Data, "name"))
				return name
			}
		case outcrop.TypeToolResult:
			return callName(log, ev)
		}
	}
	return ""
}
