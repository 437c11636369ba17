package dsh

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Events are the checks that dsh makes on the events that it has read
// before it builds a session from them. Each is a pass of its own over the
// whole log there, so a later event that fails an earlier pass is what dsh
// reports; here one pass keeps the first failure of each.
type Events struct {
	names   fault // removed vocabulary
	shapes  fault // old shapes and messages
	unknown fault // types outside the vocabulary
	closers fault // what the computing of closers stumbles over
}

// fault is the first event that a pass refuses, and the class of its refusal.
type fault struct {
	class string
	seq   outcrop.Seq
}

// within is the class of a fault among the first limit events, or "".
func (f fault) within(limit int64) string {
	if int64(f.seq) < limit {
		return f.class
	}
	return ""
}

func (f *fault) first(class string, seq outcrop.Seq) {
	if f.class == "" {
		f.class, f.seq = class, seq
	}
}

// class is the refusal that comes first among the events that dsh's scanner
// counts, or "".
func (d *Events) class(limit int64) string {
	for _, f := range [...]fault{d.names, d.shapes, d.unknown, d.closers} {
		if c := f.within(limit); c != "" {
			return c
		}
	}
	return ""
}

// Add looks at one event, old shapes already upgraded.
func (d *Events) Add(e *outcrop.Event) {
	noData := e.Data == nil || jsonwire.Kind(e.Data) == 'n'
	switch e.Type {
	case "request/header-delta":
		d.names.first("legacy-header-delta", e.Seq)
	case "mode/set":
		d.names.first("legacy-mode-set", e.Seq)
	case outcrop.TypeRequestHeader:
		if noData {
			d.names.first("internal-type-error", e.Seq)
		} else if jsonwire.TextIs(jsonwire.Get(e.Data, "reason"), "fallback") {
			d.names.first("legacy-header-fallback", e.Seq)
		}
	case outcrop.TypeTurnStart:
		if noData {
			d.shapes.first("internal-type-error", e.Seq)
		}
	case outcrop.TypeStepStart, outcrop.TypeToolCall:
		if noData {
			d.closers.first("internal-type-error", e.Seq)
		}
	}
	if !e.Type.DSH() && !e.Ignorable {
		d.unknown.first("unsupported-event-type", e.Seq)
	}
}

// Message looks at an event that admission refused. A message that dsh refuses
// is refused by admission too, maybe for another reason, so no other event has
// to be looked at.
func (d *Events) Message(e *outcrop.Event) {
	switch e.Type {
	case outcrop.TypeUserMessage:
		d.shapes.first(judgeMessage(e.Type, e.Data), e.Seq)
	case outcrop.TypeAssistantMessage, outcrop.TypeToolResult:
		d.shapes.first(judgeMessage(e.Type, jsonwire.Get(e.Data, "message")), e.Seq)
	}
}

// Refused notes an old shape that has no upgrade, by the code of the reader.
func (d *Events) Refused(code outcrop.Code, seq outcrop.Seq) {
	d.shapes.first(classOf(code), seq)
}

// judgeMessage judges the message of a surface event; the order of the rules is
// dsh's.
func judgeMessage(t outcrop.Type, msg json.RawMessage) string {
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
