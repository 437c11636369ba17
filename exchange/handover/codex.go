package handover

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// codexVersion is the version of the program whose files these are like.
const codexVersion = "0.60.0"

// Codex writes a session as Codex keeps its own: JSON lines {timestamp, type,
// payload} in ~/.codex/sessions/YYYY/MM/DD/rollout-TIME-UUID.jsonl. The first
// is session_meta; turn_context stands before each prompt; response_item holds
// what the model reads, in the shape of OpenAI's Responses API; event_msg
// repeats prompts and answers for people, and has the usage. Context is a
// message of the user in an environment_context element, which Codex does not
// show.
func Codex(ctx context.Context, out io.Writer, src transcript.Source, o Options) (Report, error) {
	w, all, err := begin(ctx, out, src, o)
	if err != nil {
		return Report{}, err
	}
	c := &codex{writer: w}
	created := time.UnixMilli(w.rep.Header.CreatedAt).UTC()
	c.rep.ID = uuid("codex", w.rep.Header.ID)
	c.rep.Place = ".codex/sessions/" + created.Format("2006/01/02/") + "rollout-" + created.Format("2006-01-02T15-04-05-") + c.rep.ID + ".jsonl"
	c.rep.Resume = "codex resume " + c.rep.ID
	c.meta()
	for i := range all {
		if ctx.Err() != nil {
			return c.rep, context.Cause(ctx)
		}
		c.message(&all[i])
	}
	return c.rep, w.w.Flush()
}

type codex struct {
	*writer
	total message.Usage
	read  int64 // of it, from a cache
}

// item writes one line.
func (c *codex) item(at int64, typ string, payload []byte) {
	b := jsonwire.AppendStringMember([]byte{'{'}, "timestamp", stamp(at))
	b = jsonwire.AppendStringMember(b, "type", typ)
	c.line(append(jsonwire.AppendRawMember(b, "payload", payload), '}'))
}

func (c *codex) meta() {
	at := c.rep.Header.CreatedAt
	b := jsonwire.AppendStringMember([]byte{'{'}, "id", c.rep.ID)
	b = jsonwire.AppendStringMember(b, "timestamp", stamp(at))
	b = jsonwire.AppendStringMember(b, "cwd", c.cwd)
	b = jsonwire.AppendStringMember(b, "originator", "outcrop")
	b = jsonwire.AppendStringMember(b, "cli_version", codexVersion)
	b = jsonwire.AppendRawMember(b, "instructions", []byte("null"))
	b = jsonwire.AppendStringMember(b, "source", "cli")
	c.item(at, "session_meta", append(b, '}'))
}

func (c *codex) message(s *said) {
	switch s.kind {
	case prompt:
		c.context(s)
		c.item(s.time, "response_item", c.user(s.Content, false))
		text := jsonwire.AppendStringMember([]byte(`{"type":"user_message"`), "message", message.PlainText(s.Content))
		c.item(s.time, "event_msg", append(append(text, `,"kind":"plain"`...), '}'))
	case checkpoint:
		c.item(s.time, "response_item", c.user(s.Content, false))
	case added:
		c.item(s.time, "response_item", c.user(s.Content, true))
	case results:
		for i := range s.Content {
			if s.Content[i].Type == message.ToolResultBlock {
				c.result(&s.Content[i], s.time)
			}
		}
	case reply:
		c.reply(s)
	}
}

// context names model and directory for what follows.
func (c *codex) context(s *said) {
	b := jsonwire.AppendStringMember([]byte{'{'}, "cwd", c.cwd)
	b = append(b, `,"approval_policy":"on-request","sandbox_policy":{"type":"read-only"}`...)
	b = jsonwire.AppendStringMember(b, "model", c.model)
	c.item(s.time, "turn_context", append(b, `,"summary":"auto"}`...))
}

// user is a message of the user; aside is one that is not shown.
func (c *codex) user(content []message.Block, aside bool) []byte {
	b := []byte(`{"type":"message","role":"user","content":[`)
	text := func(s string) {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = append(jsonwire.AppendStringMember(append(b, `{"type":"input_text"`...), "text", s), '}')
	}
	if aside {
		text("<environment_context>\n" + message.PlainText(content) + "\n</environment_context>")
		return append(b, ']', '}')
	}
	for i := range content {
		if one := &content[i]; one.Type != message.ImageBlock {
			text(one.Text)
		} else if mediaType, data, ok := c.picture(one); ok {
			if b[len(b)-1] != '[' {
				b = append(b, ',')
			}
			b = append(jsonwire.AppendStringMember(append(b, `{"type":"input_image"`...), "image_url", "data:"+mediaType+";base64,"+data), '}')
		} else {
			text(missing(one))
		}
	}
	return append(b, ']', '}')
}

