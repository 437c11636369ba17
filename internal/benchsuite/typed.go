package benchsuite

import (
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// generated are events of the generator, a little more than n.
func generated(n int) []outcrop.Event { return slices.Collect(genlog.Events(1, n)) }

// typed is one event as a program would append it.
type typed struct {
	log     outcrop.LogPayload
	surface outcrop.SurfacePayload
	op      outcrop.SurfaceOp
	sources outcrop.Sources
}

func (t *typed) append(s *outcrop.Session) (err error) {
	if t.log != nil {
		_, err = s.Append(t.log)
	} else {
		_, err = s.AppendSurface(t.surface, t.op, t.sources)
	}
	return err
}

// typedOf decodes the events that genlog makes.
func typedOf(events []outcrop.Event) ([]typed, error) {
	all := make([]typed, len(events))
	for i, ev := range events {
		t := &all[i]
		t.op, t.sources = ev.Op, ev.Sources
		turn, step := number(ev, "turn"), number(ev, "step")
		var err error
		switch ev.Type {
		case outcrop.TypeTurnStart:
			t.log = outcrop.TurnStart{Turn: turn}
		case outcrop.TypeTurnEnd:
			t.log = outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}
		case outcrop.TypeStepStart:
			t.log = outcrop.StepStart{Turn: turn, Step: step}
		case outcrop.TypeStepEnd:
			t.log = outcrop.StepEnd{Turn: turn, Step: step}
		case outcrop.TypeRequestHeader:
			t.log = outcrop.RequestHeader{Header: jsonwire.Get(ev.Data, "header"), Reason: text(ev, "reason")}
		case outcrop.TypeRequestContext:
			t.log = outcrop.RequestContext{Provider: text(ev, "provider"), Model: text(ev, "model"), ContextWindow: int64(number(ev, "contextWindow"))}
		case outcrop.TypeToolCall:
			t.log = outcrop.ToolCall{Turn: turn, Step: step, CallID: text(ev, "callId"), Name: text(ev, "name"), Arguments: text(ev, "arguments")}
		case outcrop.TypeAssistantChunk:
			p := outcrop.AssistantChunk{Turn: turn, Step: step}
			p.Chunk, err = message.ParseChunk(jsonwire.Get(ev.Data, "chunk"))
			if p.Chunk.Block != nil {
				own([]message.Block{*p.Chunk.Block})
				p.Chunk.Block.Raw = nil
			}
			t.log = p
		case outcrop.TypeUserMessage:
			var p outcrop.UserMessage
			p.Message, err = ownMessage(ev.Data)
			t.surface = p
		case outcrop.TypeAssistantMessage:
			p := outcrop.AssistantMessage{Turn: turn, Step: step, Usage: message.ParseUsage(jsonwire.Get(ev.Data, "usage"))}
			p.Message, err = ownMessage(jsonwire.Get(ev.Data, "message"))
			t.surface = p
		case outcrop.TypeToolResult:
			p := outcrop.ToolResult{Turn: turn, Step: step}
			p.Message, err = ownMessage(jsonwire.Get(ev.Data, "message"))
			t.surface = p
		default:
			err = fmt.Errorf("no typed form of %s", ev.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	return all, nil
}

// ownMessage reads a message and forgets the text it came with, as if a program
// had made it: text from elsewhere is checked again when it is appended.
func ownMessage(raw []byte) (message.Message, error) {
	m, err := message.Parse(raw)
	m.Source.Raw = nil
	own(m.Content)
	return m, err
}

func own(blocks []message.Block) {
	for i := range blocks {
		blocks[i].Raw = nil
		own(blocks[i].Content)
	}
}

func number(ev outcrop.Event, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(ev.Data, name))
	return int(n)
}

func text(ev outcrop.Event, name string) string {
	s, _ := jsonwire.Text(jsonwire.Get(ev.Data, name))
	return s
}
