package outcrop

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// RequestHeader is everything of a request but its messages: always a full
// snapshot. Header is the JSON object {config, adapterDefaults?, system?,
// tools?}; reason is initial, resume or change.
type RequestHeader struct {
	Header json.RawMessage
	Reason string
}

// RequestContext says which model answers and how much fits into it, in
// tokens; 0 is unknown.
type RequestContext struct {
	Provider      string
	Model         string
	ContextWindow int64
}

// CompactionStart opens a compaction bracket. Turn is the open turn, or nil
// for one by hand between turns.
type CompactionStart struct {
	CompactionID    string
	SourceCommandID string
	Turn            *int
}

// CompactionSummary is what the range was condensed to. Its replacement, a
// user/message with the checkpoint, follows at once.
type CompactionSummary struct {
	CompactionID       string
	SourceCommandID    string
	Summary            []message.Block
	RawOutput          []message.Block // nil: absent
	LLMStreamCall      bool            // the summary came from exactly one model call; needs RawOutput
	Shadowed           []Seq           // not empty, in model order
	ShadowedTokenCount int64
	Provider           string
	Model              string
	MaxTokens          int64 // 0: absent
	Usage              *message.Usage
	Level              int // 0: absent; height in the layers of checkpoints
}

// CompactionEnd closes the bracket. Error is why it failed, or "".
type CompactionEnd struct {
	CompactionID    string
	SourceCommandID string
	Turn            *int
	Error           string
}

// CompactionPrune announces that one tool result gets shorter content. The
// replacement, a tool/result, follows at once.
type CompactionPrune struct {
	Shadowed           []Seq
	ShadowedTokenCount int64
}

// LLMRetry says that a failed attempt will be repeated after DelayMs.
type LLMRetry struct {
	RetryID    string
	Turn, Step int
	Provider   string
	PolicyKey  string
	Retry      int // from 1
	MaxRetries int
	DelayMs    int64
	Failure    *message.Failure
}

// LLMRetryStarted says that the wait is over and the attempt begins.
type LLMRetryStarted struct {
	RetryID    string
	Turn, Step int
	Retry      int
}

// ApprovalAsked says that a person is asked about a call.
type ApprovalAsked struct{ ID, ToolName, CallID, Reason string }

// ApprovalDecided is the answer: allowed-once, rejected, cancelled or
// unavailable.
type ApprovalDecided struct{ ID, Outcome string }

// ApprovalPolicy says whether calls are asked about: ask or never.
type ApprovalPolicy struct{ Policy string }

// CommandRun says that a command of the program was run.
type CommandRun struct {
	CommandID string
	Name      string
	Args      string
	Source    string
}

// CommandDone is how it ended: kind success or error. SourceEventSeq names the
// event that holds the outcome, or is nil.
type CommandDone struct {
	CommandID      string
	Kind           string
	Text           string
	SourceEventSeq *Seq
}

// SessionTitle is a title; the last one counts.
type SessionTitle struct {
	Title       string
	MessageSeqs []Seq
	Source      string
}

func (RequestHeader) EventType() Type     { return TypeRequestHeader }
func (RequestContext) EventType() Type    { return TypeRequestContext }
func (CompactionStart) EventType() Type   { return TypeCompactionStart }
func (CompactionSummary) EventType() Type { return TypeCompactionSummary }
func (CompactionEnd) EventType() Type     { return TypeCompactionEnd }
func (CompactionPrune) EventType() Type   { return TypeCompactionPrune }
func (LLMRetry) EventType() Type          { return TypeLLMRetry }
func (LLMRetryStarted) EventType() Type   { return TypeLLMRetryStarted }
func (ApprovalAsked) EventType() Type     { return TypeApprovalAsked }
func (ApprovalDecided) EventType() Type   { return TypeApprovalDecided }
func (ApprovalPolicy) EventType() Type    { return TypeApprovalPolicy }
func (CommandRun) EventType() Type        { return TypeCommandRun }
func (CommandDone) EventType() Type       { return TypeCommandDone }
func (SessionTitle) EventType() Type      { return TypeSessionTitle }

func (RequestHeader) logPayload()     {}
func (RequestContext) logPayload()    {}
func (CompactionStart) logPayload()   {}
func (CompactionSummary) logPayload() {}
func (CompactionEnd) logPayload()     {}
func (CompactionPrune) logPayload()   {}
func (LLMRetry) logPayload()          {}
func (LLMRetryStarted) logPayload()   {}
func (ApprovalAsked) logPayload()     {}
func (ApprovalDecided) logPayload()   {}
func (ApprovalPolicy) logPayload()    {}
func (CommandRun) logPayload()        {}
func (CommandDone) logPayload()       {}
func (SessionTitle) logPayload()      {}

// object writes members one after another; empty optional ones are left out.
type object []byte

func newObject(dst []byte) *object { o := object(append(dst, '{')); return &o }

func (o *object) text(name, v string) *object {
	*o = jsonwire.AppendStringMember(*o, name, v)
	return o
}

func (o *object) optText(name, v string) *object {
	if v != "" {
		o.text(name, v)
	}
	return o
}

func (o *object) int(name string, v int64) *object {
	*o = jsonwire.AppendIntMember(*o, name, v)
	return o
}

