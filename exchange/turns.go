package exchange

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// What the model reads in place of a result that the history lacks.
const noResultText = "No result of this tool call was recorded in the history that this session was imported from. " +
	"It may have finished, partly finished, or not happened at all. Check before you repeat it."

// pending is the number of calls without a result.
func (b *Builder) pending() int {
	n := 0
	for i := range b.calls {
		if !b.calls[i].done {
			n++
		}
	}
	return n
}

// openStep makes sure that a step is open.
func (b *Builder) openStep() error {
	if b.turn == 0 {
		b.turns++
		b.turn, b.started, b.maxTokens = b.turns, false, false
		if err := b.log(outcrop.TurnStart{Turn: b.turn}); err != nil {
			return err
		}
		b.step = 0
	}
	if !b.inStep || b.replied {
		return b.nextStep()
	}
	return nil
}

// nextStep ends the open step, when there is one, and begins another.
func (b *Builder) nextStep() error {
	if err := b.endStep(); err != nil {
		return err
	}
	b.step++
	b.inStep, b.replied, b.calls = true, false, nil
	return b.log(outcrop.StepStart{Turn: b.turn, Step: b.step})
}

// endStep closes the open step.
func (b *Builder) endStep() error {
	if !b.inStep {
		return b.err
	}
	b.inStep = false
	return b.log(outcrop.StepEnd{Turn: b.turn, Step: b.step})
}

// settle gives each call without a result one that says so, and adds the
// messages that waited.
func (b *Builder) settle() error {
	if b.pending() == 0 {
		return nil
	}
	lost := b.held != nil
	for i := range b.calls {
		c := &b.calls[i]
		if c.done {
			continue
		}
		c.done = true
		b.Mapped("call without a result", "an error result that says so")
		r := outcrop.NewToolResult(b.turn, b.step, c.as, true, message.Text(noResultText))
		r.Error = &outcrop.ToolError{Name: "ToolOutcomeUnknownError", Code: "TOOL_OUTCOME_UNKNOWN"}
		if err := b.place(r, "", outcrop.SourcesOf(c.seq)); err != nil {
			return err
		}
	}
	if lost {
		// Somebody went on without waiting for the results.
		return b.release(false)
	}
	return nil
}

// Result adds the result of a call. One that answers no call is kept as text.
func (b *Builder) Result(r Result) error {
	if err := b.item(r.Time); err != nil {
		return err
	}
	for i := range b.calls {
		c := &b.calls[i]
		if c.done || c.id != r.CallID {
			continue
		}
		c.done = true
		p := outcrop.NewToolResult(b.turn, b.step, c.as, r.IsError, r.Content...)
		p.Message.ID, p.Meta = r.ID, r.Meta
		if err := b.place(p, r.ID, outcrop.SourcesOf(c.seq)); err != nil {
			return err
		}
		b.report.Kept("result")
		if b.pending() == 0 {
			return b.release(true)
		}
		return nil
	}
	b.Mapped("result without a call", "a context message with its text")
	content := append([]message.Block{message.Text(fmt.Sprintf("The result of tool call %q, which came too late or has no call in this history:", r.CallID))}, r.Content...)
	c := Context{ID: r.ID, Content: content}
	if b.pending() > 0 {
		b.held = append(b.held, waiting{context: &c, line: b.line})
		return nil
	}
	return b.contextMessage(&c)
}

// EndTurn closes the open turn, when there is one, with a reason.
func (b *Builder) EndTurn(time int64, reason outcrop.TurnReason) error {
	if b.turn == 0 {
		return b.err
	}
	if err := b.item(time); err != nil {
		return err
	}
	return b.closeTurn(&reason)
}

