package openai

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// reply turns events into chunks.
//
// A text or reasoning block ends when another kind of content begins; calls,
// whose pieces may come mixed, end together at the end.
type reply struct {
	c         *call
	yield     func(message.Chunk, error) bool
	turn      int
	step      int
	requestID string

	blocks int        // started so far
	open   *textBlock // the text or reasoning block that is open
	calls  []*toolCall
	usage  *message.Usage
	finish string // the finish reason that came first
	seen   bool   // an event with choices came
	size   int    // of what was yielded, in bytes and deltaCost a chunk
}

// A model that does not end would fill memory and the log, whose lines have a
// limit too. These bounds are far above what any model gives in one reply: half
// a million tokens, a thousand calls.
var maxReply = 32 << 20 // bytes

const (
	maxCalls  = 1000
	deltaCost = 64
)

type textBlock struct {
	index  int
	typ    message.BlockType
	text   strings.Builder
	joiner llm.Joiner
}

type toolCall struct {
	block   int // index of the block, once started
	started bool
	at      int64  // the server's index, -1 when it gives none
	given   string // the server's id
	id      string
	name    string
	args    strings.Builder
	joiner  llm.Joiner
}

func newReply(c *call, req llm.Request, yield func(message.Chunk, error) bool) *reply {
	return &reply{c: c, yield: yield, turn: req.Turn, step: req.Step}
}

// stop ends the sequence with a failure.
func (r *reply) stop(f *message.Failure) {
	if f.RequestID == "" {
		f.RequestID = r.requestID
	}
	r.yield(message.Chunk{}, f)
}

// send yields a chunk; false means that nothing more may be yielded.
func (r *reply) send(c message.Chunk) bool {
	if err := r.c.caller.Err(); err != nil {
		r.stop(r.c.broken(err))
		return false
	}
	if c.Type != message.BlockEnd {
		r.size += len(c.Text) + deltaCost
	}
	if r.size > maxReply {
		r.stop(r.c.fail(CodeMalformed, fmt.Sprintf("sent a reply over %d MiB", maxReply>>20)))
		return false
	}
	return r.yield(c, nil)
}

// stream reads server-sent events to their end.
func (r *reply) stream(body io.Reader) {
	ev := newEvents(r.c.watch(body))
	for {
		data, err := ev.read()
		switch {
		case err == nil && bytes.Equal(bytes.TrimSpace(data), doneMark):
			r.end()
			return
		case err == nil:
			if ev.ended && jsonwire.Valid(data) != nil {
				break // the stream broke off inside this event
			}
			if !r.event(data) {
				return
			}
			continue
		case err == errTooLong:
			r.stop(r.c.fail(CodeMalformed, "sent an event over 16 MiB"))
			return
		case r.c.caller.Err() != nil, err != io.EOF && r.finish == "":
			r.stop(r.c.broken(err))
			return
		}
		switch {
		case r.finish != "": // all that was missing is [DONE]
			r.end()
		case !r.seen && ev.other:
			r.stop(r.c.fail(CodeMalformed, "answered with something that is no event stream: does base_url end in /v1?"))
		default:
			r.stop(r.c.fail(message.CodeTransport, "the stream ended before the reply was complete"))
		}
		return
	}
}

// whole reads an answer that is one JSON value.
func (r *reply) whole(body io.Reader) {
	data, err := io.ReadAll(io.LimitReader(r.c.watch(body), maxBody+1))
	switch {
	case err != nil:
		r.stop(r.c.broken(err))
		return
	case len(data) > maxBody:
		r.stop(r.c.fail(CodeMalformed, "sent an answer over 16 MiB"))
		return
	}
	if !r.event(data) {
		return
	}
	if !r.seen {
		r.stop(r.c.fail(CodeMalformed, "answered with JSON that is no reply: does base_url end in /v1?"))
		return
	}
	r.end()
}

// event takes one event; false means that the sequence has ended.
func (r *reply) event(data []byte) bool {
	if jsonwire.Valid(data) != nil || jsonwire.Kind(data) != '{' {
		r.stop(r.c.fail(CodeMalformed, "sent an event that is not a JSON object"))
		return false
	}
	if e, ok := parseError(data); ok {
		r.stop(r.c.reported(e))
		return false
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
			r.finish = member(choice, "finish_reason")
		}
	}
	return true
}

