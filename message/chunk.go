package message

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// ChunkType names the kind of a stream chunk.
type ChunkType string

const (
	BlockStart     ChunkType = "block-start"
	TextDelta      ChunkType = "text-delta"
	ReasoningDelta ChunkType = "reasoning-delta"
	ToolCallDelta  ChunkType = "tool-call-delta"
	BlockEnd       ChunkType = "block-end"
	UsageChunk     ChunkType = "usage"
	FinishChunk    ChunkType = "finish"
)

// Chunk is one piece of a reply as it streams in. Which fields count depends
// on Type: block-start uses Index and BlockType; text-delta and
// reasoning-delta use Index and Text; tool-call-delta uses Index, ID, Name
// (absent when empty) and Text as argumentsDelta; block-end uses Index and
// Block; usage uses Usage; finish uses Reason and ReplayState.
type Chunk struct {
	Type        ChunkType
	Index       int
	BlockType   BlockType
	Text        string
	ID          string
	Name        string
	Block       *Block
	Usage       *Usage
	Reason      *Finish
	ReplayState json.RawMessage
}

// FinishKind says how a model call ended.
type FinishKind string

const (
	Stop      FinishKind = "stop"
	ToolCalls FinishKind = "tool-calls"
	MaxTokens FinishKind = "max-tokens"
	Aborted   FinishKind = "aborted" // carries a Failure
	Errored   FinishKind = "error"   // carries a Failure
)

// Finish is the reason of a finish chunk.
type Finish struct {
	Kind    FinishKind
	Failure *Failure
}

// Failure is what a provider's error is reduced to. Code is one of the Code
// constants or a provider's own; Status an HTTP status or 0; RetryAfterMs the
// wait that the provider asked for, in milliseconds, or 0.
type Failure struct {
	Message      string
	Code         string
	Status       int
	RetryAfterMs int64
	RequestID    string
}

// Failure codes that the loop acts on.
const (
	CodeAborted        = "ABORTED"
	CodeAuth           = "AUTH"
	CodeRateLimit      = "RATE_LIMIT"
	CodeServer         = "SERVER"
	CodeTimeout        = "TIMEOUT"
	CodeTransport      = "TRANSPORT"
	CodeEmptyResponse  = "EMPTY_RESPONSE"
	CodeInvalidRequest = "INVALID_REQUEST"
	CodeContextWindow  = "CONTEXT_WINDOW_EXCEEDED"
	CodeModelNotFound  = "MODEL_NOT_FOUND"
	CodeQuota          = "QUOTA"
	CodeUnknown        = "UNKNOWN"
)

func (f *Failure) Error() string { return f.Message }

// Usage counts tokens in four classes: InputTokens excludes what was read from
// or written to the cache; ReasoningTokens is a part of OutputTokens. A nil
// pointer means that the provider did not say.
type Usage struct {
	InputTokens      int64
	OutputTokens     int64
	CacheReadTokens  *int64
	CacheWriteTokens *int64
	ReasoningTokens  *int64
}

// AppendJSON appends the chunk as JSON.
func (c *Chunk) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, c.Type...)
	dst = append(dst, '"')
	switch c.Type {
	case BlockStart:
		dst = jsonwire.AppendIntMember(dst, "index", int64(c.Index))
		dst = jsonwire.AppendStringMember(dst, "blockType", string(c.BlockType))
	case TextDelta, ReasoningDelta:
		dst = append(dst, `,"index":`...)
		dst = jsonwire.AppendInt(dst, int64(c.Index))
		dst = append(dst, `,"text":`...)
		dst = jsonwire.AppendString(dst, c.Text)
	case ToolCallDelta:
		dst = append(dst, `,"index":`...)
		dst = jsonwire.AppendInt(dst, int64(c.Index))
		dst = append(dst, `,"id":`...)
		dst = jsonwire.AppendString(dst, c.ID)
		dst = appendText(dst, "name", c.Name)
		dst = append(dst, `,"argumentsDelta":`...)
		dst = jsonwire.AppendString(dst, c.Text)
	case BlockEnd:
		dst = jsonwire.AppendIntMember(dst, "index", int64(c.Index))
		if c.Block != nil {
			dst = c.Block.AppendJSON(jsonwire.AppendMember(dst, "block"))
		}
	case UsageChunk:
		if c.Usage != nil {
			dst = c.Usage.AppendJSON(jsonwire.AppendMember(dst, "usage"))
		}
	case FinishChunk:
		dst = c.Reason.AppendJSON(jsonwire.AppendMember(dst, "reason"))
		if c.ReplayState != nil {
			dst = jsonwire.AppendRawMember(dst, "replayState", c.ReplayState)
		}
	}
	return append(dst, '}')
}

// AppendJSON appends the finish reason as JSON.
func (f *Finish) AppendJSON(dst []byte) []byte {
	if f == nil {
		return append(dst, `{"kind":"stop"}`...)
	}
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "kind", string(f.Kind))
	if f.Failure != nil {
		dst = f.Failure.AppendJSON(jsonwire.AppendMember(dst, "failure"))
	}
	return append(dst, '}')
}

