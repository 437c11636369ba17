package outcrop

import (
	"bytes"
	"unsafe"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// msgInfo is what admission learns about the message of a surface event.
type msgInfo struct {
	off, len uint32 // the message inside data
	idOff    uint32 // its id token inside data
	empty    bool   // content is []

	parts *parts // filled when it is not nil
}

// msgSpans are the parts of a message that count, as spans of its text.
type msgSpans struct {
	msg, id, role, source, content []byte
	turn, step                     []byte // beside the message

	// Of a tool result's content: how many elements, and what the last one
	// has when it is an object.
	blocks                   int
	isObject                 bool
	blockType, callID, inner []byte
}

// checkMessage judges the message of a surface event. data is valid JSON and
// is walked once.
func checkMessage(cls class, data []byte, info *msgInfo) (Code, string) {
	var m msgSpans
	if cls == classAssistant || cls == classResult {
		if len(data) > 0 && data[0] == '{' {
			for i := 1; ; {
				key, at := nextName(data, i)
				if key == nil {
					break
				}
				if string(key) == "message" {
					m = msgSpans{turn: m.turn, step: m.step}
					i = m.walk(cls, data, at)
					continue
				}
				i = jsonwire.Skip(data, at)
				switch string(key) {
				case "turn":
					m.turn = data[at:i:i]
				case "step":
					m.step = data[at:i:i]
				}
			}
		}
	} else {
		m.walk(cls, data, 0)
	}
	if m.msg == nil || len(m.id) < 3 || m.id[0] != '"' {
		return "MESSAGE_NO_ID", "the event has no message with an id"
	}
	want := "user"
	if cls == classAssistant {
		want = "assistant"
	}
	if !jsonwire.TextIs(m.role, want) {
		return "MESSAGE_ROLE", `the message must have role "` + want + `"`
	}
	var kind, provider, model, callID []byte
	if len(m.source) > 0 && m.source[0] == '{' {
		for i := 1; ; {
			key, val, next := nextMember(m.source, i)
			if key == nil {
				break
			}
			switch string(key) {
			case "kind":
				kind = val
			case "provider":
				provider = val
			case "model":
				model = val
			case "callId":
				callID = val
			}
			i = next
		}
	}
	if !nonEmptyText(kind) {
		return "MESSAGE_SOURCE", "the message has no source with a kind"
	}
	if len(m.content) == 0 || m.content[0] != '[' {
		return "MESSAGE_CONTENT", "the message has no content list"
	}
	switch cls {
	case classAssistant:
		if !jsonwire.TextIs(kind, "model") || !nonEmptyText(provider) || !nonEmptyText(model) {
			return "MESSAGE_NOT_MODEL_SOURCE", "an assistant message needs a source of kind model with provider and model"
		}
	case classResult:
		if !jsonwire.TextIs(kind, "tool") || !nonEmptyText(callID) {
			return "MESSAGE_NOT_TOOL_SOURCE", "a tool result needs a source of kind tool with a callId"
		}
		if m.blocks != 1 || !m.isObject || !jsonwire.TextIs(m.blockType, "tool-result") || len(m.inner) == 0 || m.inner[0] != '[' {
			return "MESSAGE_NOT_ONE_TOOL_RESULT", "a tool result holds exactly one tool-result block with a content list"
		}
		if string(m.callID) != string(callID) {
			got, ok := jsonwire.Text(m.callID)
			want, _ := jsonwire.Text(callID)
			if !ok || got != want {
				return "MESSAGE_CALL_ID_MISMATCH", "the tool-result block answers another call than the source names"
			}
		}
	case classContext:
		if jsonwire.TextIs(kind, "user") {
			return "CONTEXT_USER_SOURCE", "a context message is injected by the program: its source kind cannot be user"
		}
	}
	if info != nil {
		info.off = spanOffset(data, m.msg)
		info.len = uint32(len(m.msg))
		info.idOff = spanOffset(data, m.id)
		info.empty = (cls == classAssistant || cls == classContext) && emptyArray(m.content)
		if info.parts != nil {
			*info.parts = parts{turn: m.turn, step: m.step, callID: callID, content: m.content}
		}
	}
	return "", ""
}

// walk takes the spans of the message that starts at i and returns the offset
// behind it. Of members that stand twice the last one counts.
func (m *msgSpans) walk(cls class, b []byte, i int) int {
	start := i
	if i >= len(b) || b[i] != '{' {
		return jsonwire.Skip(b, i)
	}
	for i++; ; {
		key, at := nextName(b, i)
		if key == nil {
			i = at
			break
		}
		end := at
		if cls == classResult && string(key) == "content" && at < len(b) && b[at] == '[' {
			end = m.walkBlocks(b, at)
		} else {
			end = jsonwire.Skip(b, at)
		}
		val := b[at:end:end]
		switch string(key) {
		case "id":
			m.id = val
		case "role":
			m.role = val
		case "source":
			m.source = val
		case "content":
			m.content = val
		}
		i = end
	}
	if i < len(b) {
		i++ // the closing brace
	}
	m.msg = b[start:i:i]
	return i
}

// walkBlocks looks at the elements of the content list that starts at i and
// returns the offset behind it.
func (m *msgSpans) walkBlocks(b []byte, i int) int {
	m.blocks = 0
	for i++; i < len(b); {
		if i = jsonwire.Space(b, i); i < len(b) && b[i] == ',' {
			i = jsonwire.Space(b, i+1)
		}
		if i >= len(b) || b[i] == ']' {
			return i + 1
		}
		m.blocks++
		m.isObject, m.blockType, m.callID, m.inner = b[i] == '{', nil, nil, nil
		if !m.isObject {
			i = jsonwire.Skip(b, i)
			continue
		}
		for i++; ; {
			key, at := nextName(b, i)
			if key == nil {
				i = at + 1
				break
			}
			end := jsonwire.Skip(b, at)
			val := b[at:end:end]
			switch string(key) {
			case "type":
				m.blockType = val
			case "toolCallId":
				m.callID = val
			case "content":
				m.inner = val
			}
			i = end
		}
	}
	return i
}

func emptyArray(v []byte) bool {
	i := jsonwire.Space(v, 0) + 1
	i = jsonwire.Space(v, i)
	return i < len(v) && v[i] == ']'
}

func nonEmptyText(v []byte) bool { return len(v) > 2 && v[0] == '"' }

// lastMember is jsonwire.Get without the iterator.
func lastMember(obj []byte, name string) []byte {
	if len(obj) == 0 || obj[0] != '{' {
		return nil
	}
	var got []byte
	for i := 1; ; {
		key, val, next := nextMember(obj, i)
		if key == nil {
			return got
		}
		if string(key) == name {
			got = val
		}
		i = next
	}
}

// nextName finds the member that starts at or after i inside a valid object:
// its name, escapes decoded, and where its value begins. At the object's end name is nil and at
// is where its closing brace stands.
func nextName(obj []byte, i int) (name []byte, at int) {
	if i < len(obj) && obj[i] == ',' {
		i++
	} else if i = jsonwire.Space(obj, i); i < len(obj) && obj[i] == ',' {
		i++
	}
	if i < len(obj) && obj[i] != '"' {
		i = jsonwire.Space(obj, i)
	}
	if i >= len(obj) || obj[i] != '"' {
		return nil, i
	}
	end := jsonwire.Skip(obj, i)
	name = obj[i+1 : end-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(jsonwire.Key(name))
	}
	if end < len(obj) && obj[end] == ':' {
		end++
	} else {
		end = jsonwire.Space(obj, end) + 1
	}
	if end < len(obj) && obj[end] <= ' ' {
		end = jsonwire.Space(obj, end)
	}
	return name, min(end, len(obj))
}

// nextMember is nextName with the value's span, and the offset behind it.
func nextMember(obj []byte, i int) (key, val []byte, next int) {
	key, at := nextName(obj, i)
	if key == nil {
		return nil, nil, at
	}
	next = jsonwire.Skip(obj, at)
	return key, obj[at:next:next], next
}

// spanOffset is where part, a span of whole, begins.
func spanOffset(whole, part []byte) uint32 {
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(whole))))
}

