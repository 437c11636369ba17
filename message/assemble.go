package message

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Assembler puts the chunks of one attempt together into a message's content.
// The zero value is ready.
//
// Blocks come in the order in which their index was first seen. block-end is
// authoritative: deltas and further ends after it are ignored. A block without
// an end is built from its deltas. The last usage and the last finish win; no
// finish counts as stop.
type Assembler struct {
	parts  []*part
	at     map[int]*part // by index, when there are many
	usage  *Usage
	finish Finish
	replay json.RawMessage
}

type part struct {
	index int
	typ   BlockType
	text  strings.Builder
	id    string
	name  string
	block *Block
}

// Add takes the next chunk.
func (a *Assembler) Add(c Chunk) {
	switch c.Type {
	case UsageChunk:
		a.usage = c.Usage
	case FinishChunk:
		a.finish = Finish{Kind: Stop}
		if c.Reason != nil {
			a.finish = *c.Reason
		}
		a.replay = c.ReplayState
	case BlockStart:
		a.part(c.Index, c.BlockType)
	case TextDelta:
		a.delta(c, TextBlock)
	case ReasoningDelta:
		a.delta(c, ReasoningBlock)
	case ToolCallDelta:
		p := a.delta(c, ToolCallBlock)
		if p.id == "" {
			p.id = c.ID
		}
		if p.name == "" {
			p.name = c.Name
		}
	case BlockEnd:
		if c.Block == nil {
			return
		}
		if p := a.part(c.Index, c.Block.Type); p.block == nil {
			b := *c.Block
			p.block = &b
		}
	}
}

func (a *Assembler) delta(c Chunk, typ BlockType) *part {
	p := a.part(c.Index, typ)
	if p.block == nil {
		p.text.WriteString(c.Text)
	}
	return p
}

func (a *Assembler) part(index int, typ BlockType) *part {
	// The pieces of a block come one after another.
	if n := len(a.parts); n > 0 && a.parts[n-1].index == index {
		return a.parts[n-1]
	}
	if p := a.find(index); p != nil {
		return p
	}
	p := &part{index: index, typ: typ}
	a.parts = append(a.parts, p)
	if a.at != nil {
		a.at[index] = p
	}
	return p
}

// fewParts is up to how many blocks are looked through one by one.
const fewParts = 16

func (a *Assembler) find(index int) *part {
	if len(a.parts) <= fewParts {
		for _, p := range a.parts {
			if p.index == index {
				return p
			}
		}
		return nil
	}
	if a.at == nil {
		a.at = make(map[int]*part, 2*fewParts)
		for _, p := range a.parts {
			a.at[p.index] = p
		}
	}
	return a.at[index]
}

func (p *part) done() Block {
	if p.block != nil {
		return *p.block
	}
	switch p.typ {
	case ToolCallBlock:
		id := p.id
		if id == "" {
			id = "call-" + strconv.Itoa(p.index)
		}
		return ToolCall(id, p.name, p.text.String())
	default:
		return Block{Type: p.typ, Text: p.text.String()}
	}
}

// Finish is how the reply ended; stop when no finish chunk came.
func (a *Assembler) Finish() Finish {
	if a.finish.Kind == "" {
		return Finish{Kind: Stop}
	}
	return a.finish
}

// Usage is the last usage that was reported, or nil.
func (a *Assembler) Usage() *Usage { return a.usage }

// Blocks is the content so far. After a max-tokens finish it has no tool
// calls: the last one may be cut off, and none of them is run.
func (a *Assembler) Blocks() []Block {
	out := []Block{}
	for _, p := range a.parts {
		if a.finish.Kind == MaxTokens && p.typ == ToolCallBlock {
			continue
		}
		out = append(out, p.done())
	}
	return out
}

// ReplayState is the finish chunk's opaque state when it fits the content: if
// it lists blocks, there must be one for each block; those of dropped tool
// calls are dropped with them. Otherwise nil.
func (a *Assembler) ReplayState() json.RawMessage {
	if a.replay == nil {
		return nil
	}
	list := jsonwire.Get(a.replay, "blocks")
	if jsonwire.Kind(list) != '[' {
		return a.replay
	}
	var states [][]byte
	for v := range jsonwire.Elements(list) {
		states = append(states, v)
	}
	if len(states) != len(a.parts) {
		return nil
	}
	if a.finish.Kind != MaxTokens {
		return a.replay
	}
	kept := []byte{'['}
	for i, p := range a.parts {
		if p.typ == ToolCallBlock {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, states[i]...)
	}
	kept = append(kept, ']')
	out := []byte{'{'}
	for k, v := range jsonwire.Members(a.replay) {
		if jsonwire.KeyIs(k, "blocks") {
			v = kept
		}
		out = jsonwire.AppendRawMember(out, string(k), v)
	}
	return append(out, '}')
}

// Visible is what a cancelled reply leaves: its text and reasoning blocks that
// are not blank, in order.
func (a *Assembler) Visible() []Block {
	out := []Block{}
	for _, p := range a.parts {
		if p.typ != TextBlock && p.typ != ReasoningBlock {
			continue
		}
		if b := p.done(); strings.TrimSpace(b.Text) != "" {
			out = append(out, b)
		}
	}
	return out
}
