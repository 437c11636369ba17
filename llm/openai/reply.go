package openai

import (
	"fmt"
	"io"
	"slices"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/endpoint"
	"github.com/outcrop-dev/outcrop/message"
)

// reply turns events into chunks.
//
// A text or reasoning block ends when another kind of content begins; calls,
// whose pieces may come mixed, end together at the end.
type reply struct {
	endpoint.Reply
	quirk Reasoning
	turn  int
	step  int

	open   *endpoint.Block // the text or reasoning block that is open
	calls  []*toolCall
	usage  *message.Usage
	finish string // the finish reason that came first
	seen   bool   // an event with choices came
}

type toolCall struct {
	endpoint.Block
	started bool
	at      int64  // the server's index, -1 when it gives none
	given   string // the server's id
}

// whole reads an answer that is one JSON value.
func (r *reply) whole(body io.Reader) {
	data, failure := r.Whole(body)
	switch {
	case failure != nil:
		r.Stop(failure)
	case jsonwire.Valid(data) != nil || jsonwire.Kind(data) != '{':
		r.Stop(r.Fail(llm.CodeMalformed, "sent an answer that is not a JSON object"))
	case !r.Event(data):
	case !r.seen:
		r.Stop(r.Fail(llm.CodeMalformed, "answered with JSON that is no reply: "+r.Hint))
	default:
		r.end()
	}
}

// Seen implements endpoint.Format.
func (r *reply) Seen() bool { return r.seen }

// Done implements endpoint.Format: a finish reason completes a reply too, all
// that is missing then is [DONE].
func (r *reply) Done(marked bool) bool {
	if !marked && r.finish == "" {
		return false
	}
	r.end()
	return true
}

// Event implements endpoint.Format.
func (r *reply) Event(data []byte) bool {
	if e, ok := endpoint.ParseError(data); ok {
		return r.Stop(r.Reported(e))
	}
	if u := parseUsage(jsonwire.Get(data, "usage")); u != nil {
		r.usage = u
	}
	for choice := range jsonwire.Elements(jsonwire.Get(data, "choices")) {
		r.seen = true
		if n, ok := jsonwire.Int(jsonwire.Get(choice, "index")); ok && n != 0 {
			continue
		}
		if u := parseUsage(jsonwire.Get(choice, "usage")); u != nil {
			r.usage = u
		}
		for _, name := range [...]string{"delta", "message"} {
			if !r.delta(jsonwire.Get(choice, name)) {
				return false
			}
		}
		if r.finish == "" {
			r.finish = endpoint.Member(choice, "finish_reason")
		}
	}
	return true
}

func (r *reply) delta(d []byte) bool {
	if jsonwire.Kind(d) != '{' {
		return true
	}
	var reasoning string
	switch r.quirk {
	case ReasoningContent, ReasoningPlain:
		reasoning = endpoint.Member(d, string(r.quirk))
	default:
		if reasoning = endpoint.Member(d, "reasoning_content"); reasoning == "" {
			reasoning = endpoint.Member(d, "reasoning")
		}
	}
	if !r.text(message.ReasoningBlock, reasoning) {
		return false
	}
	content := jsonwire.Get(d, "content")
	if !r.text(message.TextBlock, endpoint.Member(d, "content")) || !r.text(message.TextBlock, endpoint.Member(d, "refusal")) {
		return false
	}
	for part := range jsonwire.Elements(content) { // some send parts
		if !r.text(message.TextBlock, endpoint.Member(part, "text")) {
			return false
		}
	}
	for v := range jsonwire.Elements(jsonwire.Get(d, "tool_calls")) {
		if !r.toolCall(v) {
			return false
		}
	}
	return true
}

func (r *reply) text(typ message.BlockType, s string) bool {
	if s == "" {
		return true
	}
	if r.open != nil && r.open.Type != typ && !r.closeText() {
		return false
	}
	if r.open == nil {
		r.open = &endpoint.Block{Type: typ}
		if !r.Start(r.open) {
			return false
		}
	}
	return r.Add(r.open, s)
}

func (r *reply) closeText() bool {
	b := r.open
	r.open = nil
	return b == nil || r.End(b)
}

// toolCall takes one piece of a call.
func (r *reply) toolCall(v []byte) bool {
	function := jsonwire.Get(v, "function")
	name := endpoint.Member(function, "name")
	args := ""
	if raw := jsonwire.Get(function, "arguments"); jsonwire.Kind(raw) == '{' {
		args = string(jsonwire.Compact(raw)) // some send the object itself
	} else {
		args, _ = jsonwire.Text(raw)
	}
	t := r.find(v, name)
	if len(r.calls) > endpoint.MaxCalls {
		return r.Stop(r.Fail(llm.CodeMalformed, fmt.Sprintf("asked for more than %d calls in one reply", endpoint.MaxCalls)))
	}
	if t.Name == "" {
		t.Name = name
	}
	if !t.started {
		if t.given == "" && args == "" {
			return true // its id may still come
		}
		if !r.start(t) {
			return false
		}
	} else if args == "" {
		return true
	}
	return r.Add(&t.Block, args)
}

