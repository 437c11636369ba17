package agent

import (
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// cutTextMax is how many characters of a reply that a crash cut are told to
// the model again.
const cutTextMax = 8000

// Resumed is what an agent found when it started on a log whose last turn was
// interrupted, for whoever tells a person. No call is run again by itself, and
// pending input waits for Wake or new input.
type Resumed struct {
	Turn int // the turn that was interrupted, 0: none was
	// CutText is what was visible of the reply that was cut, at most 8,000
	// characters, its end. The model is told it with the next turn.
	CutText string
	// Unknown are the calls that were started and whose outcome nobody knows.
	Unknown []UnknownCall
	// Requeued is input that a turn had taken and that had not entered the
	// conversation; it is pending again. It may be there without an
	// interrupted turn.
	Requeued []message.Message
}

// UnknownCall is a call that may have run completely, in part, or not at all.
type UnknownCall struct {
	Seq       outcrop.Seq // of its tool/call
	CallID    string
	Name      string
	Arguments string // as the model wrote them
}

// Resumed tells what New found.
func (a *Agent) Resumed() Resumed { return a.resumed }

// claimed is a message that was taken from the inbox and has not entered yet.
type claimed struct {
	m      message.Message
	target outcrop.InboxTarget
}

// past is what one pass over the log tells an agent that starts on it.
type past struct {
	inbox     inbox
	lastTurn  int
	policy    string
	limbo     []claimed   // claimed, not entered, not given up
	inTurn    []claimed   // the same, of the turn that is open
	attempt   outcrop.Seq // where the last attempt begins, -1 when it succeeded
	cut       outcrop.Seq // the attempt that the last turn's interruption cut, -1
	badSplice outcrop.Seq // first splice that did not fit, -1

	interrupted bool          // the last turn was
	unknown     []outcrop.Seq // of the tool/call of each of its calls of unknown outcome
}

// unknownOutcome is the code of the result that repair gives a call that was
// started.
const unknownOutcome = "TOOL_OUTCOME_UNKNOWN"

// resume reads the log and brings the agent to where it left off.
func (a *Agent) resume() error {
	h := readHistory(a.s.Log(), a.s.Header())
	a.inbox, a.lastTurn, a.policy = h.inbox, h.lastTurn, h.policy
	if h.badSplice >= 0 {
		a.log.Warn("the inbox of this log has a change that does not fit; what is pending may be incomplete", "seq", int64(h.badSplice))
	}
	if h.cut >= 0 {
		a.cutText = visibleText(a.s.Log(), h.cut)
	}
	if h.interrupted {
		a.resumed = Resumed{Turn: h.lastTurn, CutText: a.cutText}
		for _, seq := range h.unknown {
			a.resumed.Unknown = append(a.resumed.Unknown, unknownCall(a.s.Log().At(seq)))
		}
	}
	// Oldest first, at the front of the list that they came from.
	at := map[outcrop.InboxTarget]int{}
	for _, c := range h.limbo {
		if a.inbox.has(c.m.ID) {
			continue
		}
		i := at[c.target]
		if _, err := a.s.Append(outcrop.InboxSpliced{Target: c.target, Start: i, Inserted: []message.Message{c.m}}); err != nil {
			return err
		}
		a.inbox.insert(c.target, i, c.m)
		a.resumed.Requeued = append(a.resumed.Requeued, c.m)
		at[c.target] = i + 1
	}
	return nil
}

func unknownCall(ev outcrop.Event) UnknownCall {
	c := UnknownCall{Seq: ev.Seq}
	c.CallID, _ = jsonwire.Text(jsonwire.Get(ev.Data, "callId"))
	c.Name, _ = jsonwire.Text(jsonwire.Get(ev.Data, "name"))
	c.Arguments, _ = jsonwire.Text(jsonwire.Get(ev.Data, "arguments"))
	return c
}

// readHistory folds the log. The inbox begins after the seed: a fork does not
// inherit what its parent had pending.
func readHistory(log outcrop.Log, header outcrop.Header) past {
	h := past{policy: policyAsk, attempt: -1, cut: -1, badSplice: -1}
	own := outcrop.Seq(0)
	if header.SeedLength != nil {
		own = outcrop.Seq(*header.SeedLength)
	}
	for rec := range log.Records(0) {
		if rec.Run != nil {
			if h.attempt < 0 {
				h.attempt = rec.Seq
			}
			continue
		}
		h.read(rec.Event, rec.Seq >= own)
	}
	h.limbo = append(h.limbo, h.inTurn...)
	return h
}

func (h *past) read(ev outcrop.Event, own bool) {
	switch ev.Type {
	case outcrop.TypeTurnStart:
		if n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "turn")); ok {
			h.lastTurn = int(n)
		}
		h.limbo = append(h.limbo, h.inTurn...)
		h.inTurn = nil
		h.attempt, h.cut = -1, -1
		h.interrupted, h.unknown = false, nil
	case outcrop.TypeToolResult:
		code := jsonwire.Get(jsonwire.Get(ev.Data, "error"), "code")
		if seqs := ev.Sources.Seqs(); jsonwire.TextIs(code, unknownOutcome) && ev.Op.IsAppend() && len(seqs) == 1 {
			h.unknown = append(h.unknown, seqs[0])
		}
	case outcrop.TypeTurnEnd:
		h.endTurn(jsonwire.Get(ev.Data, "reason"))
	case outcrop.TypeOutcropRewind:
		// What was cut was taken out of the conversation.
		h.cut, h.interrupted, h.unknown = -1, false, nil
	case outcrop.TypeStepStart, outcrop.TypeOutcropRequest, outcrop.TypeLLMRetryStarted, outcrop.TypeAssistantMessage:
		h.attempt = -1
	case outcrop.TypeAssistantChunk:
		if h.attempt < 0 {
			h.attempt = ev.Seq
		}
	case outcrop.TypeApprovalPolicy:
		h.policy, _ = jsonwire.Text(jsonwire.Get(ev.Data, "policy"))
	case outcrop.TypeUserMessage:
		if id, ok := jsonwire.Text(jsonwire.Get(ev.Data, "id")); ok {
			entered := func(c claimed) bool { return c.m.ID == id }
			h.inTurn = slices.DeleteFunc(h.inTurn, entered)
			h.limbo = slices.DeleteFunc(h.limbo, entered)
		}
	case outcrop.TypeInboxSpliced:
		if !own {
			return
		}
		removed, claim, ok := h.inbox.splice(ev.Data)
		if !ok && h.badSplice < 0 {
			h.badSplice = ev.Seq
		}
		if claim {
			target, _ := jsonwire.Text(jsonwire.Get(ev.Data, "target"))
			for _, m := range removed {
				h.inTurn = append(h.inTurn, claimed{m, outcrop.InboxTarget(target)})
			}
		}
		for v := range jsonwire.Elements(jsonwire.Get(ev.Data, "inserted")) {
			// Put back already.
			id, _ := jsonwire.Text(jsonwire.Get(v, "id"))
			h.limbo = slices.DeleteFunc(h.limbo, func(c claimed) bool { return c.m.ID == id })
		}
	}
}

