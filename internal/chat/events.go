package chat

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/message"
)

// event shows one committed event.
func (m *model) event(ev outcrop.Event) {
	m.gauge.event(ev)
	switch ev.Type {
	case outcrop.TypeAssistantChunk:
		m.chunk(ev)
	case outcrop.TypeInboxSpliced:
		m.queue.splice(ev.Data)
	case outcrop.TypeUserMessage:
		m.userMessage(ev)
	case outcrop.TypeStepStart:
		m.streamed, m.retries = false, 0
	case outcrop.TypeOutcropRequest, outcrop.TypeLLMRetryStarted:
		m.streamed = false
	case outcrop.TypeAssistantMessage:
		m.assistantMessage(ev)
	case outcrop.TypeToolCall:
		m.calls.started(ev)
	case outcrop.TypeToolResult:
		m.toolResult(ev)
	case outcrop.TypeStepEnd:
		m.printCalls(true)
	case outcrop.TypeLLMRetry:
		m.retry(ev)
	case outcrop.TypeApprovalAsked:
		if id, ok := jsonwire.Text(jsonwire.Get(ev.Data, "id")); ok {
			m.asked[id], _ = jsonwire.Text(jsonwire.Get(ev.Data, "callId"))
		}
	case outcrop.TypeApprovalDecided:
		if id, ok := jsonwire.Text(jsonwire.Get(ev.Data, "id")); ok {
			m.calls.restart(m.asked[id], ev.Time)
			delete(m.asked, id)
		}
	case outcrop.TypeOutcropEdit:
		kind, _ := jsonwire.Text(jsonwire.Get(ev.Data, "kind"))
		before, _ := jsonwire.Int(jsonwire.Get(ev.Data, "tokensBefore"))
		after, _ := jsonwire.Int(jsonwire.Get(ev.Data, "tokensAfter"))
		m.flush()
		m.note(m.style.Yellow, fmt.Sprintf("-- %s: %s -> %s tokens", term.Line(kind), term.Count(before), term.Count(after)))
	case outcrop.TypeTurnEnd:
		m.turnEnd(ev)
	}
}

// chunk shows a piece of the answer. Old chunks are not shown again: the
// message has their text.
func (m *model) chunk(ev outcrop.Event) {
	if m.replay {
		return
	}
	c := jsonwire.Get(ev.Data, "chunk")
	kind, _ := jsonwire.Text(jsonwire.Get(c, "type"))
	text, _ := jsonwire.Text(jsonwire.Get(c, "text"))
	switch message.ChunkType(kind) {
	case message.TextDelta:
		if !m.streamed {
			m.space()
			m.streamed = true
		}
		m.thinking = 0
		m.answer.Write(text)
	case message.ReasoningDelta:
		m.thinking += utf8.RuneCountInString(text)
		m.thought += text
		if n := len(m.thought) - maxThought; n > 0 {
			for n < len(m.thought) && !utf8.RuneStart(m.thought[n]) {
				n++
			}
			m.thought = m.thought[n:]
		}
	case message.ToolCallDelta:
		if name, ok := jsonwire.Text(jsonwire.Get(c, "name")); ok && name != "" {
			m.building, m.built = name, 0
		}
		delta, _ := jsonwire.Text(jsonwire.Get(c, "argumentsDelta"))
		m.built += len(delta)
	case message.UsageChunk:
		m.cost.add(message.ParseUsage(jsonwire.Get(c, "usage")))
	}
}

// maxThought is how much of the reasoning is kept to be shown, in bytes.
const maxThought = 400

// userMessage shows what a person said; what the program told the model is not
// shown.
func (m *model) userMessage(ev outcrop.Event) {
	msg, err := message.Parse(brief.MessageOf(ev))
	if err != nil || msg.Source.Kind != "user" && msg.Source.Kind != "" {
		return
	}
	m.flush()
	m.space()
	lead := m.style.Cyan("> ")
	for i, b := range msg.Content {
		text := m.blockText(b, i == 0)
		for _, l := range text {
			m.print(lead + m.style.Bold(l))
			lead = "  "
		}
	}
	m.space()
}

// maxPrompt is how many lines of a prompt are shown.
const maxPrompt = 60

// blockText is a block of a prompt as lines; of what was attached one line.
func (m *model) blockText(b message.Block, whole bool) []string {
	if b.Type != message.TextBlock {
		name, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "name"))
		return []string{term.Cut("["+term.OneLine(string(b.Type)+" "+name)+"]", m.textWidth()-2)}
	}
	if !whole {
		first, rest, _ := strings.Cut(b.Text, "\n")
		return []string{term.Cut(fmt.Sprintf("[%s %s]", term.OneLine(first), term.Plural(strings.Count(rest, "\n")+1, "line")), m.textWidth()-2)}
	}
	lines := term.Wrap(term.Text(strings.TrimRight(b.Text, "\n")), m.textWidth()-2)
	if n := len(lines) - maxPrompt; n > 0 {
		lines = append(lines[:maxPrompt], "("+term.Plural(n, "more line")+")")
	}
	return lines
}