// closeTurn closes the open turn. Without a reason it is completed when its
// last reply asked for nothing more.
func (b *Builder) closeTurn(reason *outcrop.TurnReason) error {
	if b.turn == 0 {
		return b.err
	}
	open := b.pending() > 0
	if err := b.settle(); err != nil {
		return err
	}
	if b.turn == 0 {
		return b.err
	}
	if reason == nil {
		reason = &outcrop.TurnReason{Kind: outcrop.TurnInterrupted}
		switch {
		case open || !b.replied || len(b.calls) > 0:
		case b.maxTokens:
			reason.Kind = outcrop.MaxTokens
		default:
			reason.Kind = outcrop.Completed
		}
	}
	if err := b.endStep(); err != nil {
		return err
	}
	n := b.turn
	b.turn, b.step, b.started, b.replied, b.calls = 0, 0, false, false, nil
	return b.log(outcrop.TurnEnd{Turn: n, Reason: *reason})
}

// end closes what is open and sets the mark of an import.
func (b *Builder) end(mark []byte) error {
	if err := b.closeTurn(nil); err != nil {
		return err
	}
	return b.log(outcrop.RawPayload{Type: outcrop.TypeOutcropImport, Data: mark, Ignorable: true})
}

// finish ends the log, with a mark when something came since the last one.
func (b *Builder) finish(s *Session) error {
	if b.err != nil {
		return b.err
	}
	if len(b.cuts) > 0 {
		// Feed ended where an earlier import did, perhaps not the last one, or
		// before.
		c := b.cuts[0]
		if c.items == b.items {
			b.cuts = nil
			return b.end(c.data)
		}
		return nil // not the history that it was: the logs differ
	}
	if err := b.closeTurn(nil); err != nil {
		return err
	}
	m := outcrop.OutcropImport{Program: s.Program, Version: s.Version, Source: s.Source, Items: b.items, Mapped: b.mapped, Dropped: b.dropped}
	if s.Extent != nil {
		m.Bytes, m.Digest = s.Extent()
	}
	return b.log(m)
}

// request logs header and context when they are not what they were.
func (b *Builder) request(provider, model string) error {
	cfg := llm.Config{Provider: provider, Model: model, ReasoningEffort: b.model.Effort}
	header := llm.HeaderJSON(cfg, b.model.System, b.model.Tools)
	if string(header) != b.header {
		reason := "change"
		if b.header == "" {
			reason = "initial"
		}
		b.header = string(header)
		if err := b.log(outcrop.RequestHeader{Header: header, Reason: reason}); err != nil {
			return err
		}
	}
	c := outcrop.RequestContext{Provider: provider, Model: model, ContextWindow: max(b.model.Window, 0)}
	if c != b.context {
		b.context = c
		return b.log(c)
	}
	return nil
}

// callsOf finds the calls of a reply. An id that is empty or stands twice would
// make the pairs ambiguous and gets a form of its own.
func (b *Builder) callsOf(content []message.Block) ([]message.Block, []call) {
	var calls []call
	changed := false
	for i := range content {
		if content[i].Type != message.ToolCallBlock {
			continue
		}
		c := call{id: content[i].ID, as: content[i].ID, name: content[i].Name, at: i}
		if c.as == "" {
			c.as = fmt.Sprintf("call-%d-%d", b.enc.Len(), i)
		}
		for n := 2; taken(calls, c.as); n++ {
			c.as = fmt.Sprintf("%s-%d", content[i].ID, n)
		}
		name := c.name
		if name == "" {
			name = "unknown"
		}
		if c.as != c.id || name != c.name {
			if !changed {
				content, changed = append([]message.Block(nil), content...), true
			}
			b.Mapped("call with an empty or repeated id or name", "one of its own")
			content[i] = message.ToolCall(c.as, name, content[i].Arguments)
			c.name = name
		}
		calls = append(calls, c)
	}
	return content, calls
}

func taken(calls []call, id string) bool {
	for i := range calls {
		if calls[i].as == id {
			return true
		}
	}
	return false
}

func (c *call) arguments(content []message.Block) string { return content[c.at].Arguments }
