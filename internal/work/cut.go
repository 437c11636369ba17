package work

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
)

// Cut is what a crash left of the last turn.
type Cut struct {
	Turn       int
	Text       string   // what could be seen of the reply that was being written
	Unknown    []string // calls that ran: nobody knows what became of them
	NotStarted []string // calls that were not started
}

// LastCut is what is known about the last turn of a session when a crash cut it;
// ok is false when it ended in another way.
func LastCut(log outcrop.Log) (c Cut, ok bool) {
	end, start := lastTurn(log)
	if end < 0 || start < 0 {
		return Cut{}, false
	}
	ev := log.At(end)
	if !jsonwire.TextIs(jsonwire.Get(jsonwire.Get(ev.Data, "reason"), "kind"), string(outcrop.TurnInterrupted)) {
		return Cut{}, false
	}
	n, _ := jsonwire.Int(jsonwire.Get(ev.Data, "turn"))
	c.Turn = int(n)
	var attempt message.Assembler
	for ev := range outcrop.Events(log, start) {
		if ev.Seq > end {
			break
		}
		switch ev.Type {
		case outcrop.TypeStepStart, outcrop.TypeOutcropRequest, outcrop.TypeLLMRetryStarted, outcrop.TypeAssistantMessage:
			attempt = message.Assembler{}
		case outcrop.TypeAssistantChunk:
			if chunk, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk")); err == nil {
				attempt.Add(chunk)
			}
		case outcrop.TypeToolResult:
			c.result(log, ev)
		}
	}
	c.Text = textOf(attempt.Visible())
	return c, true
}

// lastTurn finds where the last turn that ended began and ended, or -1.
func lastTurn(log outcrop.Log) (end, start outcrop.Seq) {
	end, start = -1, -1
	for seq := outcrop.Seq(log.Len() - 1); seq >= 0; seq-- {
		switch ev := log.At(seq); ev.Type {
		case outcrop.TypeTurnEnd:
			if end < 0 {
				end = seq
			}
		case outcrop.TypeTurnStart:
			if end < 0 {
				return -1, -1 // a turn is open
			}
			return end, seq
		}
	}
	return end, start
}

// result sorts in a result that repair has written.
func (c *Cut) result(log outcrop.Log, ev outcrop.Event) {
	code, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(ev.Data, "error"), "code"))
	switch code {
	case "TOOL_NOT_STARTED":
		c.NotStarted = append(c.NotStarted, callName(log, ev))
	case "TOOL_OUTCOME_UNKNOWN":
		c.Unknown = append(c.Unknown, callName(log, ev))
	}
}

// String says it in one line.
func (c Cut) String() string {
	text := "turn " + strconv.Itoa(c.Turn) + " was cut off when the program that ran it stopped"
	if n := utf8.RuneCountInString(c.Text); n > 0 {
		text += "; of the reply " + term.Plural(n, "character") + " had come"
	}
	if len(c.Unknown) > 0 {
		text += "; outcome unknown: " + strings.Join(c.Unknown, ", ")
	}
	if len(c.NotStarted) > 0 {
		text += "; not started: " + strings.Join(c.NotStarted, ", ")
	}
	return text
}

// callName is the tool of the call that a closing result answers, with what the
// call was to do.
func callName(log outcrop.Log, result outcrop.Event) string {
	id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(jsonwire.Get(result.Data, "message"), "source"), "callId"))
	for seq := result.Seq - 1; seq >= 0; seq-- {
		ev := log.At(seq)
		if ev.Type == outcrop.TypeTurnStart {
			break
		}
		if ev.Type != outcrop.TypeAssistantMessage {
			continue
		}
		for b := range jsonwire.Elements(jsonwire.Get(jsonwire.Get(ev.Data, "message"), "content")) {
			if jsonwire.TextIs(jsonwire.Get(b, "type"), string(message.ToolCallBlock)) && jsonwire.TextIs(jsonwire.Get(b, "id"), id) {
				name, _ := jsonwire.Text(jsonwire.Get(b, "name"))
				args, _ := jsonwire.Text(jsonwire.Get(b, "arguments"))
				return term.Line(name) + " " + term.Cut(brief.Call(args), 40)
			}
		}
	}
	return term.Line(id)
}

// textOf is the text of blocks, without reasoning and calls.
func textOf(blocks []message.Block) string {
	var texts []message.Block
	for _, b := range blocks {
		if b.Type == message.TextBlock {
			texts = append(texts, b)
		}
	}
	return message.PlainText(texts)
}
