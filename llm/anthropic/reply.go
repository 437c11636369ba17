package anthropic

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/endpoint"
	"github.com/outcrop-dev/outcrop/message"
)

// reply turns events into chunks.
type reply struct {
	endpoint.Reply
	turn int
	step int

	began  bool
	at     map[int64]*block // the newest one of each of the server's indexes
	blocks []*block         // in the order in which they started
	usage  *message.Usage
	stop   string // the stop reason
}

type block struct {
	endpoint.Block
	open      bool
	given     []byte // the arguments that a call started with
	signature strings.Builder
	redacted  string
}

func newReply(c *endpoint.Call, req *llm.Request, yield func(message.Chunk, error) bool) *reply {
	return &reply{Reply: c.Reply(yield), turn: req.Turn, step: req.Step, at: map[int64]*block{}}
}

// whole reads an answer that is no stream; only an error can be one.
func (r *reply) whole(body io.Reader) {
	data, failure := r.Whole(body)
	if failure != nil {
		r.Stop(failure)
		return
	}
	if e, ok := endpoint.ParseError(data); ok {
		r.Stop(r.Reported(e))
		return
	}
	r.Stop(r.Fail(llm.CodeMalformed, "answered with one JSON value instead of a stream of events: "+r.Hint))
}

// Seen implements endpoint.Format.
func (r *reply) Seen() bool { return r.began }

// Done implements endpoint.Format: all that was missing is message_stop.
func (r *reply) Done(bool) bool {
	if r.stop == "" {
		return false
	}
	r.end()
	return true
}

// Event implements endpoint.Format.
func (r *reply) Event(data []byte) bool {
	switch endpoint.Member(data, "type") {
	case "message_start":
		r.began = true
		r.count(jsonwire.Get(jsonwire.Get(data, "message"), "usage"))
	case "content_block_start":
		return r.start(index(data), jsonwire.Get(data, "content_block"))
	case "content_block_delta":
		if b := r.at[index(data)]; b != nil && b.open {
			return r.delta(b, jsonwire.Get(data, "delta"))
		}
	case "content_block_stop":
		if b := r.at[index(data)]; b != nil && b.open {
			return r.close(b)
		}
	case "message_delta":
		if s := endpoint.Member(jsonwire.Get(data, "delta"), "stop_reason"); s != "" {
			r.stop = s
		}
		r.count(jsonwire.Get(data, "usage"))
	case "message_stop":
		r.end()
		return false
	case "error", "":
		if e, ok := endpoint.ParseError(data); ok {
			return r.Stop(r.Reported(e))
		}
	}
	return true
}

// index is the server's number of a block, -1 without one.
func index(data []byte) int64 { return endpoint.Count(data, "index") }

func (r *reply) start(at int64, content []byte) bool {
	b := &block{open: true}
	text := ""
	switch endpoint.Member(content, "type") {
	case "text":
		b.Type, text = message.TextBlock, endpoint.Member(content, "text")
	case "thinking":
		b.Type, text = message.ReasoningBlock, endpoint.Member(content, "thinking")
		b.signature.WriteString(endpoint.Member(content, "signature"))
	case "redacted_thinking":
		b.Type, b.redacted = message.ReasoningBlock, endpoint.Member(content, "data")
	case "tool_use":
		b.Type, b.ID, b.Name = message.ToolCallBlock, endpoint.Member(content, "id"), endpoint.Member(content, "name")
		if input := jsonwire.Get(content, "input"); jsonwire.Kind(input) == '{' {
			b.given = jsonwire.Compact(slices.Clone(input))
		}
		for n := len(r.blocks) + 1; b.ID == "" || r.taken(b.ID); n++ {
			b.ID = fmt.Sprintf("call_%d_%d_%d", r.turn, r.step, n)
		}
	default: // nothing that we asked for
		delete(r.at, at)
		return true
	}
	if len(r.blocks) == endpoint.MaxCalls {
		return r.Stop(r.Fail(llm.CodeMalformed, fmt.Sprintf("sent more than %d blocks in one reply", endpoint.MaxCalls)))
	}
	r.blocks = append(r.blocks, b)
	r.at[at] = b
	return r.Keep(b.signature.Len()+len(b.redacted)+len(b.given)) && r.Start(&b.Block) && r.Add(&b.Block, text)
}

// taken reports whether an earlier call has this id.
func (r *reply) taken(id string) bool {
	return slices.ContainsFunc(r.blocks, func(b *block) bool { return b.Type == message.ToolCallBlock && b.ID == id })
}

func (r *reply) delta(b *block, d []byte) bool {
	name, typ := "", message.BlockType("")
	switch endpoint.Member(d, "type") {
	case "text_delta":
		name, typ = "text", message.TextBlock
	case "thinking_delta":
		name, typ = "thinking", message.ReasoningBlock
	case "input_json_delta":
		name, typ = "partial_json", message.ToolCallBlock
	case "signature_delta":
		s := endpoint.Member(d, "signature")
		b.signature.WriteString(s)
		return r.Keep(len(s))
	}
	s := endpoint.Member(d, name)
	return s == "" || b.Type != typ || r.Add(&b.Block, s)
}

func (r *reply) close(b *block) bool {
	b.open = false
	if b.Type == message.ToolCallBlock && b.Text.Len() == 0 && b.given != nil && !r.Add(&b.Block, string(b.given)) {
		return false
	}
	return r.End(&b.Block)
}

// count takes the server's counts, which grow: a later one stands for all.
func (r *reply) count(u []byte) {
	if jsonwire.Kind(u) != '{' {
		return
	}
	if r.usage == nil {
		r.usage = &message.Usage{}
	}
	for name, to := range map[string]*int64{"input_tokens": &r.usage.InputTokens, "output_tokens": &r.usage.OutputTokens} {
		if n := endpoint.Count(u, name); n >= 0 {
			*to = n
		}
	}
	for name, to := range map[string]**int64{"cache_read_input_tokens": &r.usage.CacheReadTokens, "cache_creation_input_tokens": &r.usage.CacheWriteTokens} {
		if n := endpoint.Count(u, name); n >= 0 {
			*to = &n
		}
	}
}

// end closes what is open and says how the reply ended.
func (r *reply) end() {
	kind := message.Stop
	for _, b := range r.blocks {
		if b.open && !r.close(b) {
			return
		}
		if b.Type == message.ToolCallBlock {
			kind = message.ToolCalls
		}
	}
	switch r.stop {
	case "max_tokens", "model_context_window_exceeded":
		kind = message.MaxTokens
	case "refusal":
		if r.usage == nil || r.Send(message.Chunk{Type: message.UsageChunk, Usage: r.usage}) {
			r.Stop(r.Fail(llm.CodeContentFilter, "the model refused to go on (refusal)"))
		}
		return
	}
	r.Finish(r.usage, kind, replayState(r.blocks))
}
