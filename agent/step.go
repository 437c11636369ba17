package agent

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// runStep runs the step that enter has opened, and closes it.
func (t *turn) runStep() verdict {
	v := t.guarded(t.stepBody)
	_, err := t.a.s.Append(outcrop.StepEnd{Turn: t.n, Step: t.step})
	if err := t.a.written(err); err != nil {
		return t.failed(err)
	}
	return v
}

// stepBody is one model call, with its attempts, and the calls it asks for.
//
// A reply that was cut off at the output limit has no calls: even one that
// looks complete may lack the half that would have changed its meaning, so none
// of them is run, and none is in the message, where each would need a result.
// The model is told nothing about them; it sees that its own text ends. Calls
// that were cut off by other means, in a reply that claims to be complete, are
// in the message, and the registry answers them: nothing was run.
func (t *turn) stepBody() verdict {
	rep, v, ok := t.ask()
	if !ok {
		return v
	}
	blocks, calls := uniqueCalls(t.n, t.step, rep.asm.Blocks())
	m := message.Message{Role: message.Assistant, Content: blocks, Source: t.modelSource()}
	m.Source.ReplayState = rep.asm.ReplayState()
	_, err := t.a.s.AppendSurface(outcrop.AssistantMessage{
		Turn: t.n, Step: t.step, Message: m, Usage: rep.asm.Usage(),
	}, outcrop.Tail, outcrop.SourcesOf(rep.chunks...))
	if err != nil {
		return t.failed(err)
	}
	if rep.asm.Finish().Kind == message.MaxTokens {
		t.result = outcrop.MaxTokens
	}
	if len(calls) == 0 {
		return verdict{kind: turnMayEnd}
	}
	return t.runCalls(calls)
}

func (t *turn) modelSource() message.Source {
	return message.FromModel(t.model.Config.Provider, t.model.Config.Model)
}

// keepVisible records what a person could see of a reply that was cancelled.
// Calls in it were never asked for, and what a failed attempt said is gone.
func (t *turn) keepVisible(rep *reply) {
	blocks := rep.asm.Visible()
	if len(blocks) == 0 || rep.ended {
		return
	}
	_, err := t.a.s.AppendSurface(outcrop.AssistantMessage{
		Turn: t.n, Step: t.step, Interrupted: true, Usage: rep.asm.Usage(),
		Message: message.Message{Role: message.Assistant, Content: blocks, Source: t.modelSource()},
	}, outcrop.Tail, outcrop.SourcesOf(rep.chunks...))
	if err != nil {
		t.a.log.Warn("the visible part of the cancelled reply was refused", "turn", t.n, "step", t.step, "err", err)
	}
}