// checkRequestHeader judges the data of a request/header event.
func checkRequestHeader(data []byte) (Code, string) {
	header := lastMember(data, "header")
	config := lastMember(header, "config")
	if jsonwire.Kind(header) != '{' || jsonwire.Kind(config) != '{' ||
		!nonEmptyText(lastMember(config, "provider")) || !nonEmptyText(lastMember(config, "model")) {
		return "REQUEST_HEADER_NO_MODEL", "a request header needs config.provider and config.model"
	}
	effort := lastMember(config, "reasoningEffort")
	if effort != nil && !nonEmptyText(effort) {
		return "REQUEST_HEADER_REASONING_EFFORT", "config.reasoningEffort is not a non-empty string"
	}
	if d := lastMember(header, "adapterDefaults"); d != nil {
		bad := jsonwire.Kind(d) != '{'
		for k, v := range jsonwire.Members(d) {
			name := jsonwire.Key(k)
			if name != "reasoningEffort" && name != "maxTokens" || string(v) != "true" || lastMember(config, name) == nil {
				bad = true
			}
		}
		if bad {
			return "REQUEST_HEADER_ADAPTER_DEFAULTS", "adapterDefaults may only mark reasoningEffort and maxTokens that config has"
		}
	}
	if jsonwire.TextIs(lastMember(data, "reason"), "fallback") {
		return "LEGACY_HEADER_FALLBACK", "the reason fallback is of a retired format"
	}
	return "", ""
}
