package outcrop

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// parts are what several checks look at in the data of an event of a turn, as
// spans of it, so that they are looked for once. Of members that stand twice the
// last one counts.
type parts struct {
	turn, step []byte
	callID     []byte // the call of a tool/call, or the one that a tool/result answers
	content    []byte // of the message of an assistant/message or a tool/result
}

// partsOf finds the parts of an event. The data is valid JSON.
func partsOf(ev *Event) (p parts) {
	switch ev.Type {
	case TypeTurnStart, TypeTurnEnd, TypeStepStart, TypeStepEnd, TypeAssistantChunk, TypeAssistantMessage, TypeToolCall, TypeToolResult:
	default:
		return p
	}
	if len(ev.Data) == 0 || ev.Data[0] != '{' {
		return p
	}
	var message []byte
	enough, have := ev.enough(), partSet(0)
	for i := 1; have&enough != enough; {
		key, val, next := nextMember(ev.Data, i)
		if key == nil {
			break
		}
		switch string(key) {
		case "turn":
			p.turn = val
			have |= turnPart
		case "step":
			p.step = val
			have |= stepPart
		case "message":
			message = val
		case "callId":
			if ev.Type == TypeToolCall {
				p.callID = val
				have |= callPart
			}
		}
		i = next
	}
	switch ev.Type {
	case TypeToolResult:
		p.callID = lastMember(lastMember(message, "source"), "callId")
		fallthrough
	case TypeAssistantMessage:
		p.content = lastMember(message, "content")
	}
	return p
}

// partSet is a set of parts.
type partSet uint8

const (
	turnPart partSet = 1 << iota
	stepPart
	callPart
	noSuchPart
)

// enough is with which parts nothing more has to be looked for in an event. Where
// another member of a name may come, that is at the end.
func (e *Event) enough() partSet {
	if e.state&distinct != 0 {
		switch e.Type {
		case TypeTurnStart, TypeTurnEnd:
			return turnPart
		case TypeStepStart, TypeStepEnd, TypeAssistantChunk:
			return turnPart | stepPart
		case TypeToolCall:
			return turnPart | stepPart | callPart
		}
	}
	return noSuchPart
}

// call is a tool-call block of an assistant/message.
type call struct {
	id    string
	block []byte
}

// appendCalls appends the tool-call blocks of the content of a message.
func appendCalls(dst []call, content []byte) []call {
	for b := range jsonwire.Elements(content) {
		if jsonwire.Kind(b) != '{' {
			continue
		}
		var typ, id []byte
		for i := 1; ; {
			key, val, next := nextMember(b, i)
			if key == nil {
				break
			}
			switch string(key) {
			case "type":
				typ = val
			case "id":
				id = val
			}
			i = next
		}
		if jsonwire.TextIs(typ, "tool-call") {
			text, _ := jsonwire.Text(id)
			dst = append(dst, call{text, b})
		}
	}
	return dst
}
