package brief

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// Event is the rest of a line about an event.
func Event(ev outcrop.Event) string {
	text := func(names ...string) string {
		v := []byte(ev.Data)
		for _, n := range names {
			v = jsonwire.Get(v, n)
		}
		if s, ok := jsonwire.Text(v); ok {
			return term.OneLine(s)
		}
		return term.OneLine(string(v))
	}
	switch ev.Type {
	case outcrop.TypeUserMessage, outcrop.TypeAssistantMessage, outcrop.TypeToolResult, outcrop.TypeContextMessage:
		return Node(ev)
	case outcrop.TypeTurnStart:
		return "turn " + text("turn")
	case outcrop.TypeTurnEnd:
		return "turn " + text("turn") + " " + Ending(ev.Data)
	case outcrop.TypeStepStart, outcrop.TypeStepEnd:
		return "turn " + text("turn") + " step " + text("step")
	case outcrop.TypeToolCall:
		return text("name") + " " + term.OneLine(Arguments(text("arguments")))
	case outcrop.TypeAssistantChunk:
		kind := text("chunk", "type")
		for _, name := range [...]string{"text", "argumentsDelta", "blockType"} {
			if v := jsonwire.Get(jsonwire.Get(ev.Data, "chunk"), name); v != nil {
				return kind + " " + term.OneLine(string(v))
			}
		}
		if kind == "finish" {
			return kind + " " + text("chunk", "reason", "kind")
		}
		return kind
	case outcrop.TypeRequestHeader:
		return text("reason") + " " + text("header", "config", "provider") + ":" + text("header", "config", "model")
	case outcrop.TypeSessionTitle:
		return text("title")
	}
	// More than a line's worth of data is not looked at.
	return term.OneLine(string(ev.Data[:min(len(ev.Data), 4*term.Width)]))
}

// Ending says how a turn ended.
func Ending(data []byte) string {
	reason := jsonwire.Get(data, "reason")
	kind, _ := jsonwire.Text(jsonwire.Get(reason, "kind"))
	detail := ""
	switch kind {
	case "error":
		detail, _ = jsonwire.Text(jsonwire.Get(jsonwire.Get(reason, "error"), "message"))
	case "aborted":
		why := jsonwire.Get(reason, "reason")
		if detail, _ = jsonwire.Text(jsonwire.Get(why, "reason")); detail == "" {
			detail, _ = jsonwire.Text(jsonwire.Get(why, "kind"))
		}
	}
	if detail != "" {
		kind += ": " + detail
	}
	return term.OneLine(kind)
}
