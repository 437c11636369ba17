package openai

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/kept"
	"github.com/outcrop-dev/outcrop/llm/internal/pictures"
	"github.com/outcrop-dev/outcrop/message"
)

// Encoder names this way of encoding, for the record of a request.
const Encoder = "openai/1"

const (
	// noReasoning stands where DeepSeek wants reasoning and the reply had none,
	// because another model made it or because it was not recorded.
	noReasoning = "(no reasoning was recorded)"
	// imageBelow stands in a result in the place of an image, and imageOf
	// before the image.
	imageBelow = "[an image of this result stands below the results]"
	imageOf    = "[image of the result of tool call %]"
)

var rules = pictures.Rules{}

// memory is what is kept of a session's requests.
type memory struct {
	of    settings
	check llm.Checker
	tools []llm.Tool
	list  []byte // of the tools, as they are sent
	album pictures.Album
	log   kept.Messages[struct{}]
}

// settings are what the text of a message depends on beside the message.
type settings struct {
	quirks Quirks
	images bool
	system string // when it may be joined with the first message
}

// Body is the JSON text that is sent for a request: equal requests have equal
// bytes. The messages must have passed llm.Build.
func (p *Provider) Body(req llm.Request) []byte {
	body, err := p.pieces(context.Background(), p.memory(&req), &req)
	if err != nil {
		return nil // only a context ends it
	}
	return bytes.Join(body, nil)
}

// encode checks a request and makes its body.
func (p *Provider) encode(ctx context.Context, req *llm.Request) ([][]byte, *message.Failure) {
	m := p.memory(req)
	if err := m.check.Check(*req); err != nil {
		return nil, err.(*message.Failure)
	}
	body, err := p.pieces(ctx, m, req)
	if err != nil {
		return nil, &message.Failure{Code: message.CodeAborted, Message: p.Name() + ": the call was cancelled"}
	}
	return body, nil
}

// memory is what was kept for requests of these settings.
func (p *Provider) memory(req *llm.Request) *memory {
	m := req.Cache.Kept(Encoder, func() any { return &memory{} }).(*memory)
	of := settings{quirks: p.quirks, images: req.Images}
	if p.quirks.AlternateRoles && p.quirks.SystemRole == "user" {
		of.system = req.System
	}
	if m.of != of {
		m.of, m.album, m.log = of, pictures.Album{}, kept.Messages[struct{}]{}
	}
	return m
}

// pieces is the body: what is sent before the messages, the messages as they
// are kept, and the end.
func (p *Provider) pieces(ctx context.Context, m *memory, req *llm.Request) ([][]byte, error) {
	e := &encoder{memory: m, messages: req.Messages}
	same := m.log.Same(req.Messages)
	if req.Images {
		var err error
		if same, err = m.album.Update(ctx, req.Objects, req.Messages, same, rules); err != nil {
			return nil, err
		}
	}
	from := m.log.Back(same, e)
	if req.Images {
		defer m.album.Done()
		if err := m.album.Load(ctx, req.Objects, from, rules); err != nil {
			return nil, err
		}
	}
	m.log.Encode(req.Messages, e)
	return append(m.log.Pieces([][]byte{p.head(m, req)}), []byte("]}")), nil
}

func (p *Provider) head(m *memory, req *llm.Request) []byte {
	q := &p.quirks
	dst := jsonwire.AppendStringMember([]byte{'{'}, "model", req.Config.Model)
	dst = jsonwire.AppendRawMember(dst, "stream", []byte("true"))
	if !q.NoStreamUsage {
		dst = jsonwire.AppendRawMember(dst, "stream_options", []byte(`{"include_usage":true}`))
	}
	if limit := req.Config.MaxTokens; limit > 0 {
		name := q.MaxTokens
		if name == "" {
			name = "max_tokens"
		}
		if req.MaxOutput > 0 {
			limit = min(limit, req.MaxOutput)
		}
		dst = jsonwire.AppendIntMember(dst, name, limit)
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
		if !llm.SameTools(m.tools, req.Tools) {
			m.tools, m.list = slices.Clone(req.Tools), appendTools(nil, req.Tools)
		}
		dst = jsonwire.AppendRawMember(dst, "tools", m.list)
	}
	dst = append(jsonwire.AppendMember(dst, "messages"), '[')
	if strings.TrimSpace(req.System) != "" && m.of.system == "" {
		role := q.SystemRole
		if role == "" {
			role = "system"
		}
		dst = append(jsonwire.AppendStringMember(appendRole(dst, role), "content", req.System), '}')
		if len(req.Messages) > 0 {
			dst = append(dst, ',')
		}
	}
	return dst
}

func appendTools(dst []byte, tools []llm.Tool) []byte {
	dst = append(dst, '[')
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		t := &tools[i]
		dst = append(dst, `{"type":"function","function":{`...)
		dst = jsonwire.AppendStringMember(dst, "name", t.Name)
		if t.Description != "" {
			dst = jsonwire.AppendStringMember(dst, "description", t.Description)
		}
		dst = jsonwire.AppendRawMember(dst, "parameters", t.Schema())
		dst = append(dst, "}}"...)
	}
	return append(dst, ']')
}

// encoder implements kept.Encoder for the messages of one request.
type encoder struct {
	*memory
	messages []message.Message
}

// End is the end of a group: the results of one reply stand together, since
// images go behind all of them; where roles alternate so do all neighbours of
// one role.
func (e *encoder) End(i int) int {
	for j := i + 1; ; j++ {
		if j == len(e.messages) || e.messages[j].Role != e.messages[i].Role ||
			!e.of.quirks.AlternateRoles && !(isResult(&e.messages[i]) && isResult(&e.messages[j])) {
			return j
		}
	}
}

