package outcrop

import "github.com/outcrop-dev/outcrop/message"

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

func (CompactionStart) EventType() Type   { return TypeCompactionStart }
func (CompactionSummary) EventType() Type { return TypeCompactionSummary }
func (CompactionEnd) EventType() Type     { return TypeCompactionEnd }
func (CompactionPrune) EventType() Type   { return TypeCompactionPrune }
func (CompactionStart) logPayload()       {}
func (CompactionSummary) logPayload()     {}
func (CompactionEnd) logPayload()         {}
func (CompactionPrune) logPayload()       {}

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
