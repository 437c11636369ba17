package agent

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// runStep runs the step that enter has opened, and closes it.
func (t *turn) runStep() verdict {
	v := t.guarded(t.stepBody)
	_, err := t.a.s.Append(outcrop.StepEnd{Turn: t.n, Step: t.step})
	if err := t.a.closed(err); err != nil {
		return t.failed(err)
	}
	return v
}

// stepBody is one model call, with its attempts, and the calls it asks for.
func (t *turn) stepBody() verdict {
	rep, v, ok := t.ask()
	if !ok {
		return v
	}
	blocks, calls := uniqueCalls(t.n, t.step, rep.asm.Blocks())
	m := message.Message{Role: message.Assistant, Content: blocks, Source: t.a.modelSource()}
	m.Source.ReplayState = rep.asm.ReplayState()
	_, err := t.a.s.AppendSurface(outcrop.AssistantMessage{
		Turn: t.n, Step: t.step, Message: m, Usage: rep.asm.Usage(),
	}, outcrop.Tail, outcrop.SourcesOf(rep.chunks...))
	if err != nil {
		return t.failed(err)
	}
	switch {
	case len(calls) > 0:
		return t.runCalls(calls)
	case rep.asm.Finish().Kind == message.MaxTokens:
		return verdict{kind: turnMayEnd, reason: outcrop.TurnReason{Kind: outcrop.MaxTokens}}
	}
	return verdict{kind: turnMayEnd, reason: outcrop.TurnReason{Kind: outcrop.Completed}}
}

func (a *Agent) modelSource() message.Source {
	return message.FromModel(a.o.Config.Provider, a.o.Config.Model)
}

// keepVisible records what a person could see of a reply that was cancelled.
// Calls in it were never asked for.
func (t *turn) keepVisible(rep *reply) {
	blocks := rep.asm.Visible()
	if len(blocks) == 0 {
		return
	}
	_, err := t.a.s.AppendSurface(outcrop.AssistantMessage{
		Turn: t.n, Step: t.step, Interrupted: true, Usage: rep.asm.Usage(),
		Message: message.Message{Role: message.Assistant, Content: blocks, Source: t.a.modelSource()},
	}, outcrop.Tail, outcrop.SourcesOf(rep.chunks...))
	if err != nil {
		t.a.log.Warn("the visible part of the cancelled reply was refused", "turn", t.n, "step", t.step, "err", err)
	}
}