// endTurn decides about input that the turn claimed and that never entered:
// the person took it back, or it was refused, or else it is pending again.
func (h *past) endTurn(reason []byte) {
	kind, _ := jsonwire.Text(jsonwire.Get(reason, "kind"))
	byUser := kind == string(outcrop.TurnAborted) &&
		jsonwire.TextIs(jsonwire.Get(jsonwire.Get(reason, "reason"), "kind"), string(ByUser))
	if !byUser && kind != string(outcrop.Blocked) {
		h.limbo = append(h.limbo, h.inTurn...)
	}
	h.inTurn = nil
	h.cut = -1
	h.interrupted = kind == string(outcrop.TurnInterrupted)
	if h.interrupted {
		h.cut = h.attempt
	}
	h.attempt = -1
}

// visibleText puts together what a person could see of the attempt that begins
// at seq from: text, no reasoning, no calls; of a long one the end.
func visibleText(log outcrop.Log, from outcrop.Seq) string {
	var asm message.Assembler
	for ev := range outcrop.Events(log, from) {
		if ev.Type != outcrop.TypeAssistantChunk {
			if ev.Type == outcrop.TypeStepEnd || ev.Type == outcrop.TypeTurnEnd {
				break
			}
			continue
		}
		if c, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk")); err == nil {
			asm.Add(c)
		}
	}
	var texts []message.Block
	for _, b := range asm.Visible() {
		if b.Type == message.TextBlock {
			texts = append(texts, b)
		}
	}
	text := []rune(message.PlainText(texts))
	if len(text) > cutTextMax {
		text = text[len(text)-cutTextMax:]
	}
	return string(text)
}
