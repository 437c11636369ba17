package anthropic

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/kept"
	"github.com/outcrop-dev/outcrop/llm/internal/pictures"
	"github.com/outcrop-dev/outcrop/message"
)

// Encoder names this way of encoding, for the record of a request.
const Encoder = "anthropic/1"

// mark tells the server to cache what stands up to the block that holds it.
const mark = `,"cache_control":{"type":"ephemeral"}`

// noTool is offered where there are calls but no tools.
const noTool = `[{"name":"unavailable","description":"No tool can be used now.","input_schema":{"type":"object","properties":{}}` + mark + `}]`

// rules: the API counts an image in base64.
var rules = pictures.Rules{Encoded: true}

// memory is what is kept of a session's requests.
type memory struct {
	of    settings
	check llm.Checker
	tools []llm.Tool
	list  []byte // of the tools, as they are sent
	album pictures.Album
	log   kept.Messages[state]
}

// settings are what the text of a message depends on beside the message.
type settings struct {
	provider string
	model    string
	images   bool
}

// state is what is known behind a group of messages.
type state struct {
	mark  int  // where a cache mark stands in the text of the group
	calls bool // a call came so far
	bare  bool // the last reply calls tools and has no thinking before that
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
	if effort := req.Config.ReasoningEffort; !knownEffort(effort) {
		return nil, &message.Failure{Code: message.CodeInvalidRequest, Message: fmt.Sprintf(
			"%s: no reasoning effort %.40q: use off, minimal, low, medium, high or max", p.Name(), effort)}
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
	if of := (settings{p.Name(), req.Config.Model, req.Images}); m.of != of {
		m.of, m.album, m.log = of, pictures.Album{}, kept.Messages[state]{}
	}
	return m
}

// pieces is the body: what is sent before the messages, the messages as they
// are kept with the marks of this request in between, and the end.
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
	var marks []kept.Insert
	var last state
	if n := m.log.Groups(); n > 0 {
		last = m.log.Info(n - 1)
		// The last group is from the user, and so is every second one before it.
		for _, g := range [...]int{n - 3, n - 1} {
			if g >= 0 && m.log.Info(g).mark > 0 {
				marks = append(marks, kept.Insert{Group: g, At: m.log.Info(g).mark, Text: []byte(mark)})
			}
		}
	}
	return append(m.log.Pieces([][]byte{p.head(m, req, last)}, marks...), []byte("]}")), nil
}