func (r *reply) delta(d []byte) bool {
	if jsonwire.Kind(d) != '{' {
		return true
	}
	var reasoning string
	switch r.c.opts.Quirks.Reasoning {
	case ReasoningContent, ReasoningPlain:
		reasoning = member(d, string(r.c.opts.Quirks.Reasoning))
	default:
		if reasoning = member(d, "reasoning_content"); reasoning == "" {
			reasoning = member(d, "reasoning")
		}
	}
	if !r.text(message.ReasoningBlock, reasoning) {
		return false
	}
	content := jsonwire.Get(d, "content")
	if !r.text(message.TextBlock, member(d, "content")) || !r.text(message.TextBlock, member(d, "refusal")) {
		return false
	}
	for part := range jsonwire.Elements(content) { // some send parts
		if !r.text(message.TextBlock, member(part, "text")) {
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
	if r.open != nil && r.open.typ != typ && !r.closeText() {
		return false
	}
	if r.open == nil {
		r.open = &textBlock{index: r.blocks, typ: typ}
		r.blocks++
		if !r.send(message.Chunk{Type: message.BlockStart, Index: r.open.index, BlockType: typ}) {
			return false
		}
	}
	return r.textDelta(r.open.joiner.Add(s))
}

func (r *reply) textDelta(s string) bool {
	if s == "" {
		return true
	}
	r.open.text.WriteString(s)
	typ := message.TextDelta
	if r.open.typ == message.ReasoningBlock {
		typ = message.ReasoningDelta
	}
	return r.send(message.Chunk{Type: typ, Index: r.open.index, Text: s})
}

func (r *reply) closeText() bool {
	if r.open == nil {
		return true
	}
	if !r.textDelta(r.open.joiner.Rest()) {
		return false
	}
	b := r.open
	r.open = nil
	return r.send(message.Chunk{Type: message.BlockEnd, Index: b.index, Block: &message.Block{Type: b.typ, Text: b.text.String()}})
}

// toolCall takes one piece of a call.
func (r *reply) toolCall(v []byte) bool {
	function := jsonwire.Get(v, "function")
	name := member(function, "name")
	args := ""
	if raw := jsonwire.Get(function, "arguments"); jsonwire.Kind(raw) == '{' {
		args = string(jsonwire.Compact(raw)) // some send the object itself
	} else {
		args, _ = jsonwire.Text(raw)
	}
	t := r.find(v, name)
	if len(r.calls) > maxCalls {
		r.stop(r.c.fail(CodeMalformed, fmt.Sprintf("asked for more than %d calls in one reply", maxCalls)))
		return false
	}
	if t.name == "" {
		t.name = name
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
	return r.callDelta(t, t.joiner.Add(args))
}

// find returns the call that a piece belongs to. Servers number calls, repeat
// their ids, or do neither; some number all of them 0.
func (r *reply) find(v []byte, name string) *toolCall {
	id := member(v, "id")
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
		t = &toolCall{at: -1}
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
	t.id = t.given
	for n := slices.Index(r.calls, t) + 1; t.id == "" || r.taken(t); n++ {
		t.id = fmt.Sprintf("call_%d_%d_%d", r.turn, r.step, n)
	}
	t.started, t.block = true, r.blocks
	r.blocks++
	return r.send(message.Chunk{Type: message.BlockStart, Index: t.block, BlockType: message.ToolCallBlock})
}

// taken reports whether an earlier call has the id of t.
func (r *reply) taken(t *toolCall) bool {
	return slices.ContainsFunc(r.calls, func(c *toolCall) bool { return c != t && c.started && c.id == t.id })
}

func (r *reply) callDelta(t *toolCall, args string) bool {
	t.args.WriteString(args)
	return r.send(message.Chunk{Type: message.ToolCallDelta, Index: t.block, ID: t.id, Name: t.name, Text: args})
}

// end closes what is open and says how the reply ended.
func (r *reply) end() {
	if !r.closeText() {
		return
	}
	calls := 0
	for _, t := range r.calls {
		if !t.started {
			if t.name == "" {
				continue // nothing is known of it
			}
			if !r.start(t) || !r.callDelta(t, "") {
				return
			}
		}
		if rest := t.joiner.Rest(); rest != "" && !r.callDelta(t, rest) {
			return
		}
		calls++
		b := message.ToolCall(t.id, t.name, t.args.String())
		if !r.send(message.Chunk{Type: message.BlockEnd, Index: t.block, Block: &b}) {
			return
		}
	}
	if r.usage != nil && !r.send(message.Chunk{Type: message.UsageChunk, Usage: r.usage}) {
		return
	}
	kind := message.Stop
	if calls > 0 {
		kind = message.ToolCalls
	}
	switch r.finish {
	case "length", "max_tokens":
		kind = message.MaxTokens
	case "content_filter":
		r.stop(r.c.fail("CONTENT_FILTER", "the reply was stopped by a content filter"))
		return
	case "error", "insufficient_system_resource":
		r.stop(r.c.fail(message.CodeServer, "the server gave up in the middle of the reply ("+r.finish+")"))
		return
	}
	if kind == message.Stop && r.blocks == 0 {
		r.stop(r.c.fail(message.CodeEmptyResponse, "answered with nothing"))
		return
	}
	r.send(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: kind}})
}

// parseUsage sorts the server's counts into the four classes; nil when v is no
// usage.
func parseUsage(v []byte) *message.Usage {
	count := func(obj []byte, name string) (int64, bool) {
		n, ok := jsonwire.Int(jsonwire.Get(obj, name))
		return n, ok && n >= 0
	}
	prompt, ok := count(v, "prompt_tokens")
	if !ok {
		return nil
	}
	u := &message.Usage{InputTokens: prompt}
	u.OutputTokens, _ = count(v, "completion_tokens")
	details := jsonwire.Get(v, "prompt_tokens_details")
	cached, ok := count(details, "cached_tokens")
	if !ok {
		cached, ok = count(v, "prompt_cache_hit_tokens")
	}
	if ok {
		cached = min(cached, u.InputTokens)
		u.InputTokens -= cached
		u.CacheReadTokens = &cached
	}
	if written, ok := count(details, "cache_write_tokens"); ok {
		written = min(written, u.InputTokens)
		u.InputTokens -= written
		u.CacheWriteTokens = &written
	}
	if reasoning, ok := count(jsonwire.Get(v, "completion_tokens_details"), "reasoning_tokens"); ok {
		if total, ok := count(v, "total_tokens"); ok && reasoning > 0 && total == prompt+u.OutputTokens+reasoning {
			u.OutputTokens += reasoning // counted beside the completion, not in it
		}
		u.ReasoningTokens = &reasoning
	}
	return u
}
