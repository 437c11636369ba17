package handover

import (
	"context"
	"io"
	"regexp"
	"strconv"

	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// claudeVersion is the version of the program whose files these are like.
const claudeVersion = "2.0.0"

// ClaudeCode writes a session as Claude Code keeps its own: JSON lines in
// ~/.claude/projects/PROJECT/UUID.jsonl, where PROJECT is the working directory
// with - for everything but letters and digits. Each line has uuid and
// parentUuid, the line that it follows; message is one of Anthropic's Messages
// API; a reply is one line for each of its blocks, with the same message.id;
// results are user messages; isMeta marks what no person typed.
func ClaudeCode(ctx context.Context, out io.Writer, src transcript.Source, o Options) (Report, error) {
	w, all, err := begin(ctx, out, src, o)
	if err != nil {
		return Report{}, err
	}
	c := &claude{writer: w}
	c.rep.ID = uuid("claude-code", w.rep.Header.ID)
	c.rep.Place = ".claude/projects/" + notPlain.ReplaceAllString(w.cwd, "-") + "/" + c.rep.ID + ".jsonl"
	c.rep.Resume = "claude --resume " + c.rep.ID
	for i := range all {
		if ctx.Err() != nil {
			return c.rep, context.Cause(ctx)
		}
		c.message(&all[i], i)
	}
	return c.rep, w.w.Flush()
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9]`)

type claude struct {
	*writer
	parent string // uuid of the line before
	n      int
}

// open begins a line; it ends with the message that is put behind it.
func (c *claude) open(typ string, at int64) []byte {
	c.n++
	id := uuid("line", c.rep.ID, strconv.Itoa(c.n))
	b := []byte{'{'}
	if c.parent == "" {
		b = jsonwire.AppendRawMember(b, "parentUuid", []byte("null"))
	} else {
		b = jsonwire.AppendStringMember(b, "parentUuid", c.parent)
	}
	c.parent = id
	b = jsonwire.AppendRawMember(b, "isSidechain", []byte("false"))
	b = jsonwire.AppendStringMember(b, "userType", "external")
	b = jsonwire.AppendStringMember(b, "cwd", c.cwd)
	b = jsonwire.AppendStringMember(b, "sessionId", c.rep.ID)
	b = jsonwire.AppendStringMember(b, "version", claudeVersion)
	b = jsonwire.AppendStringMember(b, "gitBranch", "")
	b = jsonwire.AppendStringMember(b, "type", typ)
	b = jsonwire.AppendStringMember(b, "uuid", id)
	return jsonwire.AppendStringMember(b, "timestamp", stamp(at))
}

func (c *claude) message(s *said, i int) {
	if s.kind == reply {
		c.reply(s, i)
		return
	}
	b := c.open("user", s.time)
	if s.kind == added || s.kind == checkpoint {
		b = jsonwire.AppendRawMember(b, "isMeta", []byte("true"))
	}
	b = append(jsonwire.AppendMember(b, "message"), `{"role":"user","content":`...)
	if len(s.Content) == 1 && s.Content[0].Type == message.TextBlock {
		b = jsonwire.AppendString(b, s.Content[0].Text)
	} else {
		b = append(b, '[')
		for k := range s.Content {
			if k > 0 {
				b = append(b, ',')
			}
			b = c.block(b, &s.Content[k])
		}
		b = append(b, ']')
	}
	c.line(append(b, '}', '}'))
}

// block is a content block of the user as the API has it.
func (c *claude) block(dst []byte, b *message.Block) []byte {
	switch b.Type {
	case message.ToolResultBlock:
		dst = append(dst, `{"type":"tool_result"`...)
		dst = jsonwire.AppendStringMember(dst, "tool_use_id", b.ToolCallID)
		dst = jsonwire.AppendMember(dst, "content")
		if len(b.Content) == 1 && b.Content[0].Type == message.TextBlock {
			dst = jsonwire.AppendString(dst, b.Content[0].Text)
		} else {
			dst = append(dst, '[')
			for i := range b.Content {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = c.block(dst, &b.Content[i])
			}
			dst = append(dst, ']')
		}
		if b.IsError {
			dst = jsonwire.AppendRawMember(dst, "is_error", []byte("true"))
		}
		return append(dst, '}')
	case message.ImageBlock:
		mediaType, data, ok := c.picture(b)
		if !ok {
			return appendText(dst, missing(b))
		}
		dst = append(dst, `{"type":"image","source":{"type":"base64"`...)
		dst = jsonwire.AppendStringMember(dst, "media_type", mediaType)
		return append(jsonwire.AppendStringMember(dst, "data", data), '}', '}')
	}
	return appendText(dst, b.Text)
}

func appendText(dst []byte, text string) []byte {
	dst = append(dst, `{"type":"text"`...)
	return append(jsonwire.AppendStringMember(dst, "text", text), '}')
}

// reply writes a line for each block of a reply.
func (c *claude) reply(s *said, i int) {
	id := "msg_" + uuid("message", c.rep.ID, strconv.Itoa(i))
	var blocks [][]byte
	var states [][]byte
	if string(jsonwire.Get(s.Source.ReplayState, "anthropic")) == "1" {
		for v := range jsonwire.Elements(jsonwire.Get(s.Source.ReplayState, "blocks")) {
			states = append(states, v)
		}
	}
	calls := false
	for k := range s.Content {
		b := &s.Content[k]
		switch b.Type {
		case message.ReasoningBlock:
			var state []byte
			if len(states) == len(s.Content) && jsonwire.Kind(states[k]) == '{' {
				state = states[k]
			}
			signature, signed := jsonwire.Text(jsonwire.Get(state, "signature"))
			data, hidden := jsonwire.Text(jsonwire.Get(state, "redacted"))
			switch {
			case hidden && b.Text == "":
				blocks = append(blocks, append(jsonwire.AppendStringMember([]byte(`{"type":"redacted_thinking"`), "data", data), '}'))
			case signed && b.Text != "":
				one := jsonwire.AppendStringMember([]byte(`{"type":"thinking"`), "thinking", b.Text)
				blocks = append(blocks, append(jsonwire.AppendStringMember(one, "signature", signature), '}'))
			default:
				c.rep.Reasoning++ // without its signature the API refuses it
			}
		case message.ToolCallBlock:
			calls = true
			one := jsonwire.AppendStringMember([]byte(`{"type":"tool_use"`), "id", b.ID)
			one = jsonwire.AppendStringMember(one, "name", b.Name)
			blocks = append(blocks, append(jsonwire.AppendRawMember(one, "input", []byte(b.Arguments)), '}'))
		case message.TextBlock:
			blocks = append(blocks, appendText(nil, b.Text))
		case message.ImageBlock:
			blocks = append(blocks, appendText(nil, missing(b)))
		}
	}
	model := s.Source.Model
	if model == "" {
		model = c.model
	}
	for k, block := range blocks {
		b := c.open("assistant", s.time)
		b = append(jsonwire.AppendMember(b, "message"), '{')
		b = jsonwire.AppendStringMember(b, "id", id)
		b = append(b, `,"type":"message","role":"assistant"`...)
		b = jsonwire.AppendStringMember(b, "model", model)
		b = append(append(append(jsonwire.AppendMember(b, "content"), '['), block...), ']')
		reason := "null"
		if k == len(blocks)-1 {
			if reason = `"end_turn"`; calls {
				reason = `"tool_use"`
			}
		}
		b = jsonwire.AppendRawMember(b, "stop_reason", []byte(reason))
		b = append(b, `,"stop_sequence":null,"usage":`...)
		b = append(claudeUsage(b, s.usage), '}')
		c.line(append(b, '}'))
	}
}

func claudeUsage(dst []byte, u *message.Usage) []byte {
	if u == nil {
		u = &message.Usage{}
	}
	dst = jsonwire.AppendIntMember(append(dst, '{'), "input_tokens", u.InputTokens)
	dst = jsonwire.AppendIntMember(dst, "cache_creation_input_tokens", count(u.CacheWriteTokens))
	dst = jsonwire.AppendIntMember(dst, "cache_read_input_tokens", count(u.CacheReadTokens))
	return append(jsonwire.AppendIntMember(dst, "output_tokens", u.OutputTokens), '}')
}

func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
