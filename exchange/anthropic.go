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
	c, _, err := b.AnthropicAt(content, 0)
	return c, err
}

// AnthropicAt is Anthropic for a content that begins at or after an offset of a
// text. It returns the offset behind it.
func (b *Builder) AnthropicAt(text []byte, at int) (c AnthropicContent, end int, err error) {
	at = jsonwire.Space(text, at)
	if s, end, ok := jsonwire.TextAt(text, at); ok {
		if s != "" {
			c.Blocks = []message.Block{message.Text(s)}
		}
		return c, end, nil
	}
	var states []Thinking
	signed := false
	end = jsonwire.VisitElements(text, at, func(at int) int {
		if err != nil {
			return 0
		}
		v := anthropicBlock{at: at}
		end := v.read(text)
		switch v.kind {
		case "tool_result":
			r := Result{CallID: v.callID, IsError: v.isError}
			r.Content, err = b.resultContent(text, &v)
			c.Results = append(c.Results, r)
			return end
		case "text":
			if v.text == "" {
				return end
			}
		case "thinking":
			if v.text == "" && v.signature == "" {
				return end
			}
			b.report.Kept("thinking")
		case "redacted_thinking":
			b.report.Kept("thinking")
		case "tool_use":
			b.report.Kept("call")
		}
		var block message.Block
		if block, err = b.anthropicBlock(text[at:end:end], &v); err != nil {
			return end
		}
		state := Thinking{Signature: v.signature}
		if v.kind == "redacted_thinking" {
			state = Thinking{Redacted: v.data}
		}
		signed = signed || state != Thinking{}
		c.Blocks, states = append(c.Blocks, block), append(states, state)
		return end
	})
	if signed {
		c.Replay = ThinkingReplay(states)
	}
	return c, end, err
}

// anthropicBlock is what one walk over a block finds.
type anthropicBlock struct {
	at                          int
	kind, text, signature, data string
	id, name, callID, title     string
	input                       []byte
	isError                     bool
	content                     int             // where the content of a result begins; 0: it has none
	inner                       []message.Block // of that content, when it was read on the way
	innerRead                   bool
	how, mediaType, url, fileID string // of source
	sourceData                  string
}

// read walks over a block and returns the offset behind it.
func (v *anthropicBlock) read(b []byte) int {
	text := func(dst *string) func(at int) int {
		return func(at int) int {
			s, end, _ := jsonwire.TextAt(b, at)
			*dst = s
			return end
		}
	}
	return jsonwire.Visit(b, v.at, func(key []byte, at int) int {
		switch string(key) {
		case "type":
			return text(&v.kind)(at)
		case "text", "thinking":
			return text(&v.text)(at)
		case "signature":
			return text(&v.signature)(at)
		case "data":
			return text(&v.data)(at)
		case "id":
			return text(&v.id)(at)
		case "name":
			return text(&v.name)(at)
		case "title":
			return text(&v.title)(at)
		case "tool_use_id":
			return text(&v.callID)(at)
		case "is_error":
			v.isError = at < len(b) && b[at] == 't'
		case "input":
			end := jsonwire.Skip(b, at)
			v.input = b[at:end:end]
			return end
		case "content":
			v.content = at
			if s, end, ok := jsonwire.TextAt(b, at); ok {
				v.inner, v.innerRead = nil, true
				if s != "" {
					v.inner = []message.Block{message.Text(s)}
				}
				return end
			}
			v.innerRead = false
		case "source":
			return jsonwire.Visit(b, at, func(key []byte, at int) int {
				switch string(key) {
				case "type":
					return text(&v.how)(at)
				case "media_type":
					return text(&v.mediaType)(at)
				case "data":
					return text(&v.sourceData)(at)
				case "url":
					return text(&v.url)(at)
				case "file_id":
					return text(&v.fileID)(at)
				}
				return 0
			})
		}
		return 0
	})
}

// resultContent reads the content of a tool_result.
func (b *Builder) resultContent(text []byte, v *anthropicBlock) (out []message.Block, err error) {
	if v.innerRead || v.content == 0 {
		return v.inner, nil
	}
	switch at := v.content; jsonwire.Kind(text[at:]) {
	case '[':
		jsonwire.VisitElements(text, at, func(at int) int {
			if err != nil {
				return 0
			}
			if s, end, ok := jsonwire.TextAt(text, at); ok {
				out = append(out, message.Text(s))
				return end
			}
			in := anthropicBlock{at: at}
			end := in.read(text)
			if in.kind == "text" && in.text == "" {
				return end
			}
			var block message.Block
			if block, err = b.anthropicBlock(text[at:end:end], &in); err == nil {
				out = append(out, block)
			}
			return end
		})
	case 'n':
	default:
		out = []message.Block{b.Raw("content of a result", text[at:jsonwire.Skip(text, at)])}
	}
	return out, err
}

// anthropicBlock makes the block of one that was read.
func (b *Builder) anthropicBlock(raw []byte, v *anthropicBlock) (message.Block, error) {
	switch v.kind {
	case "text":
		return message.Text(v.text), nil
	case "thinking":
		return message.Reasoning(v.text), nil
	case "redacted_thinking":
		return message.Reasoning(""), nil
	case "tool_use":
		args := "{}"
		switch jsonwire.Kind(v.input) {
		case '"': // some programs store what the model wrote
			args, _ = jsonwire.Text(v.input)
		case 0, 'n':
		default:
			args = string(jsonwire.Compact(v.input))
		}
		return message.ToolCall(v.id, v.name, args), nil
	case "image", "document":
		switch v.how {
		case "base64":
			return b.AttachBase64(v.sourceData, v.mediaType, v.title)
		case "text":
			b.report.Kept("document")
			return message.Text(v.sourceData), nil
		case "url":
			return b.Missing(v.kind, v.url), nil
		case "file":
			return b.Missing(v.kind, v.fileID), nil
		}
	}
	kind := v.kind
	if kind == "" {
		kind = "without a type"
	}
	return b.Raw("block "+kind, raw), nil
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
