// Package message holds the types that an agent and a model exchange, and
// their JSON as session format version 0 stores it: messages made of blocks,
// the chunks of a stream, token usage, and why a reply ended. Only types and
// their JSON live here.
//
// Content that this version does not know is kept as the JSON text it came
// with (Raw) and written back unchanged. A string holds UTF-8; half of a
// surrogate pair, which a stream may split off, is held as its WTF-8 bytes.
package message

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Role says who speaks. A log holds only these two; the system prompt is part
// of the request header.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of the surface.
type Message struct {
	ID      string
	Role    Role
	Content []Block
	Source  Source
}

// BlockType names the kind of a content block.
type BlockType string

const (
	TextBlock       BlockType = "text"
	ReasoningBlock  BlockType = "reasoning"
	ImageBlock      BlockType = "image"
	ToolCallBlock   BlockType = "tool-call"
	ToolResultBlock BlockType = "tool-result"
)

// Block is one content block. Which fields count depends on Type:
// text and reasoning use Text; tool-call uses ID, Name and Arguments (the raw
// string from the model); tool-result uses ToolCallID, Content and IsError;
// image uses Attachment (a reference object, never bytes). A block that was
// decoded keeps its text in Raw and is written as that text.
type Block struct {
	Type       BlockType
	Text       string
	ID         string
	Name       string
	Arguments  string
	ToolCallID string
	Content    []Block
	IsError    bool
	Attachment json.RawMessage
	Raw        json.RawMessage
}

// Text makes a text block.
func Text(s string) Block { return Block{Type: TextBlock, Text: s} }

// Reasoning makes a reasoning block.
func Reasoning(s string) Block { return Block{Type: ReasoningBlock, Text: s} }

// ToolCall makes a tool-call block; arguments is the raw string of the model.
func ToolCall(id, name, arguments string) Block {
	return Block{Type: ToolCallBlock, ID: id, Name: name, Arguments: arguments}
}

// ToolResult makes a tool-result block.
func ToolResult(callID string, isError bool, content ...Block) Block {
	return Block{Type: ToolResultBlock, ToolCallID: callID, IsError: isError, Content: content}
}

// Source says who made a message. Kind decides which fields count: "user"
// (none), "model" (Provider, Model, ReplayState), "tool" (CallID), "plugin"
// (Plugin, Form, Summary, Sections, CompactionID, SourceCommandID), and
// "outcrop" (Form, Summary). A source that was decoded keeps its text in Raw
// and is written as that text.
type Source struct {
	Kind            string
	Plugin          string
	Provider        string
	Model           string
	ReplayState     json.RawMessage // opaque; replayed only to the same provider and model
	CallID          string
	Form            string
	Summary         string
	Sections        json.RawMessage
	CompactionID    string
	SourceCommandID string
	Raw             json.RawMessage
}

// FromUser is the source of what a person wrote.
var FromUser = Source{Kind: "user"}

// FromModel is the source of a reply.
func FromModel(provider, model string) Source {
	return Source{Kind: "model", Provider: provider, Model: model}
}

// FromTool is the source of a tool result.
func FromTool(callID string) Source { return Source{Kind: "tool", CallID: callID} }

// AppendJSON appends the message as JSON: an assistant message in the member
// order role, content, source, id, another one as content, source, role, id.
func (m Message) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	if m.Role == Assistant {
		dst = jsonwire.AppendStringMember(dst, "role", string(m.Role))
	}
	dst = AppendBlocks(jsonwire.AppendMember(dst, "content"), m.Content)
	dst = m.Source.AppendJSON(jsonwire.AppendMember(dst, "source"))
	if m.Role != Assistant {
		dst = jsonwire.AppendStringMember(dst, "role", string(m.Role))
	}
	dst = jsonwire.AppendStringMember(dst, "id", m.ID)
	return append(dst, '}')
}

// AppendBlocks appends a content array.
func AppendBlocks(dst []byte, blocks []Block) []byte {
	dst = append(dst, '[')
	for i := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = blocks[i].AppendJSON(dst)
	}
	return append(dst, ']')
}

// AppendJSON appends the block as JSON, or its Raw text when it has one.
func (b *Block) AppendJSON(dst []byte) []byte {
	if b.Raw != nil {
		return append(dst, b.Raw...)
	}
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "type", string(b.Type))
	switch b.Type {
	case ToolCallBlock:
		dst = jsonwire.AppendStringMember(dst, "id", b.ID)
		dst = jsonwire.AppendStringMember(dst, "name", b.Name)
		dst = jsonwire.AppendStringMember(dst, "arguments", b.Arguments)
	case ToolResultBlock:
		dst = jsonwire.AppendStringMember(dst, "toolCallId", b.ToolCallID)
		dst = AppendBlocks(jsonwire.AppendMember(dst, "content"), b.Content)
		dst = appendBool(jsonwire.AppendMember(dst, "isError"), b.IsError)
	case ImageBlock:
		att := b.Attachment
		if att == nil {
			att = json.RawMessage("null")
		}
		dst = jsonwire.AppendRawMember(dst, "attachment", att)
	default:
		dst = jsonwire.AppendStringMember(dst, "text", b.Text)
	}
	return append(dst, '}')
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

