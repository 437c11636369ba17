package outcrop

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// UserMessage is a message to the model: what a person wrote, or, in sessions
// that dsh must be able to read, what the program injected. Role and, when
// empty, ID are filled in.
type UserMessage struct{ message.Message }

// ContextMessage is what the program injects in own sessions: workspace
// instructions, runtime facts. Its source kind is never user.
type ContextMessage struct{ message.Message }

// AssistantMessage is a reply, put together from its chunks, which are its
// sources. Interrupted marks the visible part of a reply that was cancelled.
type AssistantMessage struct {
	Turn, Step  int
	Message     message.Message
	Usage       *message.Usage
	Interrupted bool
}

// ToolResult answers one tool call; its tool/call event is its source. Error
// is set for failures with a code. Meta is opaque.
type ToolResult struct {
	Turn, Step int
	Message    message.Message
	Error      *ToolError
	Meta       json.RawMessage
}

// ToolError is the coded failure of a tool call.
type ToolError struct{ Name, Code string }

// NewToolResult makes the result of a call with the message that the format
// wants: role user, source tool, one tool-result block.
func NewToolResult(turn, step int, callID string, isError bool, content ...message.Block) ToolResult {
	if content == nil {
		content = []message.Block{}
	}
	return ToolResult{Turn: turn, Step: step, Message: message.Message{
		Role: message.User, Source: message.FromTool(callID),
		Content: []message.Block{message.ToolResult(callID, isError, content...)},
	}}
}

func (UserMessage) EventType() Type      { return TypeUserMessage }
func (ContextMessage) EventType() Type   { return TypeContextMessage }
func (AssistantMessage) EventType() Type { return TypeAssistantMessage }
func (ToolResult) EventType() Type       { return TypeToolResult }

func (UserMessage) surfacePayload()      {}
func (ContextMessage) surfacePayload()   {}
func (AssistantMessage) surfacePayload() {}
func (ToolResult) surfacePayload()       {}

func (p UserMessage) appendData(dst []byte) []byte      { return p.Message.AppendJSON(dst) }
func (p ContextMessage) appendData(dst []byte) []byte   { return p.Message.AppendJSON(dst) }
func (p AssistantMessage) appendData(dst []byte) []byte { return p.appendWithID(dst, noID) }
func (p ToolResult) appendData(dst []byte) []byte       { return p.appendWithID(dst, noID) }

func noID() string { return "" }

func (p UserMessage) appendWithID(dst []byte, newID func() string) []byte {
	return appendMessage(dst, p.Message, message.User, newID)
}

func (p ContextMessage) appendWithID(dst []byte, newID func() string) []byte {
	return appendMessage(dst, p.Message, message.User, newID)
}

func (p AssistantMessage) appendWithID(dst []byte, newID func() string) []byte {
	dst = appendTurnStep(dst, p.Turn, p.Step)
	dst = append(dst, `,"message":`...)
	dst = appendMessage(dst, p.Message, message.Assistant, newID)
	if p.Interrupted {
		dst = append(dst, `,"interrupted":true`...)
	}
	if p.Usage != nil {
		dst = p.Usage.AppendJSON(jsonwire.AppendMember(dst, "usage"))
	}
	return append(dst, '}')
}

func (p ToolResult) appendWithID(dst []byte, newID func() string) []byte {
	dst = appendTurnStep(dst, p.Turn, p.Step)
	dst = append(dst, `,"message":`...)
	if p.Message.ID == "" {
		p.Message.ID = newID()
	}
	dst = appendResultMessage(dst, &p.Message)
	if p.Error != nil {
		dst = append(jsonwire.AppendMember(dst, "error"), '{')
		dst = jsonwire.AppendStringMember(dst, "name", p.Error.Name)
		dst = jsonwire.AppendStringMember(dst, "code", p.Error.Code)
		dst = append(dst, '}')
	}
	if p.Meta != nil {
		dst = jsonwire.AppendRawMember(dst, "meta", p.Meta)
	}
	return append(dst, '}')
}

// appendResultMessage writes a tool result's message in dsh's member order:
// source, content, role, id.
func appendResultMessage(dst []byte, m *message.Message) []byte {
	dst = append(dst, `{"source":`...)
	dst = m.Source.AppendJSON(dst)
	dst = message.AppendBlocks(jsonwire.AppendMember(dst, "content"), m.Content)
	dst = jsonwire.AppendStringMember(dst, "role", string(message.User))
	dst = jsonwire.AppendStringMember(dst, "id", m.ID)
	return append(dst, '}')
}

func appendMessage(dst []byte, m message.Message, role message.Role, newID func() string) []byte {
	if m.Role == "" {
		m.Role = role
	}
	if m.ID == "" {
		m.ID = newID()
	}
	return m.AppendJSON(dst)
}

func (p UserMessage) holdsRaw() bool      { return messageHoldsRaw(&p.Message) }
func (p ContextMessage) holdsRaw() bool   { return messageHoldsRaw(&p.Message) }
func (p AssistantMessage) holdsRaw() bool { return messageHoldsRaw(&p.Message) }
func (p ToolResult) holdsRaw() bool       { return p.Meta != nil || messageHoldsRaw(&p.Message) }
