package openai

import (
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Encoder names this way of encoding, for the record of a request.
const Encoder = "openai/1"

// noReasoning stands where DeepSeek wants reasoning and the reply had none,
// because another model made it or because it was not recorded.
const noReasoning = "(no reasoning was recorded)"

// wireMessage is one message of the body.
type wireMessage struct {
	role      string
	content   string
	reasoning string
	calls     []message.Block
	callID    string // of a result
}

// Body is the JSON text that is sent for a request: equal requests have equal
// bytes. The messages must have passed llm.Build.
func (p *Provider) Body(req llm.Request) []byte {
	q := p.opts.Quirks
	dst := jsonwire.AppendStringMember([]byte{'{'}, "model", req.Config.Model)
	dst = jsonwire.AppendRawMember(dst, "stream", []byte("true"))
	if !q.NoStreamUsage {
		dst = jsonwire.AppendRawMember(dst, "stream_options", []byte(`{"include_usage":true}`))
	}
	if req.Config.MaxTokens > 0 {
		name := q.MaxTokens
		if name == "" {
			name = "max_tokens"
		}
		dst = jsonwire.AppendIntMember(dst, name, req.Config.MaxTokens)
	}
	if req.Config.Temperature != nil {
		dst = llm.AppendNumber(jsonwire.AppendMember(dst, "temperature"), *req.Config.Temperature)
	}
	if req.Config.ReasoningEffort != "" {
		dst = jsonwire.AppendStringMember(dst, "reasoning_effort", req.Config.ReasoningEffort)
	}
	if len(req.Config.Stop) > 0 {
		dst = append(jsonwire.AppendMember(dst, "stop"), '[')
		for i, s := range req.Config.Stop {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendString(dst, s)
		}
		dst = append(dst, ']')
	}
	if len(req.Tools) > 0 {
		dst = append(jsonwire.AppendMember(dst, "tools"), '[')
		for i := range req.Tools {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendTool(dst, &req.Tools[i])
		}
		dst = append(dst, ']')
	}
	dst = append(jsonwire.AppendMember(dst, "messages"), '[')
	for i, m := range p.messages(req) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = m.appendJSON(dst)
	}
	return append(dst, "]}"...)
}

func appendTool(dst []byte, t *llm.Tool) []byte {
	dst = append(dst, `{"type":"function","function":{`...)
	dst = jsonwire.AppendStringMember(dst, "name", t.Name)
	if t.Description != "" {
		dst = jsonwire.AppendStringMember(dst, "description", t.Description)
	}
	dst = jsonwire.AppendRawMember(dst, "parameters", t.Schema())
	return append(dst, "}}"...)
}

// messages turns a request into what the endpoint calls messages.
func (p *Provider) messages(req llm.Request) []wireMessage {
	q := p.opts.Quirks
	out := make([]wireMessage, 0, len(req.Messages)+1)
	add := func(m wireMessage) {
		if n := len(out); q.AlternateRoles && n > 0 && out[n-1].role == m.role && m.role != "tool" {
			last := &out[n-1]
			last.content = join(last.content, m.content)
			last.reasoning = join(last.reasoning, m.reasoning)
			last.calls = append(last.calls, m.calls...)
			return
		}
		out = append(out, m)
	}
	if strings.TrimSpace(req.System) != "" {
		role := q.SystemRole
		if role == "" {
			role = "system"
		}
		add(wireMessage{role: role, content: req.System})
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role == message.Assistant {
			add(assistant(m))
			continue
		}
		var text string
		for j := range m.Content {
			b := &m.Content[j]
			if b.Type == message.ToolResultBlock {
				add(wireMessage{role: "tool", content: plain(b.Content), callID: b.ToolCallID})
			} else {
				text = join(text, plain(m.Content[j:j+1]))
			}
		}
		if text != "" {
			add(wireMessage{role: "user", content: text})
		}
	}
	for i := range out {
		switch m := &out[i]; {
		case q.Reasoning != ReasoningContent || len(m.calls) == 0:
			m.reasoning = ""
		case strings.TrimSpace(m.reasoning) == "":
			m.reasoning = noReasoning
		}
	}
	return out
}

func assistant(m *message.Message) wireMessage {
	w := wireMessage{role: "assistant"}
	for i := range m.Content {
		switch b := m.Content[i]; b.Type {
		case message.TextBlock:
			w.content = join(w.content, b.Text)
		case message.ReasoningBlock:
			w.reasoning = join(w.reasoning, b.Text)
		case message.ToolCallBlock:
			w.calls = append(w.calls, message.ToolCall(b.ID, b.Name, b.Arguments))
		}
	}
	return w
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// plain is user content as one string.
func plain(blocks []message.Block) string {
	var out string
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case message.TextBlock:
			out = join(out, b.Text)
		case message.ImageBlock:
			out = join(out, imageNote(b))
		}
	}
	return out
}

// imageNote stands for an image. It names the object by the beginning of its
// digest, so that two images are told apart.
func imageNote(b *message.Block) string {
	id := llm.Clean(member(b.Attachment, "attachmentId"))
	if hex, ok := strings.CutPrefix(id, "sha256:"); ok && len(hex) > 12 {
		id = "sha256:" + hex[:12] + "..."
	}
	if id == "" || len(id) > 80 {
		return "[an image was left out: images are not sent to this model]"
	}
	return "[image " + id + " was left out: images are not sent to this model]"
}

func (m *wireMessage) appendJSON(dst []byte) []byte {
	dst = jsonwire.AppendStringMember(append(dst, '{'), "role", m.role)
	if m.callID != "" {
		dst = jsonwire.AppendStringMember(dst, "tool_call_id", m.callID)
	}
	if m.content == "" && len(m.calls) > 0 {
		dst = jsonwire.AppendRawMember(dst, "content", []byte("null"))
	} else {
		dst = jsonwire.AppendStringMember(dst, "content", m.content)
	}
	if m.reasoning != "" {
		dst = jsonwire.AppendStringMember(dst, "reasoning_content", m.reasoning)
	}
	if len(m.calls) > 0 {
		dst = append(jsonwire.AppendMember(dst, "tool_calls"), '[')
		for i := range m.calls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendStringMember(append(dst, '{'), "id", m.calls[i].ID)
			dst = append(dst, `,"type":"function","function":{`...)
			dst = jsonwire.AppendStringMember(dst, "name", m.calls[i].Name)
			dst = jsonwire.AppendStringMember(dst, "arguments", m.calls[i].Arguments)
			dst = append(dst, "}}"...)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}