// AppendJSON appends the source as JSON, or its Raw text when it has one.
func (s *Source) AppendJSON(dst []byte) []byte {
	if s.Raw != nil {
		return append(dst, s.Raw...)
	}
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "kind", s.Kind)
	dst = appendText(dst, "plugin", s.Plugin)
	dst = appendText(dst, "provider", s.Provider)
	dst = appendText(dst, "model", s.Model)
	if s.ReplayState != nil {
		dst = jsonwire.AppendRawMember(dst, "replayState", s.ReplayState)
	}
	dst = appendText(dst, "callId", s.CallID)
	dst = appendText(dst, "form", s.Form)
	dst = appendText(dst, "summary", s.Summary)
	if s.Sections != nil {
		dst = jsonwire.AppendRawMember(dst, "sections", s.Sections)
	}
	dst = appendText(dst, "compactionId", s.CompactionID)
	dst = appendText(dst, "sourceCommandId", s.SourceCommandID)
	return append(dst, '}')
}

// appendText appends a string member unless it is empty.
func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return jsonwire.AppendStringMember(dst, name, value)
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// MarshalJSON implements json.Marshaler.
func (b Block) MarshalJSON() ([]byte, error) { return b.AppendJSON(nil), nil }

// MarshalJSON implements json.Marshaler.
func (s Source) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// Parse reads a message from its JSON text. Members of another type than
// expected are left empty: shape is the log's business (see the root package),
// not this package's. The error is one of syntax.
func Parse(raw []byte) (Message, error) {
	if err := jsonwire.Valid(raw); err != nil {
		return Message{}, err
	}
	return parse(raw), nil
}

func parse(raw []byte) (m Message) {
	for k, v := range jsonwire.Members(raw) {
		switch jsonwire.Key(k) {
		case "id":
			m.ID, _ = jsonwire.Text(v)
		case "role":
			s, _ := jsonwire.Text(v)
			m.Role = Role(s)
		case "content":
			m.Content = parseBlocks(v)
		case "source":
			m.Source = parseSource(v)
		}
	}
	return m
}

// ParseBlocks reads a content array.
func ParseBlocks(raw []byte) ([]Block, error) {
	if err := jsonwire.Valid(raw); err != nil {
		return nil, err
	}
	return parseBlocks(raw), nil
}

func parseBlocks(raw []byte) []Block {
	out := []Block{}
	for v := range jsonwire.Elements(raw) {
		out = append(out, parseBlock(v))
	}
	return out
}

func parseBlock(raw []byte) Block {
	b := Block{Raw: json.RawMessage(raw)}
	for k, v := range jsonwire.Members(raw) {
		switch jsonwire.Key(k) {
		case "type":
			s, _ := jsonwire.Text(v)
			b.Type = BlockType(s)
		case "text":
			b.Text, _ = jsonwire.Text(v)
		case "id":
			b.ID, _ = jsonwire.Text(v)
		case "name":
			b.Name, _ = jsonwire.Text(v)
		case "arguments":
			b.Arguments, _ = jsonwire.Text(v)
		case "toolCallId":
			b.ToolCallID, _ = jsonwire.Text(v)
		case "content":
			b.Content = parseBlocks(v)
		case "isError":
			b.IsError = string(v) == "true"
		case "attachment":
			b.Attachment = json.RawMessage(v)
		}
	}
	return b
}

func parseSource(raw []byte) Source {
	s := Source{Raw: json.RawMessage(raw)}
	for k, v := range jsonwire.Members(raw) {
		text, _ := jsonwire.Text(v)
		switch jsonwire.Key(k) {
		case "kind":
			s.Kind = text
		case "plugin":
			s.Plugin = text
		case "provider":
			s.Provider = text
		case "model":
			s.Model = text
		case "replayState":
			s.ReplayState = json.RawMessage(v)
		case "callId":
			s.CallID = text
		case "form":
			s.Form = text
		case "summary":
			s.Summary = text
		case "sections":
			s.Sections = json.RawMessage(v)
		case "compactionId":
			s.CompactionID = text
		case "sourceCommandId":
			s.SourceCommandID = text
		}
	}
	return s
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(b []byte) (err error) {
	*m, err = Parse(append([]byte(nil), b...))
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Block) UnmarshalJSON(raw []byte) error {
	if err := jsonwire.Valid(raw); err != nil {
		return err
	}
	*b = parseBlock(append([]byte(nil), raw...))
	return nil
}

// PlainText joins the text blocks of a content list, results included one
// level deep, with newlines between blocks.
func PlainText(blocks []Block) string {
	var out []byte
	for i := range blocks {
		t := ""
		switch blocks[i].Type {
		case TextBlock:
			t = blocks[i].Text
		case ToolResultBlock:
			t = PlainText(blocks[i].Content)
		}
		if t == "" {
			continue
		}
		if len(out) > 0 {
			out = append(out, '\n')
		}
		out = append(out, t...)
	}
	return string(out)
}