// assistantMessage ends the answer of a step.
func (m *model) assistantMessage(ev outcrop.Event) {
	msg, err := message.Parse(brief.MessageOf(ev))
	if err != nil {
		return
	}
	if !m.streamed {
		for _, b := range msg.Content {
			if b.Type == message.TextBlock && b.Text != "" {
				m.space()
				m.answer.Write(b.Text + "\n")
			}
		}
	}
	m.flush()
	m.streamed = false
	if string(jsonwire.Get(ev.Data, "interrupted")) == "true" {
		m.note(m.style.Yellow, "(cut off here)")
		return
	}
	for i, b := range msg.Content {
		switch b.Type {
		case message.ToolCallBlock:
			m.calls.add(b, m.fold(fold{seq: ev.Seq, block: i}))
		case message.ReasoningBlock:
			m.fold(fold{seq: ev.Seq, block: i})
		}
	}
}

// toolResult ends a call; calls are printed in the model's order.
func (m *model) toolResult(ev outcrop.Event) {
	if c := m.calls.ended(ev); c != nil {
		m.shown[c.number-1].result = ev.Seq
	}
	m.printCalls(false)
}

// printCalls finishes the calls that have ended, up to the first that has not.
func (m *model) printCalls(all bool) {
	for len(m.calls.list) > 0 && (all || m.calls.list[0].done) {
		c := m.calls.list[0]
		m.calls.list = m.calls.list[1:]
		m.print(m.callLine(c))
	}
}

func (m *model) retry(ev outcrop.Event) {
	m.flush()
	m.streamed = false
	m.retries++
	ms, _ := jsonwire.Int(jsonwire.Get(ev.Data, "delayMs"))
	why := ""
	if f := message.ParseFailure(jsonwire.Get(ev.Data, "failure")); f != nil {
		why = term.OneLine(f.Message) + ": "
	}
	m.note(m.style.Yellow, why+"trying again in "+seconds(time.Duration(ms)*time.Millisecond))
}

// turnEnd says how the turn ended, when it did not simply end, and what can be
// done.
func (m *model) turnEnd(ev outcrop.Event) {
	m.flush()
	m.printCalls(true)
	reason := jsonwire.Get(ev.Data, "reason")
	kind, _ := jsonwire.Text(jsonwire.Get(reason, "kind"))
	switch outcrop.ReasonKind(kind) {
	case outcrop.Completed:
	case outcrop.MaxTokens:
		m.note(m.style.Yellow, "the answer is cut off: the model reached its output limit")
	case outcrop.TurnAborted:
		why := jsonwire.Get(reason, "reason")
		if jsonwire.TextIs(jsonwire.Get(why, "kind"), "user") {
			m.note(m.style.Yellow, "stopped")
			break
		}
		text, _ := jsonwire.Text(jsonwire.Get(why, "reason"))
		m.note(m.style.Yellow, "the turn was ended: "+term.OneLine(text)+"; /continue goes on")
	case outcrop.TurnError:
		text, offer := "the turn failed", true
		if f := message.ParseFailure(jsonwire.Get(reason, "error")); f != nil {
			text, offer = term.OneLine(work.Failed(f, m.retries)), canContinue(f.Code)
		}
		if offer {
			text += "; /continue tries again"
		}
		m.note(m.style.Red, text)
	case outcrop.TurnInterrupted:
		// Said when the session was opened.
	default:
		m.note(m.style.Yellow, "the turn ended as "+term.OneLine(kind))
	}
	m.space()
}

// canContinue reports that going on may help after a failure: it does not where
// a person has to mend something first.
func canContinue(code string) bool {
	switch code {
	case message.CodeAuth, message.CodeQuota, message.CodeContextWindow:
		return false
	}
	return true
}

// splice applies a change of the inbox.
func (q *queue) splice(data []byte) {
	target, _ := jsonwire.Text(jsonwire.Get(data, "target"))
	list := &q.turn
	if target == string(outcrop.NextStep) {
		list = &q.step
	}
	n := int64(len(*list))
	start, _ := jsonwire.Int(jsonwire.Get(data, "start"))
	start = min(max(start, 0), n)
	count, _ := jsonwire.Int(jsonwire.Get(data, "removedCount"))
	count = min(max(count, 0), n-start)
	var in []queued
	for v := range jsonwire.Elements(jsonwire.Get(data, "inserted")) {
		if msg, err := message.Parse(v); err == nil {
			in = append(in, queuedOf(msg))
		}
	}
	*list = append(append(append([]queued(nil), (*list)[:start]...), in...), (*list)[start+count:]...)
}
