package outcrop

import (
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// TurnStart opens a turn. Turns count from 1 in a session, forks go on.
type TurnStart struct{ Turn int }

// TurnEnd closes a turn.
type TurnEnd struct {
	Turn   int
	Reason TurnReason
}

// TurnReason says why a turn ended. Abort goes with kind aborted, Error with
// kind error.
type TurnReason struct {
	Kind  ReasonKind
	Abort AbortReason
	Error *message.Failure
}

// ReasonKind is the kind of a TurnReason.
type ReasonKind string

const (
	Completed       ReasonKind = "completed"
	MaxTokens       ReasonKind = "max-tokens"
	TurnAborted     ReasonKind = "aborted"
	Blocked         ReasonKind = "blocked"
	TurnError       ReasonKind = "error"
	TurnInterrupted ReasonKind = "interrupted" // written by repair alone
)

// AbortReason says who aborted a turn: kind user, parent, disposed, or hook
// with the hook's reason.
type AbortReason struct {
	Kind   string
	Reason string
}

// StepStart opens a step: one model call and the tools that it asked for.
type StepStart struct{ Turn, Step int }

// StepEnd closes a step.
type StepEnd struct{ Turn, Step int }

// ToolCall says that a call is about to be dispatched. Arguments is the raw
// string from the model.
type ToolCall struct {
	Turn, Step int
	CallID     string
	Name       string
	Arguments  string
}

// AssistantChunk is one piece of a reply, as it came.
type AssistantChunk struct {
	Turn, Step int
	Chunk      message.Chunk
}

// InboxSpliced is one change of the inbox. Inserting has one message in
// Inserted; claiming has RemovedCount alone; Canceled marks a removal that was
// no claim.
type InboxSpliced struct {
	Target       InboxTarget
	Start        int
	RemovedCount int
	Inserted     []message.Message
	Canceled     bool
}

// InboxTarget names one of the two lists of the inbox.
type InboxTarget string

const (
	NextTurn InboxTarget = "next-turn"
	NextStep InboxTarget = "next-step"
)

// TodoWrite is the whole list of things to do; the last one counts.
type TodoWrite struct{ Todos []Todo }

// Todo is one thing to do; Status is pending, in_progress or completed.
type Todo struct{ Content, Status string }

func (TurnStart) EventType() Type      { return TypeTurnStart }
func (TurnEnd) EventType() Type        { return TypeTurnEnd }
func (StepStart) EventType() Type      { return TypeStepStart }
func (StepEnd) EventType() Type        { return TypeStepEnd }
func (ToolCall) EventType() Type       { return TypeToolCall }
func (AssistantChunk) EventType() Type { return TypeAssistantChunk }
func (InboxSpliced) EventType() Type   { return TypeInboxSpliced }
func (TodoWrite) EventType() Type      { return TypeTodoWrite }

func (TurnStart) logPayload()      {}
func (TurnEnd) logPayload()        {}
func (StepStart) logPayload()      {}
func (StepEnd) logPayload()        {}
func (ToolCall) logPayload()       {}
func (AssistantChunk) logPayload() {}
func (InboxSpliced) logPayload()   {}
func (TodoWrite) logPayload()      {}

func (p TurnStart) appendData(dst []byte) []byte {
	dst = append(dst, `{"turn":`...)
	dst = jsonwire.AppendInt(dst, int64(p.Turn))
	return append(dst, '}')
}

func (p TurnEnd) appendData(dst []byte) []byte {
	dst = append(dst, `{"turn":`...)
	dst = jsonwire.AppendInt(dst, int64(p.Turn))
	dst = append(dst, `,"reason":{`...)
	dst = jsonwire.AppendStringMember(dst, "kind", string(p.Reason.Kind))
	switch p.Reason.Kind {
	case TurnAborted:
		dst = append(jsonwire.AppendMember(dst, "reason"), '{')
		dst = jsonwire.AppendStringMember(dst, "kind", p.Reason.Abort.Kind)
		if p.Reason.Abort.Kind == "hook" {
			dst = jsonwire.AppendStringMember(dst, "reason", p.Reason.Abort.Reason)
		}
		dst = append(dst, '}')
	case TurnError:
		f := p.Reason.Error
		if f == nil {
			f = &message.Failure{Message: "unknown error", Code: message.CodeUnknown}
		}
		dst = f.AppendJSON(jsonwire.AppendMember(dst, "error"))
	}
	return append(dst, '}', '}')
}

func appendTurnStep(dst []byte, turn, step int) []byte {
	dst = append(dst, `{"turn":`...)
	dst = jsonwire.AppendInt(dst, int64(turn))
	dst = append(dst, `,"step":`...)
	return jsonwire.AppendInt(dst, int64(step))
}

func (p StepStart) appendData(dst []byte) []byte {
	return append(appendTurnStep(dst, p.Turn, p.Step), '}')
}
func (p StepEnd) appendData(dst []byte) []byte {
	return append(appendTurnStep(dst, p.Turn, p.Step), '}')
}

func (p ToolCall) appendData(dst []byte) []byte {
	dst = appendTurnStep(dst, p.Turn, p.Step)
	dst = jsonwire.AppendStringMember(dst, "callId", p.CallID)
	dst = jsonwire.AppendStringMember(dst, "name", p.Name)
	dst = jsonwire.AppendStringMember(dst, "arguments", p.Arguments)
	return append(dst, '}')
}

func (p AssistantChunk) appendData(dst []byte) []byte {
	dst = appendTurnStep(dst, p.Turn, p.Step)
	dst = append(dst, `,"chunk":`...)
	dst = p.Chunk.AppendJSON(dst)
	return append(dst, '}')
}

func (p AssistantChunk) holdsRaw() bool {
	return p.Chunk.ReplayState != nil || p.Chunk.Block != nil && blockHoldsRaw(p.Chunk.Block)
}

func (p InboxSpliced) appendData(dst []byte) []byte {
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "target", string(p.Target))
	dst = jsonwire.AppendIntMember(dst, "start", int64(p.Start))
	if p.RemovedCount > 0 {
		dst = jsonwire.AppendIntMember(dst, "removedCount", int64(p.RemovedCount))
	}
	dst = append(jsonwire.AppendMember(dst, "inserted"), '[')
	for i := range p.Inserted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.Inserted[i].AppendJSON(dst)
	}
	dst = append(dst, ']')
	if p.Canceled {
		dst = jsonwire.AppendStringMember(dst, "outcome", "canceled")
	}
	return append(dst, '}')
}

func (p InboxSpliced) holdsRaw() bool {
	for i := range p.Inserted {
		if messageHoldsRaw(&p.Inserted[i]) {
			return true
		}
	}
	return false
}

func (p TodoWrite) appendData(dst []byte) []byte {
	dst = append(dst, `{"todos":[`...)
	for i, t := range p.Todos {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		dst = jsonwire.AppendStringMember(dst, "content", t.Content)
		dst = jsonwire.AppendStringMember(dst, "status", t.Status)
		dst = append(dst, '}')
	}
	return append(dst, ']', '}')
}
