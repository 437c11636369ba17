package run

import (
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
)

// tellRepair says what was found and done when the session was opened: a torn
// tail, a turn that was cut, calls whose outcome nobody knows.
func (r *run) tellRepair() {
	a := r.a
	if t := r.live.Tail(); t.Torn {
		a.Note("the last %d bytes of the log were torn: they are cut off and kept in a file beside it whose name ends in torn-%d", t.Bytes, t.Offset)
	}
	s := r.live.Session()
	var unknown, notStarted []string
	turn := 0
	for ev := range outcrop.Events(s.Log(), s.Stored()) {
		switch ev.Type {
		case outcrop.TypeToolResult:
			name := callName(s.Log(), ev)
			if jsonwire.TextIs(jsonwire.Get(jsonwire.Get(ev.Data, "error"), "code"), "TOOL_NOT_STARTED") {
				notStarted = append(notStarted, name)
			} else {
				unknown = append(unknown, name)
			}
		case outcrop.TypeTurnEnd:
			turn = intMember(ev.Data, "turn")
		}
	}
	if turn == 0 {
		return
	}
	text := "turn " + strconv.Itoa(turn) + " was cut off when the program that ran it stopped"
	if len(unknown) > 0 {
		text += "; outcome unknown: " + strings.Join(unknown, ", ")
	}
	if len(notStarted) > 0 {
		text += "; not started: " + strings.Join(notStarted, ", ")
	}
	a.Note("%s", text)
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
