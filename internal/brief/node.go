package brief

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// Node is one line about an event of the surface.
func Node(ev outcrop.Event) string {
	who, what := Parts(ev)
	return who + " " + what
}

// Parts says in one line who speaks in an event of the surface, and what.
func Parts(ev outcrop.Event) (who, what string) {
	msg := MessageOf(ev)
	source := jsonwire.Get(msg, "source")
	kind, _ := jsonwire.Text(jsonwire.Get(source, "kind"))
	_, _, isReplace := ev.Op.Range()
	switch {
	case ev.Type == outcrop.TypeAssistantMessage:
		who = "assistant"
	case ev.Type == outcrop.TypeToolResult && isReplace:
		who = "result*"
	case ev.Type == outcrop.TypeToolResult:
		who = "result"
	case IsCheckpoint(source):
		who = "checkpoint"
	case ev.Type == outcrop.TypeContextMessage:
		who = "context"
	case kind == "user":
		who = "user"
	case kind == "":
		who = "user"
	default:
		who = "context"
	}
	return who, term.OneLine(summary(msg))
}
