package outcrop

import (
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// What the model reads in place of a result that a crash took.
const (
	outcomeUnknownText = "This tool call had been started when the program stopped, and no result was recorded. " +
		"It may have finished, partly finished, or not happened at all. " +
		"Repeat it only if it is read-only or harmless to repeat; otherwise check first what it changed, or ask the user. Do not repeat it blindly."
	notStartedText = "This tool call had not been started when the program stopped. Make it again if it is still needed."
)

// Closers returns the events that close the turn a crash left open, or none
// when no turn is open: an error result for each call without one, in the
// order in which the calls were first seen, then step/end, then turn/end with
// reason interrupted. They are deterministic: consecutive seqs, all with the
// time of the last event, and ids made from call id and seq.
//
// A call that was logged as started gets TOOL_OUTCOME_UNKNOWN and cites its
// tool/call; one that was not gets TOOL_NOT_STARTED and cites nothing.
func Closers(log Log) []Event {
	n := Seq(log.Len())
	if n == 0 {
		return nil
	}
	at, turn := lastBoundary(log)
	if at < 0 {
		return nil
	}
	open := openTurn{turn: turn}
	var lastTime int64
	for r := range log.Records(at) {
		if r.Run != nil {
			if r.Run.Last() == n-1 {
				lastTime = r.Run.At(r.Run.Len - 1).Time
			}
			continue
		}
		open.add(&r.Event)
		lastTime = r.Time
	}
	return open.close(n, lastTime)
}

// CheckClosers returns why the closers of a log cannot be appended to it, nil
// when they can or when there are none. They carry the numbers of the turn and
// step that they close as these were logged; a turn/start or step/start without
// a usable number begins what no event can close (TURN_NOT_CLOSABLE), so that
// its log is damaged.
func CheckClosers(log Log) error { return checkClosers(log, Closers(log)) }

func checkClosers(log Log, closers []Event) error {
	for i := range closers {
		ev := &closers[i]
		err := jsonwire.Lossless(ev.Data)
		if err == nil {
			if _, msg := checkBoundary(ev); msg == "" {
				continue
			}
		}
		start, _ := lastBoundary(log)
		e := refuse("TURN_NOT_CLOSABLE", start, "the open turn that begins here has no usable numbers: no "+string(ev.Type)+" can close it")
		e.Err, e.Hint = ErrDamaged, "what is there can be read; fork the session before this event to go on"
		return e
	}
	return nil
}

// lastBoundary finds the turn/start of the turn that is open at the end of the
// log; -1 when none is.
func lastBoundary(log Log) (Seq, []byte) {
	start, turn := Seq(-1), []byte(nil)
	look := func(ev *Event) {
		if ev.Type == TypeTurnStart {
			start, turn = ev.Seq, lastMember(ev.Data, "turn")
		} else {
			start = -1
		}
	}
	if d, ok := log.(*logData); ok {
		if d.len == 0 {
			return -1, nil
		}
		for k := d.find(d.len - 1); k >= 0; k-- {
			if e, seq := d.entry(k); (e.typ == idTurnStart || e.typ == idTurnEnd) && e.flags&flagRow == 0 {
				var ev Event
				d.fill(&ev, e, seq)
				look(&ev)
				break
			}
		}
		return start, turn
	}
	for r := range log.Records(0) {
		if r.Run == nil && (r.Type == TypeTurnStart || r.Type == TypeTurnEnd) {
			look(&r.Event)
		}
	}
	return start, turn
}

// OpenTurn tells which turn and step the log ends in; open is false between
// turns, step is 0 between steps. Numbers that are no safe integers read as 0.
func OpenTurn(log Log) (turn, step int, open bool) {
	at, tok := lastBoundary(log)
	if at < 0 {
		return 0, 0, false
	}
	o := openTurn{turn: tok}
	for r := range log.Records(at) {
		if r.Run == nil && (r.Type == TypeStepStart || r.Type == TypeStepEnd) {
			o.add(&r.Event)
		}
	}
	t, _ := jsonwire.Int(tok)
	s, _ := jsonwire.Int(o.step)
	return int(t), int(s), true
}

// openTurn is the scan over the events of an open turn.
type openTurn struct {
	turn  []byte // the tokens as logged
	step  []byte // nil: no step is open
	calls []pendingToken
}

type pendingToken struct {
	id   string
	step []byte
	seq  Seq
	gone bool
}

func (o *openTurn) add(ev *Event) {
	p := partsOf(ev)
	var calls []call
	if ev.Type == TypeAssistantMessage {
		calls = appendCalls(nil, p.content)
	}
	o.take(ev, &p, calls)
}

// take adds an event whose parts are known, and of an assistant/message the
// calls.
func (o *openTurn) take(ev *Event, p *parts, calls []call) {
	switch ev.Type {
	case TypeStepStart:
		o.step = p.step
	case TypeStepEnd:
		o.step, o.calls = nil, nil
	case TypeAssistantMessage:
		for _, x := range calls {
			if c := o.find(x.id); c != nil {
				*c = pendingToken{id: x.id, step: p.step, seq: -1}
			} else {
				o.calls = append(o.calls, pendingToken{id: x.id, step: p.step, seq: -1})
			}
		}
	case TypeToolCall:
		id, _ := jsonwire.Text(p.callID)
		if c := o.find(id); c != nil {
			c.seq = ev.Seq
		}
	case TypeToolResult:
		id, _ := jsonwire.Text(p.callID)
		if c := o.find(id); c != nil {
			c.gone = true
		}
	}
}

// find returns the call with this id that waits for its result.
func (o *openTurn) find(id string) *pendingToken {
	for i := range o.calls {
		if o.calls[i].id == id && !o.calls[i].gone {
			return &o.calls[i]
		}
	}
	return nil
}

func (o *openTurn) close(next Seq, time int64) []Event {
	var out []Event
	add := func(t Type, data []byte, op SurfaceOp, src Sources) {
		ev := Event{Type: t, Seq: next, Time: time, Data: data, Op: op, Sources: src, state: textValid, tag: t.tag()}
		// Closers carry surfaceOp before sourceEventSeqs, as dsh writes them.
		line := append([]byte(nil), `{"type":`...)
		line = jsonwire.AppendString(line, string(t))
		line = jsonwire.AppendIntMember(line, "seq", int64(next))
		line = jsonwire.AppendIntMember(line, "time", time)
		line = jsonwire.AppendRawMember(line, "data", data)
		if !op.IsZero() {
			line = op.appendJSON(jsonwire.AppendMember(line, "surfaceOp"))
		}
		if src.Known() {
			line = jsonwire.AppendRawMember(line, "sourceEventSeqs", src.text)
		}
		line = append(line, '}')
		if decoded, err := DecodeEvent(line); err == nil {
			ev = decoded
		}
		out = append(out, ev)
		next++
	}
	for i := range o.calls {
		c := &o.calls[i]
		if c.gone {
			continue
		}
		text, name, code, src := notStartedText, "ToolNotStartedError", "TOOL_NOT_STARTED", NoSources
		if c.seq >= 0 {
			text, name, code, src = outcomeUnknownText, "ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN", SourcesOf(c.seq)
		}
		block := newObject(nil).text("type", string(message.ToolResultBlock)).text("toolCallId", c.id).bool("isError", true).
			raw("content", message.AppendBlocks(nil, []message.Block{message.Text(text)})).end()
		msg := newObject(nil).text("id", "interrupted-tool-result-"+c.id+"-"+itoa(int64(next))).text("role", "user").
			raw("source", newObject(nil).text("kind", "tool").text("callId", c.id).end()).
			raw("content", append(append([]byte{'['}, block...), ']')).end()
		d := newObject(nil)
		if o.turn != nil {
			d.raw("turn", o.turn)
		}
		if c.step != nil {
			d.raw("step", c.step)
		}
		d.raw("message", msg).raw("error", newObject(nil).text("name", name).text("code", code).end())
		add(TypeToolResult, d.end(), Tail, src)
	}
	if o.step != nil {
		d := newObject(nil)
		if o.turn != nil {
			d.raw("turn", o.turn)
		}
		add(TypeStepEnd, d.raw("step", o.step).end(), SurfaceOp{}, NoSources)
	}
	d := newObject(nil)
	if o.turn != nil {
		d.raw("turn", o.turn)
	}
	add(TypeTurnEnd, d.raw("reason", []byte(`{"kind":"interrupted"}`)).end(), SurfaceOp{}, NoSources)
	return out
}