// AppendJSON appends the failure as JSON.
func (f *Failure) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "message", f.Message)
	code := f.Code
	if code == "" {
		code = CodeUnknown
	}
	dst = jsonwire.AppendStringMember(dst, "code", code)
	if f.Status != 0 {
		dst = jsonwire.AppendIntMember(dst, "status", int64(f.Status))
	}
	if f.RetryAfterMs > 0 {
		dst = jsonwire.AppendIntMember(dst, "providerRetryAfterMs", f.RetryAfterMs)
	}
	dst = appendText(dst, "requestId", f.RequestID)
	return append(dst, '}')
}

// AppendJSON appends the usage as JSON.
func (u *Usage) AppendJSON(dst []byte) []byte {
	if u == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	dst = jsonwire.AppendIntMember(dst, "inputTokens", u.InputTokens)
	dst = jsonwire.AppendIntMember(dst, "outputTokens", u.OutputTokens)
	for _, m := range [...]struct {
		name string
		n    *int64
	}{{"cacheReadTokens", u.CacheReadTokens}, {"cacheWriteTokens", u.CacheWriteTokens}, {"reasoningTokens", u.ReasoningTokens}} {
		if m.n != nil {
			dst = jsonwire.AppendIntMember(dst, m.name, *m.n)
		}
	}
	return append(dst, '}')
}

// ParseChunk reads a chunk from its JSON text. Members of another type than
// expected are left empty. The error is one of syntax.
func ParseChunk(raw []byte) (Chunk, error) {
	var c Chunk
	if err := jsonwire.Valid(raw); err != nil {
		return c, err
	}
	for k, v := range jsonwire.Members(raw) {
		switch jsonwire.Key(k) {
		case "type":
			s, _ := jsonwire.Text(v)
			c.Type = ChunkType(s)
		case "index":
			n, _ := jsonwire.Int(v)
			c.Index = int(n)
		case "blockType":
			s, _ := jsonwire.Text(v)
			c.BlockType = BlockType(s)
		case "text", "argumentsDelta":
			c.Text, _ = jsonwire.Text(v)
		case "id":
			c.ID, _ = jsonwire.Text(v)
		case "name":
			c.Name, _ = jsonwire.Text(v)
		case "block":
			b := parseBlock(v)
			c.Block = &b
		case "usage":
			c.Usage = ParseUsage(v)
		case "reason":
			c.Reason = parseFinish(v)
		case "replayState":
			c.ReplayState = json.RawMessage(v)
		}
	}
	return c, nil
}

func parseFinish(raw []byte) *Finish {
	f := &Finish{}
	for k, v := range jsonwire.Members(raw) {
		switch jsonwire.Key(k) {
		case "kind":
			s, _ := jsonwire.Text(v)
			f.Kind = FinishKind(s)
		case "failure":
			f.Failure = ParseFailure(v)
		}
	}
	return f
}

// ParseFailure reads a failure from JSON text that is known to be valid; nil
// when it is not an object.
func ParseFailure(raw []byte) *Failure {
	if jsonwire.Kind(raw) != '{' {
		return nil
	}
	f := &Failure{}
	for k, v := range jsonwire.Members(raw) {
		switch jsonwire.Key(k) {
		case "message":
			f.Message, _ = jsonwire.Text(v)
		case "code":
			f.Code, _ = jsonwire.Text(v)
		case "status":
			n, _ := jsonwire.Int(v)
			f.Status = int(n)
		case "providerRetryAfterMs":
			f.RetryAfterMs, _ = jsonwire.Int(v)
		case "requestId":
			f.RequestID, _ = jsonwire.Text(v)
		}
	}
	return f
}

// ParseUsage reads a usage object from JSON text that is known to be valid;
// nil when it is not an object.
func ParseUsage(raw []byte) *Usage {
	if jsonwire.Kind(raw) != '{' {
		return nil
	}
	u := &Usage{}
	for k, v := range jsonwire.Members(raw) {
		n, ok := jsonwire.Int(v)
		if !ok {
			continue
		}
		switch jsonwire.Key(k) {
		case "inputTokens":
			u.InputTokens = n
		case "outputTokens":
			u.OutputTokens = n
		case "cacheReadTokens":
			u.CacheReadTokens = &n
		case "cacheWriteTokens":
			u.CacheWriteTokens = &n
		case "reasoningTokens":
			u.ReasoningTokens = &n
		}
	}
	return u
}

// MarshalJSON implements json.Marshaler.
func (c Chunk) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil), nil }

// MarshalJSON implements json.Marshaler.
func (u Usage) MarshalJSON() ([]byte, error) { return u.AppendJSON(nil), nil }

// MarshalJSON implements json.Marshaler.
func (f Failure) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Chunk) UnmarshalJSON(b []byte) (err error) {
	*c, err = ParseChunk(append([]byte(nil), b...))
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *Usage) UnmarshalJSON(b []byte) error {
	if err := jsonwire.Valid(b); err != nil {
		return err
	}
	if p := ParseUsage(b); p != nil {
		*u = *p
	}
	return nil
}