func (o *object) optInt(name string, v int64) *object {
	if v != 0 {
		o.int(name, v)
	}
	return o
}

func (o *object) raw(name string, v []byte) *object {
	*o = jsonwire.AppendRawMember(*o, name, v)
	return o
}

func (o *object) bool(name string, v bool) *object {
	if v {
		return o.raw(name, []byte("true"))
	}
	return o.raw(name, []byte("false"))
}

func (o *object) seqs(name string, v []Seq) *object {
	return o.raw(name, SourcesOf(v...).text)
}

func (o *object) turn(turn *int) *object {
	if turn == nil {
		return o.raw("turn", []byte("null"))
	}
	return o.int("turn", int64(*turn))
}

func (o *object) shadowed(seqs []Seq, tokens int64) *object {
	if len(seqs) > 0 {
		r := newObject(nil).int("start", int64(seqs[0])).int("end", int64(seqs[len(seqs)-1])).end()
		o.raw("shadowedRange", r)
	}
	return o.seqs("shadowedSeqs", seqs).int("shadowedTokenCount", tokens)
}

func (o *object) end() []byte { return append(*o, '}') }

func (p RequestHeader) appendData(dst []byte) []byte {
	return newObject(dst).raw("header", p.Header).text("reason", p.Reason).end()
}

func (RequestHeader) holdsRaw() bool { return true }

func (p RequestContext) appendData(dst []byte) []byte {
	return newObject(dst).text("provider", p.Provider).text("model", p.Model).optInt("contextWindow", p.ContextWindow).end()
}

func (p CompactionStart) appendData(dst []byte) []byte {
	return newObject(dst).text("compactionId", p.CompactionID).optText("sourceCommandId", p.SourceCommandID).turn(p.Turn).end()
}

func (p CompactionSummary) appendData(dst []byte) []byte {
	o := newObject(dst).text("compactionId", p.CompactionID).optText("sourceCommandId", p.SourceCommandID)
	o.raw("summary", message.AppendBlocks(nil, p.Summary))
	if p.RawOutput != nil {
		o.raw("rawOutput", message.AppendBlocks(nil, p.RawOutput))
		if p.LLMStreamCall {
			o.bool("llmStreamCall", true)
		}
	}
	o.shadowed(p.Shadowed, p.ShadowedTokenCount)
	o.text("provider", p.Provider).text("model", p.Model).optInt("maxTokens", p.MaxTokens)
	if p.Usage != nil {
		o.raw("usage", p.Usage.AppendJSON(nil))
	}
	return o.optInt("level", int64(p.Level)).end()
}

func (p CompactionSummary) holdsRaw() bool {
	m := message.Message{Content: append(append([]message.Block(nil), p.Summary...), p.RawOutput...)}
	return messageHoldsRaw(&m)
}

func (p CompactionEnd) appendData(dst []byte) []byte {
	return newObject(dst).text("compactionId", p.CompactionID).optText("sourceCommandId", p.SourceCommandID).
		turn(p.Turn).optText("error", p.Error).end()
}

func (p CompactionPrune) appendData(dst []byte) []byte {
	return newObject(dst).shadowed(p.Shadowed, p.ShadowedTokenCount).end()
}

func (p LLMRetry) appendData(dst []byte) []byte {
	o := newObject(dst).text("retryId", p.RetryID).int("turn", int64(p.Turn)).int("step", int64(p.Step)).
		text("provider", p.Provider).text("mode", "normal").text("policyKey", p.PolicyKey).
		int("retry", int64(p.Retry)).int("maxRetries", int64(p.MaxRetries)).int("delayMs", p.DelayMs)
	if p.Failure != nil {
		o.raw("failure", p.Failure.AppendJSON(nil))
	}
	return o.end()
}

func (p LLMRetryStarted) appendData(dst []byte) []byte {
	return newObject(dst).text("retryId", p.RetryID).int("turn", int64(p.Turn)).int("step", int64(p.Step)).int("retry", int64(p.Retry)).end()
}

func (p ApprovalAsked) appendData(dst []byte) []byte {
	return newObject(dst).text("id", p.ID).text("toolName", p.ToolName).optText("callId", p.CallID).optText("reason", p.Reason).end()
}

func (p ApprovalDecided) appendData(dst []byte) []byte {
	return newObject(dst).text("id", p.ID).text("outcome", p.Outcome).end()
}

func (p ApprovalPolicy) appendData(dst []byte) []byte {
	return newObject(dst).text("policy", p.Policy).end()
}

func (p CommandRun) appendData(dst []byte) []byte {
	return newObject(dst).text("commandId", p.CommandID).text("name", p.Name).optText("args", p.Args).text("source", p.Source).end()
}

func (p CommandDone) appendData(dst []byte) []byte {
	o := newObject(dst).text("commandId", p.CommandID).text("kind", p.Kind).optText("text", p.Text)
	if p.SourceEventSeq != nil {
		o.int("sourceEventSeq", int64(*p.SourceEventSeq))
	}
	return o.end()
}

func (p SessionTitle) appendData(dst []byte) []byte {
	return newObject(dst).text("title", p.Title).seqs("messageSeqs", p.MessageSeqs).text("source", p.Source).end()
}