func isResult(m *message.Message) bool {
	return len(m.Content) > 0 && m.Content[0].Type == message.ToolResultBlock
}

func (e *encoder) Append(dst []byte, i, j int, _ struct{}) ([]byte, struct{}) {
	for n, m := range e.wire(i, j) {
		if i > 0 || n > 0 {
			dst = append(dst, ',')
		}
		dst = m.appendJSON(dst)
	}
	return dst, struct{}{}
}

// wireMessage is one message of the body.
type wireMessage struct {
	role      string
	content   []part
	reasoning []string
	calls     []message.Block
	callID    string // of a result
}

// part is text, or an image.
type part struct {
	text  string
	media string
	data  []byte
}

// wire turns one group into what the endpoint calls messages.
func (e *encoder) wire(i, j int) []wireMessage {
	q := &e.of.quirks
	if e.messages[i].Role == message.Assistant {
		out := make([]wireMessage, 0, 1)
		for ; i < j; i++ {
			m := assistant(&e.messages[i])
			if len(out) == 0 {
				out = append(out, m)
				continue
			}
			to := &out[0]
			to.content = append(to.content, m.content...)
			to.calls = append(to.calls, m.calls...)
			to.reasoning = append(to.reasoning, m.reasoning...)
		}
		switch m := &out[0]; {
		case q.Reasoning != ReasoningContent || len(m.calls) == 0:
			m.reasoning = nil
		case len(m.reasoning) == 0:
			m.reasoning = []string{noReasoning}
		}
		return out
	}
	var out []wireMessage
	behind := wireMessage{role: "user"}
	if i == 0 && strings.TrimSpace(e.of.system) != "" {
		behind.content = append(behind.content, part{text: e.of.system})
	}
	for ; i < j; i++ {
		images := e.images(i)
		m := &e.messages[i]
		for n := range m.Content {
			b := &m.Content[n]
			if b.Type != message.ToolResultBlock {
				behind.content = append(behind.content, e.part(b, &images))
				continue
			}
			result := wireMessage{role: "tool", callID: b.ToolCallID}
			for k := range b.Content {
				p := e.part(&b.Content[k], &images)
				if p.media != "" {
					behind.content = append(behind.content, part{text: strings.Replace(imageOf, "%", b.ToolCallID, 1)}, p)
					p = part{text: imageBelow}
				}
				result.content = append(result.content, p)
			}
			out = append(out, result)
		}
	}
	if len(behind.content) > 0 {
		out = append(out, behind)
	}
	return out
}

func assistant(m *message.Message) wireMessage {
	w := wireMessage{role: "assistant"}
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case message.TextBlock:
			w.content = append(w.content, part{text: b.Text})
		case message.ReasoningBlock:
			if strings.TrimSpace(b.Text) != "" {
				w.reasoning = append(w.reasoning, b.Text)
			}
		case message.ToolCallBlock:
			w.calls = append(w.calls, message.ToolCall(b.ID, b.Name, b.Arguments))
		}
	}
	return w
}

// images are the images of message i, in order; none when they are not sent.
func (e *encoder) images(i int) []pictures.Image {
	if !e.of.images {
		return nil
	}
	return e.album.At(i)
}

// part is a block of a user. It takes the next image when it is one.
func (e *encoder) part(b *message.Block, images *[]pictures.Image) part {
	switch {
	case b.Type != message.ImageBlock:
		return part{text: b.Text}
	case len(*images) == 0:
		return part{text: pictures.LeftOut(b)}
	}
	image := (*images)[0]
	*images = (*images)[1:]
	return part{text: image.Note, media: image.Media, data: image.Data}
}

func appendRole(dst []byte, role string) []byte {
	return jsonwire.AppendStringMember(append(dst, '{'), "role", role)
}

func (m *wireMessage) appendJSON(dst []byte) []byte {
	dst = appendRole(dst, m.role)
	if m.callID != "" {
		dst = jsonwire.AppendStringMember(dst, "tool_call_id", m.callID)
	}
	dst = m.appendContent(dst)
	if len(m.reasoning) > 0 {
		dst = jsonwire.AppendStringMember(dst, "reasoning_content", strings.Join(m.reasoning, "\n"))
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

// appendContent appends content as one string where it is all text, which
// every server takes; else as parts. Texts beside each other are one in both
// forms, so that a message that an image joins later begins as it did.
func (m *wireMessage) appendContent(dst []byte) []byte {
	if len(m.content) == 0 {
		return jsonwire.AppendRawMember(dst, "content", []byte("null"))
	}
	parts := make([]part, 0, 1)
	var texts []string
	for i, p := range m.content {
		if p.media != "" {
			parts = append(parts, p)
			continue
		}
		texts = append(texts, p.text)
		if i+1 == len(m.content) || m.content[i+1].media != "" {
			parts = append(parts, part{text: strings.Join(texts, "\n")})
			texts = texts[:0]
		}
	}
	if len(parts) == 1 && parts[0].media == "" {
		return jsonwire.AppendStringMember(dst, "content", parts[0].text)
	}
	dst = append(jsonwire.AppendMember(dst, "content"), '[')
	for i := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		p := &parts[i]
		if p.media == "" {
			dst = append(jsonwire.AppendStringMember(append(dst, `{"type":"text"`...), "text", p.text), '}')
			continue
		}
		dst = append(dst, `{"type":"image_url","image_url":{"url":"data:`...)
		dst = append(append(dst, p.media...), ";base64,"...)
		dst = append(base64.StdEncoding.AppendEncode(dst, p.data), `"}}`...)
	}
	return append(dst, ']')
}