// find returns the call that a piece belongs to. Servers number calls, repeat
// their ids, or do neither; some number all of them 0.
func (r *reply) find(v []byte, name string) *toolCall {
	id := endpoint.Member(v, "id")
	at, numbered := jsonwire.Int(jsonwire.Get(v, "index"))
	var t *toolCall
	for _, c := range r.calls {
		switch {
		case numbered && c.at == at:
			t = c // the last one of that number
		case !numbered && id != "" && c.given == id:
			t = c
		case !numbered && id == "" && name == "":
			t = c // goes on with the last one
		}
	}
	if t != nil && name != "" && id != "" && t.given != "" && t.given != id {
		t = nil // another call under a number that is in use
	}
	if t == nil {
		t = &toolCall{Block: endpoint.Block{Type: message.ToolCallBlock}, at: -1}
		if numbered {
			t.at = at
		}
		r.calls = append(r.calls, t)
	}
	if t.given == "" {
		t.given = id
	}
	return t
}

// start opens a call's block. A call without an id, or with one that is taken,
// gets one.
func (r *reply) start(t *toolCall) bool {
	if !r.closeText() {
		return false
	}
	t.ID = t.given
	for n := slices.Index(r.calls, t) + 1; t.ID == "" || r.taken(t); n++ {
		t.ID = fmt.Sprintf("call_%d_%d_%d", r.turn, r.step, n)
	}
	t.started = true
	return r.Start(&t.Block)
}

// taken reports whether an earlier call has the id of t.
func (r *reply) taken(t *toolCall) bool {
	return slices.ContainsFunc(r.calls, func(c *toolCall) bool { return c != t && c.started && c.ID == t.ID })
}

// end closes what is open and says how the reply ended.
func (r *reply) end() {
	if !r.closeText() {
		return
	}
	calls := 0
	for _, t := range r.calls {
		if !t.started {
			if t.Name == "" {
				continue // nothing is known of it
			}
			if !r.start(t) || !r.Add(&t.Block, "") {
				return
			}
		}
		calls++
		if !r.End(&t.Block) {
			return
		}
	}
	kind := message.Stop
	if calls > 0 {
		kind = message.ToolCalls
	}
	switch r.finish {
	case "length", "max_tokens":
		kind = message.MaxTokens
	case "content_filter":
		r.fails(r.Fail(llm.CodeContentFilter, "the reply was stopped by a content filter"))
		return
	case "error", "insufficient_system_resource":
		r.fails(r.Fail(message.CodeServer, "the server gave up in the middle of the reply ("+r.finish+")"))
		return
	}
	r.Finish(r.usage, kind, nil)
}

// fails ends a reply that the server gave up. What it cost is known all the
// same.
func (r *reply) fails(f *message.Failure) {
	if r.usage == nil || r.Send(message.Chunk{Type: message.UsageChunk, Usage: r.usage}) {
		r.Stop(f)
	}
}

// parseUsage sorts the server's counts into the four classes; nil when v is no
// usage.
func parseUsage(v []byte) *message.Usage {
	prompt := endpoint.Count(v, "prompt_tokens")
	if prompt < 0 {
		return nil
	}
	u := &message.Usage{InputTokens: prompt, OutputTokens: max(0, endpoint.Count(v, "completion_tokens"))}
	details := jsonwire.Get(v, "prompt_tokens_details")
	cached := endpoint.Count(details, "cached_tokens")
	if cached < 0 {
		cached = endpoint.Count(v, "prompt_cache_hit_tokens")
	}
	if cached >= 0 {
		cached = min(cached, u.InputTokens)
		u.InputTokens -= cached
		u.CacheReadTokens = &cached
	}
	if written := endpoint.Count(details, "cache_write_tokens"); written >= 0 {
		written = min(written, u.InputTokens)
		u.InputTokens -= written
		u.CacheWriteTokens = &written
	}
	if reasoning := endpoint.Count(jsonwire.Get(v, "completion_tokens_details"), "reasoning_tokens"); reasoning >= 0 {
		if total := endpoint.Count(v, "total_tokens"); reasoning > 0 && total == prompt+u.OutputTokens+reasoning {
			u.OutputTokens += reasoning // counted beside the completion, not in it
		}
		u.ReasoningTokens = &reasoning
	}
	return u
}
