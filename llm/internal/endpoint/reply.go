package endpoint

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// MaxReply bounds one reply, in bytes and deltaCost a chunk: a model that does
// not end would fill memory and the log, whose lines have a limit too. It is
// far above what any model gives, half a million tokens.
const MaxReply = 32 << 20

// MaxCalls bounds the calls of one reply.
const MaxCalls = 1000

// MaxBlocks bounds the blocks of one reply.
const MaxBlocks = 2 * MaxCalls

const deltaCost = 64

// Reply hands the pieces of a reply on. Each method returns false when nothing
// more may be handed on, because the sequence has ended.
type Reply struct {
	*Call
	Blocks int // that were started
	Most   int // bytes of the reply, MaxReply at first

	yield func(message.Chunk, error) bool
	size  int
}

// Reply begins the reply of a call.
func (c *Call) Reply(yield func(message.Chunk, error) bool) Reply {
	return Reply{Call: c, Most: MaxReply, yield: yield}
}

// Stop ends the sequence with a failure.
func (r *Reply) Stop(f *message.Failure) bool {
	r.yield(message.Chunk{}, f)
	return false
}

// Send yields a chunk.
func (r *Reply) Send(c message.Chunk) bool {
	if err := r.caller.Err(); err != nil {
		return r.Stop(r.Broken(err))
	}
	if c.Type != message.BlockEnd && !r.Keep(len(c.Text)+deltaCost) {
		return false
	}
	return r.yield(c, nil)
}

// Keep counts bytes that a reply makes us keep beside its chunks.
func (r *Reply) Keep(n int) bool {
	if r.size += n; r.size > r.Most {
		return r.Stop(r.Fail(llm.CodeMalformed, fmt.Sprintf("sent a reply over %d MiB", r.Most>>20)))
	}
	return true
}

// Block is one block of a reply while it comes in. Text that was split inside a
// surrogate pair is joined again.
type Block struct {
	Index int
	Type  message.BlockType
	ID    string // of a call
	Name  string // of a call
	Text  strings.Builder

	joiner llm.Joiner
}

// Start starts a block.
func (r *Reply) Start(b *Block) bool {
	if b.Index = r.Blocks; b.Index >= MaxBlocks {
		return r.Stop(r.Fail(llm.CodeMalformed, fmt.Sprintf("began more than %d blocks in one reply", MaxBlocks)))
	}
	r.Blocks++
	return r.Send(message.Chunk{Type: message.BlockStart, Index: b.Index, BlockType: b.Type})
}

// Add takes the next piece of a block's text or arguments. A call hears of each
// piece, an empty one too, since its deltas name it.
func (r *Reply) Add(b *Block, s string) bool {
	if s = b.joiner.Add(s); s == "" && b.Type != message.ToolCallBlock {
		return true
	}
	return r.delta(b, s)
}

func (r *Reply) delta(b *Block, s string) bool {
	b.Text.WriteString(s)
	c := message.Chunk{Type: message.TextDelta, Index: b.Index, Text: s}
	switch b.Type {
	case message.ReasoningBlock:
		c.Type = message.ReasoningDelta
	case message.ToolCallBlock:
		c.Type, c.ID, c.Name = message.ToolCallDelta, b.ID, b.Name
	}
	return r.Send(c)
}

// End ends a block.
func (r *Reply) End(b *Block) bool {
	if rest := b.joiner.Rest(); rest != "" && !r.delta(b, rest) {
		return false
	}
	end := message.Block{Type: b.Type, Text: b.Text.String()}
	if b.Type == message.ToolCallBlock {
		end = message.ToolCall(b.ID, b.Name, b.Text.String())
	}
	return r.Send(message.Chunk{Type: message.BlockEnd, Index: b.Index, Block: &end})
}

// Finish sends usage and the end of the reply. A stop without any block is a
// failure.
func (r *Reply) Finish(u *message.Usage, kind message.FinishKind, replayState []byte) bool {
	if u != nil && !r.Send(message.Chunk{Type: message.UsageChunk, Usage: u}) {
		return false
	}
	if kind == message.Stop && r.Blocks == 0 {
		return r.Stop(r.Fail(message.CodeEmptyResponse, "answered with nothing"))
	}
	return r.Send(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: kind}, ReplayState: replayState})
}

// Format is how a provider takes events.
type Format interface {
	// Event takes the data of one event; false: the sequence has ended.
	Event(data []byte) bool
	// Done is asked at the end of the stream, or at [DONE] (marked): when the
	// reply is complete it ends the sequence and returns true.
	Done(marked bool) bool
	// Seen reports whether an event came that belongs to the API.
	Seen() bool
}

// Stream reads events to their end.
func (r *Reply) Stream(body io.Reader, f Format) {
	ev := NewEvents(body)
	for {
		data, err := ev.Read()
		switch {
		case err == nil && bytes.Equal(bytes.TrimSpace(data), Done):
			if !f.Done(true) {
				r.Stop(r.Fail(message.CodeTransport, textCut))
			}
			return
		case err == nil:
			if ev.Ended && jsonwire.Valid(data) != nil {
				break // the stream broke off inside this event
			}
			if jsonwire.Valid(data) != nil || jsonwire.Kind(data) != '{' {
				r.Stop(r.Fail(llm.CodeMalformed, "sent an event that is not a JSON object"))
				return
			}
			if !f.Event(data) {
				return
			}
			continue
		case err == ErrTooLong:
			r.Stop(r.Fail(llm.CodeMalformed, "sent an event over 16 MiB"))
			return
		case r.Cancelled():
			r.Stop(r.Broken(err))
			return
		}
		switch {
		case f.Done(false): // all that was missing is the mark of the end
		case err != nil && err != io.EOF:
			r.Stop(r.Broken(err))
		case !f.Seen() && ev.Other:
			r.Stop(r.Fail(llm.CodeMalformed, "answered with something that is no event stream: "+r.Hint))
		default:
			r.Stop(r.Fail(message.CodeTransport, textCut))
		}
		return
	}
}

const textCut = "the stream ended before the reply was complete"
