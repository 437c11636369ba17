package llmtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Sign is the signature under which a server of this package gives thinking,
// and the only one that it takes back with it.
func Sign(thinking string) string {
	sum := sha256.Sum256([]byte("outcrop thinking\x00" + thinking))
	return "sig_" + hex.EncodeToString(sum[:])
}

// readAnthropic reads a message of the messages dialect. Rule 9 is kept here,
// and what concerns a single block.
func (e *entry) readAnthropic(v []byte, _ Profile) *Refusal {
	if e.role != "user" && e.role != "assistant" {
		return refuse(9, e.index, "the role %q is unknown", e.role)
	}
	if f := e.unknown("the message", v, "role", "content"); f != nil {
		return f
	}
	parts, f := e.anthropicContent(jsonwire.Get(v, "content"), "content", false)
	e.parts = parts
	return f
}

// anthropicContent reads content: a string or a list of blocks.
func (e *entry) anthropicContent(v []byte, name string, inResult bool) ([]part, *Refusal) {
	switch jsonwire.Kind(v) {
	case '"':
		s, _ := jsonwire.Text(v)
		return []part{{kind: textPart, text: s}}, nil
	case '[':
	default:
		return nil, refuse(7, e.index, "%s is neither text nor a list", name)
	}
	var parts []part
	for b := range jsonwire.Elements(v) {
		p, f := e.block(b, fmt.Sprintf("%s[%d]", name, len(parts)), inResult)
		if f != nil {
			return nil, f
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return nil, refuse(7, e.index, "%s is an empty list", name)
	}
	return parts, nil
}

func (e *entry) block(b []byte, where string, inResult bool) (p part, f *Refusal) {
	p.marked = jsonwire.Get(b, "cache_control") != nil
	typ := text(b, "type")
	allowed := typ == "text" || typ == "image"
	switch {
	case inResult:
	case e.role == "user":
		allowed = allowed || typ == "tool_result"
	default:
		allowed = typ == "text" || typ == "tool_use" || typ == "thinking" || typ == "redacted_thinking"
	}
	if !allowed {
		return p, refuse(9, e.index, "%s: a block of the type %q cannot stand in a message of the role %s", where, typ, e.role)
	}
	switch typ {
	case "text":
		p.kind, p.text = textPart, text(b, "text")
		return p, e.unknown(where, b, "type", "text", "cache_control")
	case "image":
		source := jsonwire.Get(b, "source")
		if f := e.unknown(where, b, "type", "source", "cache_control"); f != nil {
			return p, f
		}
		if f := e.unknown(where+".source", source, "type", "media_type", "data", "url"); f != nil {
			return p, f
		}
		p.kind = imagePart
		if text(source, "type") == "base64" {
			data := text(source, "data")
			p.encoded = len(data)
			p = p.decode(text(source, "media_type"), data)
		} else if text(source, "type") != "url" {
			p.bad = "its source is neither base64 nor url"
		}
	case "tool_use":
		p.kind, p.id, p.name = callPart, text(b, "id"), text(b, "name")
		if rule, fault := objectFault(jsonwire.Get(b, "input")); fault != "" {
			return p, refuse(rule, e.index, "%s.input: %s", where, fault)
		}
		return p, e.unknown(where, b, "type", "id", "name", "input", "cache_control")
	case "tool_result":
		p.kind, p.id = resultPart, text(b, "tool_use_id")
		content := jsonwire.Get(b, "content")
		if content == nil {
			p.nothing = true
		} else if p.content, f = e.anthropicContent(content, where+".content", true); f != nil {
			return p, f
		}
		return p, e.unknown(where, b, "type", "tool_use_id", "content", "is_error", "cache_control")
	case "thinking":
		p.kind, p.text, p.signature = thinkingPart, text(b, "thinking"), text(b, "signature")
		if f := e.unknown(where, b, "type", "thinking", "signature"); f != nil {
			return p, f
		}
		switch {
		case blank(p.text):
			return p, refuse(10, e.index, "%s: thinking is empty", where)
		case p.signature == "":
			return p, refuse(10, e.index, "%s: thinking has no signature", where)
		case p.signature != Sign(p.text):
			return p, refuse(10, e.index, "%s: the signature does not fit the thinking", where)
		}
	case "redacted_thinking":
		p.kind = thinkingPart
		if text(b, "data") == "" {
			return p, refuse(10, e.index, "%s: redacted_thinking has no data", where)
		}
		return p, e.unknown(where, b, "type", "data")
	}
	return p, nil
}

// anthropicRules are the parts of rule 10 that are about the whole request.
func anthropicRules(body []byte, msgs []entry) *Refusal {
	on := text(jsonwire.Get(body, "thinking"), "type") == "enabled"
	if on && jsonwire.Get(body, "temperature") != nil {
		return refuse(10, -1, "temperature cannot be set while thinking is on")
	}
	marks := 0
	system := jsonwire.Get(body, "system")
	if s, ok := jsonwire.Text(system); ok && blank(s) {
		return refuse(7, -1, "system is empty or blank")
	}
	for b := range jsonwire.Elements(system) {
		if blank(text(b, "text")) {
			return refuse(7, -1, "system has a block that is empty or blank")
		}
	}
	for _, name := range [...]string{"system", "tools"} {
		for b := range jsonwire.Elements(jsonwire.Get(body, name)) {
			if jsonwire.Get(b, "cache_control") != nil {
				marks++
			}
		}
	}
	last := -1
	for i := range msgs {
		e := &msgs[i]
		for p := range e.all() {
			if p.marked {
				marks++
			}
		}
		if e.role != "assistant" {
			continue
		}
		last = i
		began := false
		for _, p := range e.parts {
			if p.kind != thinkingPart {
				began = true
			} else if began {
				return refuse(10, i, "thinking must stand first in its message")
			}
		}
		if !began {
			return refuse(10, i, "the last block of a message cannot be thinking")
		}
	}
	if marks > 4 {
		return refuse(10, -1, "%d blocks have cache_control, at most 4 may have it", marks)
	}
	if on && last >= 0 && msgs[last].has(callPart) && msgs[last].parts[0].kind != thinkingPart {
		return refuse(10, last, "expected thinking before tool_use: while thinking is on the last message of the assistant must begin with it")
	}
	return nil
}
