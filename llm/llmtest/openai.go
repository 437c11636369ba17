package llmtest

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// readOpenAI reads a message of the chat completions dialect. Rule 9 is kept
// here, and what concerns a single call.
func (e *entry) readOpenAI(v []byte, p Profile) *Refusal {
	var known []string
	switch e.role {
	case "system", "developer":
		e.role = "system"
		known = []string{"role", "content", "name"}
	case "user":
		known = []string{"role", "content", "name"}
	case "assistant":
		known = []string{"role", "content", "name", "refusal", "tool_calls"}
		if p == DeepSeek {
			known = append(known, "reasoning_content")
		}
	case "tool":
		known = []string{"role", "content", "tool_call_id"}
	default:
		return refuse(9, e.index, "the role %q is unknown", e.role)
	}
	if f := e.unknown("the message", v, known...); f != nil {
		return f
	}
	parts, f := e.openAIContent(jsonwire.Get(v, "content"))
	if f != nil {
		return f
	}
	if e.role == "tool" {
		e.parts = []part{{kind: resultPart, id: text(v, "tool_call_id"), content: parts, nothing: e.nothing}}
		e.nothing = false
		return nil
	}
	e.parts = parts
	calls := jsonwire.Get(v, "tool_calls")
	if calls == nil {
		return nil
	}
	if f := e.openAICalls(calls); f != nil {
		return f
	}
	if p == DeepSeek && blank(text(v, "reasoning_content")) {
		return refuse(9, e.index, "calls without reasoning_content: it must be passed back to the API")
	}
	return nil
}

func (e *entry) openAICalls(list []byte) *Refusal {
	n := 0
	for c := range jsonwire.Elements(list) {
		where := fmt.Sprintf("tool_calls[%d]", n)
		n++
		function := jsonwire.Get(c, "function")
		if f := e.unknown(where, c, "id", "type", "function"); f != nil {
			return f
		}
		if f := e.unknown(where+".function", function, "name", "arguments"); f != nil {
			return f
		}
		arguments, ok := jsonwire.Text(jsonwire.Get(function, "arguments"))
		if !ok {
			return refuse(5, e.index, "%s.function.arguments is not a string", where)
		}
		if rule, fault := objectFault([]byte(arguments)); fault != "" {
			return refuse(rule, e.index, "%s.function.arguments: %s", where, fault)
		}
		e.parts = append(e.parts, part{kind: callPart, id: text(c, "id"), name: text(function, "name")})
	}
	if n == 0 {
		return refuse(7, e.index, "tool_calls is empty")
	}
	return nil
}

// openAIContent reads content: a string, a list, or nothing.
func (e *entry) openAIContent(v []byte) ([]part, *Refusal) {
	switch jsonwire.Kind(v) {
	case 0, 'n':
		e.nothing = true
		return nil, nil
	case '"':
		s, _ := jsonwire.Text(v)
		return []part{{kind: textPart, text: s}}, nil
	case '[':
	default:
		return nil, refuse(7, e.index, "content is neither text nor a list")
	}
	var parts []part
	for b := range jsonwire.Elements(v) {
		where := fmt.Sprintf("content[%d]", len(parts))
		switch typ := text(b, "type"); typ {
		case "text":
			if f := e.unknown(where, b, "type", "text"); f != nil {
				return nil, f
			}
			parts = append(parts, part{kind: textPart, text: text(b, "text")})
		case "image_url":
			image := jsonwire.Get(b, "image_url")
			if f := e.unknown(where, b, "type", "image_url"); f != nil {
				return nil, f
			}
			if f := e.unknown(where+".image_url", image, "url", "detail"); f != nil {
				return nil, f
			}
			parts = append(parts, dataURL(text(image, "url")))
		default:
			return nil, refuse(9, e.index, "%s has the unknown type %q", where, typ)
		}
	}
	if len(parts) == 0 {
		return nil, refuse(7, e.index, "content is an empty list")
	}
	return parts, nil
}

// dataURL reads the address of an image.
func dataURL(url string) part {
	p := part{kind: imagePart, encoded: len(url)}
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			p.bad = "its address is neither http nor data"
		}
		return p
	}
	media, data, ok := strings.Cut(rest, ";base64,")
	if !ok {
		p.bad = "its data is not base64"
		return p
	}
	return p.decode(media, data)
}

func (p part) decode(media, data string) part {
	p.media = media
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		p.bad = "its data is not base64"
		return p
	}
	p.data = b
	return p
}
