package exchange

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// AnthropicContent is the content of one message in the shape of Anthropic's
// Messages API, which several programs store.
type AnthropicContent struct {
	Blocks  []message.Block // what the message says itself
	Results []Result        // its tool_result blocks, without time and message id
	Replay  json.RawMessage // for Reply.Replay; nil without signed thinking
}

// Thinking is what a provider wants back with one block of a reply: the
// signature of its thinking, or thinking that only it can read. Other blocks
// have none.
type Thinking struct{ Signature, Redacted string }

// ThinkingReplay makes the replay state of a reply with these blocks, one
// element a block, in the form that the Anthropic provider of this module
// writes and reads; nil when there is nothing to give back.
func ThinkingReplay(blocks []Thinking) json.RawMessage {
	found := false
	dst := []byte(`{"anthropic":1,"blocks":[`)
	for i, t := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch {
		case t.Redacted != "":
			dst = append(jsonwire.AppendStringMember(append(dst, '{'), "redacted", t.Redacted), '}')
		case t.Signature != "":
			dst = append(jsonwire.AppendStringMember(append(dst, '{'), "signature", t.Signature), '}')
		default:
			dst = append(dst, "null"...)
			continue
		}
		found = true
	}
	if !found {
		return nil
	}
	return append(dst, ']', '}')
}

// Anthropic reads a content: a string, or a list of blocks. content is valid
// JSON. Images and documents are kept as attachments; blocks of kinds that have
// no place in a log stay as they are, see Raw.
func (b *Builder) Anthropic(content []byte) (AnthropicContent, error) {
	var c AnthropicContent
	if text, ok := jsonwire.Text(content); ok {
		if text != "" {
			c.Blocks = []message.Block{message.Text(text)}
		}
		return c, nil
	}
	var states []Thinking
	signed := false
	for v := range jsonwire.Elements(content) {
		var state Thinking
		var block message.Block
		switch kind, _ := jsonwire.Text(jsonwire.Get(v, "type")); kind {
		case "text":
			text, _ := jsonwire.Text(jsonwire.Get(v, "text"))
			if text == "" {
				continue
			}
			block = message.Text(text)
		case "thinking":
			text, _ := jsonwire.Text(jsonwire.Get(v, "thinking"))
			state.Signature, _ = jsonwire.Text(jsonwire.Get(v, "signature"))
			if text == "" && state.Signature == "" {
				continue
			}
			block = message.Reasoning(text)
			b.report.Kept("thinking")
		case "redacted_thinking":
			state.Redacted, _ = jsonwire.Text(jsonwire.Get(v, "data"))
			block = message.Reasoning("")
			b.report.Kept("thinking")
		case "tool_use":
			block = toolUse(v)
			b.report.Kept("call")
		case "tool_result":
			r, err := b.toolResult(v)
			if err != nil {
				return c, err
			}
			c.Results = append(c.Results, r)
			continue
		default:
			var err error
			if block, err = b.anthropicBlock(kind, v); err != nil {
				return c, err
			}
		}
		signed = signed || state != Thinking{}
		c.Blocks = append(c.Blocks, block)
		states = append(states, state)
	}
	if signed {
		c.Replay = ThinkingReplay(states)
	}
	return c, nil
}

func toolUse(v []byte) message.Block {
	id, _ := jsonwire.Text(jsonwire.Get(v, "id"))
	name, _ := jsonwire.Text(jsonwire.Get(v, "name"))
	input := jsonwire.Get(v, "input")
	args := "{}"
	switch jsonwire.Kind(input) {
	case '"': // some programs store what the model wrote
		args, _ = jsonwire.Text(input)
	case 0, 'n':
	default:
		args = string(jsonwire.Compact(input))
	}
	return message.ToolCall(id, name, args)
}

func (b *Builder) toolResult(v []byte) (Result, error) {
	var r Result
	r.CallID, _ = jsonwire.Text(jsonwire.Get(v, "tool_use_id"))
	r.IsError = string(jsonwire.Get(v, "is_error")) == "true"
	content := jsonwire.Get(v, "content")
	switch jsonwire.Kind(content) {
	case '"':
		if text, _ := jsonwire.Text(content); text != "" {
			r.Content = []message.Block{message.Text(text)}
		}
	case '[':
		for e := range jsonwire.Elements(content) {
			kind, _ := jsonwire.Text(jsonwire.Get(e, "type"))
			if text, ok := jsonwire.Text(e); ok {
				r.Content = append(r.Content, message.Text(text))
				continue
			}
			if kind == "text" {
				if text, _ := jsonwire.Text(jsonwire.Get(e, "text")); text != "" {
					r.Content = append(r.Content, message.Text(text))
				}
				continue
			}
			block, err := b.anthropicBlock(kind, e)
			if err != nil {
				return r, err
			}
			r.Content = append(r.Content, block)
		}
	case 0, 'n':
	default:
		r.Content = []message.Block{b.Raw("content of a result", content)}
	}
	return r, nil
}

// anthropicBlock reads a block that has no text of its own.
func (b *Builder) anthropicBlock(kind string, v []byte) (message.Block, error) {
	src := jsonwire.Get(v, "source")
	how, _ := jsonwire.Text(jsonwire.Get(src, "type"))
	mediaType, _ := jsonwire.Text(jsonwire.Get(src, "media_type"))
	name, _ := jsonwire.Text(jsonwire.Get(v, "title"))
	data, _ := jsonwire.Text(jsonwire.Get(src, "data"))
	switch kind {
	case "image", "document":
		switch how {
		case "base64":
			return b.AttachBase64(data, mediaType, name)
		case "text":
			b.report.Kept("document")
			return message.Text(data), nil
		case "url":
			url, _ := jsonwire.Text(jsonwire.Get(src, "url"))
			return b.Missing(kind, url), nil
		case "file":
			id, _ := jsonwire.Text(jsonwire.Get(src, "file_id"))
			return b.Missing(kind, id), nil
		}
	}
	if kind == "" {
		kind = "without a type"
	}
	return b.Raw("block "+kind, v), nil
}

// AnthropicUsage reads the usage of a reply in that shape; nil when it is none.
func AnthropicUsage(v []byte) *message.Usage {
	if jsonwire.Kind(v) != '{' {
		return nil
	}
	u := &message.Usage{}
	for k, m := range jsonwire.Members(v) {
		n, ok := jsonwire.Int(m)
		if !ok || n < 0 {
			continue
		}
		switch jsonwire.Key(k) {
		case "input_tokens":
			u.InputTokens = n
		case "output_tokens":
			u.OutputTokens = n
		case "cache_read_input_tokens":
			u.CacheReadTokens = &n
		case "cache_creation_input_tokens":
			u.CacheWriteTokens = &n
		}
	}
	return u
}