func (p *Provider) head(m *memory, req *llm.Request, last state) []byte {
	limit, budget := p.limits(req)
	if last.bare {
		budget = 0
	}
	dst := jsonwire.AppendStringMember([]byte{'{'}, "model", req.Config.Model)
	dst = jsonwire.AppendIntMember(dst, "max_tokens", limit)
	dst = jsonwire.AppendRawMember(dst, "stream", []byte("true"))
	switch {
	case budget > 0:
		dst = append(jsonwire.AppendMember(dst, "thinking"), `{"type":"enabled"`...)
		dst = append(jsonwire.AppendIntMember(dst, "budget_tokens", budget), '}')
	case req.Config.Temperature != nil:
		dst = llm.AppendNumber(jsonwire.AppendMember(dst, "temperature"), *req.Config.Temperature)
	}
	if stop := slices.DeleteFunc(slices.Clone(req.Config.Stop), blank); len(stop) > 0 {
		dst = append(jsonwire.AppendMember(dst, "stop_sequences"), '[')
		for i, s := range stop {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendString(dst, s)
		}
		dst = append(dst, ']')
	}
	switch {
	case len(req.Tools) > 0:
		if !llm.SameTools(m.tools, req.Tools) {
			m.tools, m.list = slices.Clone(req.Tools), appendTools(nil, req.Tools)
		}
		dst = jsonwire.AppendRawMember(dst, "tools", m.list)
	case last.calls:
		dst = jsonwire.AppendRawMember(dst, "tools", []byte(noTool))
		dst = jsonwire.AppendRawMember(dst, "tool_choice", []byte(`{"type":"none"}`))
	}
	if !blank(req.System) {
		dst = append(jsonwire.AppendMember(dst, "system"), '[')
		dst = append(appendText(dst, req.System), mark+"}]"...)
	}
	return append(jsonwire.AppendMember(dst, "messages"), '[')
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func appendTools(dst []byte, tools []llm.Tool) []byte {
	dst = append(dst, '[')
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		t := &tools[i]
		dst = jsonwire.AppendStringMember(append(dst, '{'), "name", t.Name)
		if t.Description != "" {
			dst = jsonwire.AppendStringMember(dst, "description", t.Description)
		}
		dst = jsonwire.AppendRawMember(dst, "input_schema", t.Schema())
		if i == len(tools)-1 {
			dst = append(dst, mark...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// encoder implements kept.Encoder for the messages of one request.
type encoder struct {
	*memory
	messages []message.Message
}

// End is the end of a group: all neighbours of one role.
func (e *encoder) End(i int) int {
	j := i + 1
	for j < len(e.messages) && e.messages[j].Role == e.messages[i].Role {
		j++
	}
	return j
}

func (e *encoder) Append(dst []byte, i, j int, s state) ([]byte, state) {
	if i > 0 {
		dst = append(dst, ',')
	}
	role := e.messages[i].Role
	dst = jsonwire.AppendStringMember(append(dst, '{'), "role", string(role))
	dst = append(jsonwire.AppendMember(dst, "content"), '[')
	if role == message.Assistant {
		dst, s = e.appendReply(dst, i, j, s)
		return append(dst, "]}"...), s
	}
	for ; i < j; i++ {
		dst = e.appendUser(dst, i)
	}
	s.mark = len(dst) - 1 // before the end of the last block
	return append(dst, "]}"...), s
}

func (e *encoder) appendReply(dst []byte, i, j int, s state) ([]byte, state) {
	s.mark = 0
	thinking := appendThinking(nil, &e.messages[i], e.of)
	dst = append(dst, thinking...)
	called := false
	for ; i < j; i++ {
		for n := range e.messages[i].Content {
			switch b := &e.messages[i].Content[n]; b.Type {
			case message.TextBlock:
				dst = append(appendText(next(dst), b.Text), '}')
			case message.ToolCallBlock:
				called = true
				dst = append(next(dst), `{"type":"tool_use"`...)
				dst = jsonwire.AppendStringMember(dst, "id", b.ID)
				dst = jsonwire.AppendStringMember(dst, "name", b.Name)
				dst = append(jsonwire.AppendRawMember(dst, "input", []byte(b.Arguments)), '}')
			}
		}
	}
	s.calls, s.bare = s.calls || called, called && len(thinking) == 0
	return dst, s
}

func (e *encoder) appendUser(dst []byte, i int) []byte {
	var images []pictures.Image
	if e.of.images {
		images = e.album.At(i)
	}
	content := e.messages[i].Content
	for n := range content {
		b := &content[n]
		if b.Type != message.ToolResultBlock {
			dst = appendBlock(next(dst), b, &images)
			continue
		}
		dst = append(next(dst), `{"type":"tool_result"`...)
		dst = jsonwire.AppendStringMember(dst, "tool_use_id", b.ToolCallID)
		if b.IsError {
			dst = jsonwire.AppendRawMember(dst, "is_error", []byte("true"))
		}
		dst = append(jsonwire.AppendMember(dst, "content"), '[')
		for k := range b.Content {
			dst = appendBlock(next(dst), &b.Content[k], &images)
		}
		dst = append(dst, "]}"...)
	}
	return dst
}

// next puts a comma behind a block.
func next(dst []byte) []byte {
	if dst[len(dst)-1] == '[' {
		return dst
	}
	return append(dst, ',')
}

// appendText appends a text block, but for its end.
func appendText(dst []byte, text string) []byte {
	return jsonwire.AppendStringMember(append(dst, `{"type":"text"`...), "text", text)
}

// appendBlock appends text or an image. An image is the next one of images;
// where there are none, images are not sent.
func appendBlock(dst []byte, b *message.Block, images *[]pictures.Image) []byte {
	text := b.Text
	if b.Type == message.ImageBlock {
		if len(*images) > 0 {
			image := (*images)[0]
			*images = (*images)[1:]
			if text = image.Note; text == "" {
				dst = append(dst, `{"type":"image","source":{"type":"base64"`...)
				dst = jsonwire.AppendStringMember(dst, "media_type", image.Media)
				dst = append(jsonwire.AppendMember(dst, "data"), '"')
				return append(base64.StdEncoding.AppendEncode(dst, image.Data), `"}}`...)
			}
		} else {
			text = pictures.LeftOut(b)
		}
	}
	return append(appendText(dst, text), '}')
}
