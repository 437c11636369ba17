package outcrop

import (
	"encoding/json"

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

func (RequestHeader) EventType() Type   { return TypeRequestHeader }
func (RequestContext) EventType() Type  { return TypeRequestContext }
func (LLMRetry) EventType() Type        { return TypeLLMRetry }
func (LLMRetryStarted) EventType() Type { return TypeLLMRetryStarted }
func (RequestHeader) logPayload()       {}
func (RequestContext) logPayload()      {}
func (LLMRetry) logPayload()            {}
func (LLMRetryStarted) logPayload()     {}

func (p RequestHeader) appendData(dst []byte) []byte {
	return newObject(dst).raw("header", p.Header).text("reason", p.Reason).end()
}

func (RequestHeader) holdsRaw() bool { return true }

func (p RequestContext) appendData(dst []byte) []byte {
	return newObject(dst).text("provider", p.Provider).text("model", p.Model).optInt("contextWindow", p.ContextWindow).end()
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
