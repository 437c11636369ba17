package doctor

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// dshEvents are the checks that dsh makes on the events that it has read
// before it builds a session from them. Each is a pass of its own over the
// whole log there, so a later event that fails an earlier pass is what dsh
// reports; here one pass keeps the first failure of each.
type dshEvents struct {
	limit int64 // events that dsh's scanner counts; later ones are not seen

	names   string // removed vocabulary
	shapes  string // old shapes and messages
	unknown string // types outside the vocabulary
	closers string // what the computing of closers stumbles over
}

// class is the refusal that comes first, or "".
func (d *dshEvents) class() string {
	for _, c := range [...]string{d.names, d.shapes, d.unknown, d.closers} {
		if c != "" {
			return c
		}
	}
	return ""
}

func first(slot *string, class string) {
	if *slot == "" {
		*slot = class
	}
}

// add looks at one event, old shapes already upgraded.
func (d *dshEvents) add(e *outcrop.Event) {
	if int64(e.Seq) >= d.limit {
		return
	}
	noData := e.Data == nil || jsonwire.Kind(e.Data) == 'n'
	switch e.Type {
	case "request/header-delta":
		first(&d.names, "legacy-header-delta")
	case "mode/set":
		first(&d.names, "legacy-mode-set")
	case outcrop.TypeRequestHeader:
		if noData {
			first(&d.names, "internal-type-error")
		} else if jsonwire.TextIs(jsonwire.Get(e.Data, "reason"), "fallback") {
			first(&d.names, "legacy-header-fallback")
		}
	case outcrop.TypeTurnStart:
		if noData {
			first(&d.shapes, "internal-type-error")
		}
	case outcrop.TypeStepStart, outcrop.TypeToolCall:
		if noData {
			first(&d.closers, "internal-type-error")
		}
	}
	if !e.Type.DSH() && !e.Ignorable {
		first(&d.unknown, "unsupported-event-type")
	}
}

// message looks at an event that admission refused. A message that dsh refuses
// is refused by admission too, maybe for another reason, so no other event has
// to be looked at.
func (d *dshEvents) message(e *outcrop.Event) {
	if int64(e.Seq) >= d.limit {
		return
	}
	switch e.Type {
	case outcrop.TypeUserMessage:
		first(&d.shapes, dshMessage(e.Type, e.Data))
	case outcrop.TypeAssistantMessage, outcrop.TypeToolResult:
		first(&d.shapes, dshMessage(e.Type, jsonwire.Get(e.Data, "message")))
	}
}

// refused notes an old shape that has no upgrade, by the code of the reader.
func (d *dshEvents) refused(code outcrop.Code, seq outcrop.Seq) {
	if int64(seq) < d.limit {
		first(&d.shapes, classOf(code))
	}
}

// dshMessage judges the message of a surface event; the order of the rules is
// dsh's.
func dshMessage(t outcrop.Type, msg json.RawMessage) string {
	filled := func(v []byte) bool {
		s, ok := jsonwire.Text(v)
		return ok && s != ""
	}
	role, source, content := jsonwire.Get(msg, "role"), jsonwire.Get(msg, "source"), jsonwire.Get(msg, "content")
	want := "user"
	if t == outcrop.TypeAssistantMessage {
		want = "assistant"
	}
	kind := jsonwire.Get(source, "kind")
	switch {
	case !filled(jsonwire.Get(msg, "id")):
		return "message-no-id"
	case !jsonwire.TextIs(role, want):
		return "message-role"
	case !filled(kind):
		return "message-source"
	case jsonwire.Kind(content) != '[':
		return "message-content"
	}
	switch t {
	case outcrop.TypeAssistantMessage:
		if !jsonwire.TextIs(kind, "model") || !filled(jsonwire.Get(source, "provider")) || !filled(jsonwire.Get(source, "model")) {
			return "message-not-model-source"
		}
	case outcrop.TypeToolResult:
		call := jsonwire.Get(source, "callId")
		if !jsonwire.TextIs(kind, "tool") || !filled(call) {
			return "message-not-tool-source"
		}
		n := 0
		var block []byte
		for v := range jsonwire.Elements(content) {
			n, block = n+1, v
		}
		if n != 1 || !jsonwire.TextIs(jsonwire.Get(block, "type"), "tool-result") || jsonwire.Kind(jsonwire.Get(block, "content")) != '[' {
			return "message-not-one-tool-result"
		}
		id, _ := jsonwire.Text(call)
		if !jsonwire.TextIs(jsonwire.Get(block, "toolCallId"), id) {
			return "message-call-id-mismatch"
		}
	}
	return ""
}