func (c *codex) result(r *message.Block, at int64) {
	b := jsonwire.AppendStringMember([]byte(`{"type":"function_call_output"`), "call_id", r.ToolCallID)
	plain := true
	for i := range r.Content {
		plain = plain && r.Content[i].Type != message.ImageBlock
	}
	if plain {
		b = jsonwire.AppendStringMember(b, "output", message.PlainText(r.Content))
	} else {
		u := c.user(r.Content, false)
		b = jsonwire.AppendRawMember(b, "output", jsonwire.Get(u, "content"))
	}
	if r.IsError {
		c.rep.Marks++ // the text says it
	}
	c.item(at, "response_item", append(b, '}'))
}

func (c *codex) reply(s *said) {
	var states [][]byte
	if string(jsonwire.Get(s.Source.ReplayState, "openai-responses")) == "1" {
		for v := range jsonwire.Elements(jsonwire.Get(s.Source.ReplayState, "blocks")) {
			states = append(states, v)
		}
	}
	var answer []string
	for i := range s.Content {
		b := &s.Content[i]
		switch b.Type {
		case message.ReasoningBlock:
			var sealed string
			if len(states) == len(s.Content) && jsonwire.Kind(states[i]) == '{' {
				sealed, _ = jsonwire.Text(jsonwire.Get(states[i], "encryptedContent"))
			}
			if sealed == "" {
				c.rep.Reasoning++ // the API takes it back in its own encryption alone
				continue
			}
			p := append([]byte(`{"type":"reasoning"`), `,"summary":[`...)
			if b.Text != "" {
				p = append(jsonwire.AppendStringMember(append(p, `{"type":"summary_text"`...), "text", b.Text), '}')
			}
			p = append(p, ']')
			c.item(s.time, "response_item", append(jsonwire.AppendStringMember(p, "encrypted_content", sealed), '}'))
		case message.ToolCallBlock:
			p := jsonwire.AppendStringMember([]byte(`{"type":"function_call"`), "name", b.Name)
			p = jsonwire.AppendStringMember(p, "arguments", b.Arguments)
			c.item(s.time, "response_item", append(jsonwire.AppendStringMember(p, "call_id", b.ID), '}'))
		default:
			text := b.Text
			if b.Type == message.ImageBlock {
				text = missing(b)
			}
			p := []byte(`{"type":"message","role":"assistant","content":[{"type":"output_text"`)
			c.item(s.time, "response_item", append(jsonwire.AppendStringMember(p, "text", text), '}', ']', '}'))
			answer = append(answer, text)
		}
	}
	if len(answer) > 0 {
		c.item(s.time, "event_msg", append(jsonwire.AppendStringMember([]byte(`{"type":"agent_message"`), "message", strings.Join(answer, "\n\n")), '}'))
	}
	c.usage(s)
}

// usage is the count of tokens that ends a reply. Codex counts what was read
// from a cache as a part of the input.
func (c *codex) usage(s *said) {
	u := message.Usage{}
	if s.usage != nil {
		u = *s.usage
	}
	in := u.InputTokens + count(u.CacheReadTokens) + count(u.CacheWriteTokens)
	c.total.InputTokens += in
	c.total.OutputTokens += u.OutputTokens
	c.read += count(u.CacheReadTokens)
	reasoning := count(u.ReasoningTokens) + count(c.total.ReasoningTokens)
	c.total.ReasoningTokens = &reasoning
	part := func(dst []byte, in, read, out, thought int64) []byte {
		dst = jsonwire.AppendIntMember(append(dst, '{'), "input_tokens", in)
		dst = jsonwire.AppendIntMember(dst, "cached_input_tokens", read)
		dst = jsonwire.AppendIntMember(dst, "output_tokens", out)
		dst = jsonwire.AppendIntMember(dst, "reasoning_output_tokens", thought)
		return append(jsonwire.AppendIntMember(dst, "total_tokens", in+out), '}')
	}
	p := part([]byte(`{"type":"token_count","info":{"total_token_usage":`), c.total.InputTokens, c.read, c.total.OutputTokens, reasoning)
	p = part(append(p, `,"last_token_usage":`...), in, count(u.CacheReadTokens), u.OutputTokens, count(u.ReasoningTokens))
	c.item(s.time, "event_msg", append(p, `,"model_context_window":null},"rate_limits":null}`...))
}
