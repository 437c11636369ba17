package brief

import (
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// IsEmpty reports a message without content.
func IsEmpty(msg []byte) bool {
	for range jsonwire.Elements(jsonwire.Get(msg, "content")) {
		return false
	}
	return true
}

// IsCheckpoint reports the source of a message that stands for compacted ones.
func IsCheckpoint(source []byte) bool {
	id, ok := jsonwire.Text(jsonwire.Get(source, "compactionId"))
	return ok && id != ""
}

// MessageOf is the message in the data of an event of a surface type.
func MessageOf(ev outcrop.Event) []byte {
	switch ev.Type {
	case outcrop.TypeAssistantMessage, outcrop.TypeToolResult:
		return jsonwire.Get(ev.Data, "message")
	}
	return ev.Data
}

// summary is the beginning of what a message says.
func summary(msg []byte) string {
	const enough = 400
	var b strings.Builder
	add := func(s string) {
		if s = strings.TrimSpace(s); s == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s[:min(len(s), enough)])
	}
	for block := range jsonwire.Elements(jsonwire.Get(msg, "content")) {
		if b.Len() > enough {
			break
		}
		blockSummary(block, add)
	}
	if b.Len() == 0 {
		return "(empty)"
	}
	return b.String()
}

func blockSummary(block []byte, add func(string)) {
	kind, _ := jsonwire.Text(jsonwire.Get(block, "type"))
	switch kind {
	case "text":
		s, _ := jsonwire.Text(jsonwire.Get(block, "text"))
		add(s)
	case "reasoning":
	case "tool-call":
		name, _ := jsonwire.Text(jsonwire.Get(block, "name"))
		args, _ := jsonwire.Text(jsonwire.Get(block, "arguments"))
		add("[" + name + " " + Arguments(args) + "]")
	case "tool-result":
		if string(jsonwire.Get(block, "isError")) == "true" {
			add("(error)")
		}
		for inner := range jsonwire.Elements(jsonwire.Get(block, "content")) {
			blockSummary(inner, add)
		}
	case "image":
		add("[image]")
	default:
		add("[" + kind + "]")
	}
}
