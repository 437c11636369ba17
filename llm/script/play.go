package script

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// player sends one reply.
type player struct {
	ctx    context.Context
	yield  func(message.Chunk, error) bool
	reply  *Reply
	piece  int
	turn   int
	step   int
	deltas int
}

func (p *player) play(price priced) {
	if p.ctx.Err() != nil {
		p.yield(message.Chunk{}, aborted())
		return
	}
	if p.reply.fails() && p.reply.After == 0 {
		p.fail()
		return
	}
	if p.reply.Chunks != nil {
		p.chunks()
		return
	}
	content := p.reply.content(p.turn, p.step)
	for i := range content {
		if !p.block(i, &content[i]) {
			return
		}
	}
	if p.reply.fails() {
		p.fail()
		return
	}
	if !p.send(message.Chunk{Type: message.UsageChunk, Usage: p.reply.usage(content, price)}) {
		return
	}
	p.send(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: p.reply.finish(content)}})
}

// chunks plays written chunks.
func (p *player) chunks() {
	for i := range p.reply.Chunks {
		c := p.reply.Chunks[i]
		if f := finishFailure(&c); f != nil {
			p.yield(message.Chunk{}, f)
			return
		}
		if !p.send(c) {
			return
		}
	}
	if p.reply.fails() {
		p.fail()
	}
}

// block sends one block: start, deltas, end.
func (p *player) block(index int, b *message.Block) bool {
	if !p.send(message.Chunk{Type: message.BlockStart, Index: index, BlockType: b.Type}) {
		return false
	}
	delta := message.Chunk{Index: index}
	text := b.Text
	switch b.Type {
	case message.TextBlock:
		delta.Type = message.TextDelta
	case message.ReasoningBlock:
		delta.Type = message.ReasoningDelta
	case message.ToolCallBlock:
		delta.Type, delta.ID, delta.Name = message.ToolCallDelta, b.ID, b.Name
		if text = b.Arguments; text == "" && !p.send(delta) {
			return false
		}
	default: // an image has no deltas
		text = ""
	}
	for text != "" {
		n := pieceEnd(text, p.piece)
		delta.Text, text = text[:n], text[n:]
		if !p.send(delta) {
			return false
		}
	}
	return p.send(message.Chunk{Type: message.BlockEnd, Index: index, Block: b})
}

// send yields one chunk; after the last delta before a failure, the failure.
func (p *player) send(c message.Chunk) bool {
	if p.ctx.Err() != nil {
		p.yield(message.Chunk{}, aborted())
		return false
	}
	if !p.yield(c, nil) {
		return false
	}
	switch c.Type {
	case message.TextDelta, message.ReasoningDelta, message.ToolCallDelta:
		p.deltas++
		if p.reply.fails() && p.deltas == p.reply.After {
			p.fail()
			return false
		}
	}
	return true
}

// fail ends the reply as its script says.
func (p *player) fail() {
	if p.reply.Cut == CutHang {
		<-p.ctx.Done()
	}
	f := p.reply.Error
	switch {
	case p.ctx.Err() != nil:
		f = aborted()
	case p.reply.Cut == CutEOF:
		f = &message.Failure{Code: message.CodeTransport, Message: Provider + ": the stream ended before the reply was complete"}
	case p.reply.Cut == CutReset:
		f = &message.Failure{Code: message.CodeTransport, Message: Provider + ": connection reset by peer"}
	}
	p.yield(message.Chunk{}, f)
}

func aborted() *message.Failure {
	return &message.Failure{Code: message.CodeAborted, Message: Provider + ": the call was cancelled"}
}

// finishFailure is the failure that a finish chunk carries, or nil.
func finishFailure(c *message.Chunk) *message.Failure {
	if c.Type != message.FinishChunk || c.Reason == nil || c.Reason.Kind != message.Errored && c.Reason.Kind != message.Aborted {
		return nil
	}
	if c.Reason.Failure != nil {
		return c.Reason.Failure
	}
	if c.Reason.Kind == message.Aborted {
		return aborted()
	}
	return &message.Failure{Code: message.CodeUnknown, Message: Provider + ": the reply ended in an error that has no description"}
}

func (r *Reply) fails() bool { return r.Error != nil || r.Cut != "" }

// content is the reply as blocks, with the ids that its calls have in this
// place.
func (r *Reply) content(turn, step int) []message.Block {
	var out []message.Block
	if r.Blocks != nil {
		out = append(out, r.Blocks...)
	} else {
		if r.Reasoning != "" {
			out = append(out, message.Reasoning(r.Reasoning))
		}
		if r.Text != "" {
			out = append(out, message.Text(r.Text))
		}
		for _, c := range r.Tools {
			out = append(out, message.ToolCall(c.ID, c.Name, c.Arguments))
		}
	}
	n := 0
	for i := range out {
		if b := out[i]; b.Type == message.ToolCallBlock {
			n++
			if b.ID == "" {
				out[i] = message.ToolCall(fmt.Sprintf("call_%d_%d_%d", turn, step, n), b.Name, b.Arguments)
			}
		}
	}
	return out
}

func (r *Reply) finish(content []message.Block) message.FinishKind {
	if r.Finish != "" {
		return r.Finish
	}
	for i := range content {
		if content[i].Type == message.ToolCallBlock {
			return message.ToolCalls
		}
	}
	return message.Stop
}

// usage is what the reply says, or the estimate.
func (r *Reply) usage(content []message.Block, price priced) *message.Usage {
	if r.Usage != nil {
		return r.Usage
	}
	var reasoning int64
	for i := range content {
		if content[i].Type == message.ReasoningBlock {
			reasoning += llm.EstimateBlocks(content[i : i+1])
		}
	}
	u := &message.Usage{
		InputTokens:     price.total - price.cached,
		OutputTokens:    llm.EstimateBlocks(content),
		CacheReadTokens: &price.cached,
	}
	if reasoning > 0 {
		u.ReasoningTokens = &reasoning
	}
	return u
}

// pieceEnd returns the length in bytes of the first n code points of s. Half
// of a surrogate pair, which is three bytes here, counts as one.
func pieceEnd(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		if size == 1 && s[i] == 0xed && i+2 < len(s) && s[i+1] >= 0xa0 && s[i+1] <= 0xbf && s[i+2]&0xc0 == 0x80 {
			size = 3
		}
		i += size
	}
	return i
}
