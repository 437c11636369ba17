package outcrop

import (
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Violation is a breach of an optional invariant. The log can be read and
// continued all the same; the writer that made it has a fault.
type Violation struct {
	Label string
	Seq   Seq
}

func (v Violation) Error() string { return "event " + itoa(int64(v.Seq)) + ": " + v.Label }

// Invariants checks the enclosure of turns and steps, the pairing of calls and
// results inside a step, and compaction brackets, event by event. It is
// separate from admission, which never depends on it: use it over a log, or
// beside a live session as a veto. The zero value is ready.
type Invariants struct {
	turns       TurnInvariants
	compactions CompactionInvariants
}

// Check judges the next event; when there is a violation the event counts as
// not seen, so that a vetoed event leaves no trace.
func (v *Invariants) Check(ev Event) (found []Violation) {
	p := partsOf(&ev)
	if found = v.judge(&ev, &p); found == nil {
		v.apply(&ev, &p)
	}
	return found
}

func (v *Invariants) judge(ev *Event, p *parts) (found []Violation) {
	if x, bad := v.turns.judge(ev, p); bad {
		found = append(found, x)
	}
	if x, bad := v.compactions.judge(ev); bad {
		found = append(found, x)
	}
	return found
}

func (v *Invariants) apply(ev *Event, p *parts) {
	v.turns.apply(ev, p)
	v.compactions.apply(ev)
}

// Apply takes an event as seen whatever was found.
func (v *Invariants) Apply(ev Event) {
	p := partsOf(&ev)
	v.apply(&ev, &p)
}

// TurnInvariants is the part about turns, steps and calls.
type TurnInvariants struct {
	lastTurn int64
	turn     int64 // open one, 0 none
	step     int64 // open one, 0 none
	lastStep int64
	calls    map[string]bool // logged in this step, waiting for a result
}

// number is a number token; -1 for anything else.
func number(token []byte) int64 {
	n, ok := jsonwire.Int(token)
	if !ok {
		return -1
	}
	return n
}

// Check judges the next event and takes it as seen when it is in order.
func (v *TurnInvariants) Check(ev Event) (Violation, bool) {
	p := partsOf(&ev)
	x, bad := v.judge(&ev, &p)
	if !bad {
		v.apply(&ev, &p)
	}
	return x, bad
}

func (v *TurnInvariants) judge(ev *Event, p *parts) (Violation, bool) {
	bad := func(label string) (Violation, bool) { return Violation{label, ev.Seq}, true }
	inStep := func() bool {
		return v.turn > 0 && v.step > 0 && number(p.turn) == v.turn && number(p.step) == v.step
	}
	switch ev.Type {
	case TypeTurnStart:
		if v.turn > 0 {
			return bad("turn-start-while-open")
		}
		if number(p.turn) != v.lastTurn+1 {
			return bad("turn-start-number")
		}
	case TypeTurnEnd:
		if v.turn == 0 || number(p.turn) != v.turn {
			return bad("turn-end-mismatch")
		}
		if v.step > 0 {
			return bad("turn-end-step-open")
		}
	case TypeStepStart:
		if v.turn == 0 || number(p.turn) != v.turn {
			return bad("step-start-turn")
		}
		if v.step > 0 {
			return bad("step-start-while-open")
		}
		if number(p.step) != v.lastStep+1 {
			return bad("step-start-number")
		}
	case TypeStepEnd:
		if !inStep() {
			return bad("step-end-not-open")
		}
	case TypeAssistantChunk:
		if !inStep() {
			return bad("chunk-not-in-step")
		}
	case TypeAssistantMessage:
		if !inStep() {
			return bad("assistant-not-in-step")
		}
	case TypeToolCall:
		if !inStep() {
			return bad("tool-call-not-in-step")
		}
	case TypeToolResult:
		if !ev.Op.IsAppend() {
			if v.turn == 0 {
				return bad("tool-rewrite-outside-turn")
			}
			break
		}
		if !inStep() {
			return bad("tool-result-not-in-step")
		}
		if id, _ := jsonwire.Text(p.callID); !v.calls[id] && !notStarted(ev.Data) {
			return bad("tool-result-no-call")
		}
	case TypeTodoWrite, TypeRequestHeader, TypeRequestContext:
		if v.turn == 0 {
			return bad("outside-turn")
		}
	}
	return Violation{}, false
}

func (v *TurnInvariants) apply(ev *Event, p *parts) {
	switch ev.Type {
	case TypeTurnStart:
		v.turn, v.step, v.lastStep = number(p.turn), 0, 0
	case TypeTurnEnd:
		v.lastTurn, v.turn, v.step, v.calls = number(p.turn), 0, 0, nil
	case TypeStepStart:
		v.step = number(p.step)
		v.calls = nil
	case TypeStepEnd:
		v.lastStep, v.step, v.calls = number(p.step), 0, nil
	case TypeToolCall:
		if v.calls == nil {
			v.calls = map[string]bool{}
		}
		id, _ := jsonwire.Text(p.callID)
		v.calls[id] = true
	case TypeToolResult:
		if ev.Op.IsAppend() {
			id, _ := jsonwire.Text(p.callID)
			delete(v.calls, id)
		}
	}
}

// notStarted reports a synthetic result of a call that never began.
func notStarted(data []byte) bool {
	if !jsonwire.TextIs(lastMember(lastMember(data, "error"), "code"), "TOOL_NOT_STARTED") {
		return false
	}
	for b := range jsonwire.Elements(lastMember(lastMember(data, "message"), "content")) {
		return string(lastMember(b, "isError")) == "true"
	}
	return false
}

// CompactionInvariants is the part about compaction brackets.
type CompactionInvariants struct {
	open      bool
	id        string
	command   string // raw token, "" absent
	owner     string // raw turn token: a number or null
	summaries int
	turn      string // raw token of the open turn, "" none
}

// Check judges the next event and takes it as seen when it is in order.
func (v *CompactionInvariants) Check(ev Event) (Violation, bool) {
	x, bad := v.judge(&ev)
	if !bad {
		v.apply(&ev)
	}
	return x, bad
}

// Apply takes an event as seen whatever was found: for replaying a seed, in
// which a later session/end-seed makes an open bracket stale.
func (v *CompactionInvariants) Apply(ev Event) { v.apply(&ev) }

func badID(v []byte, required bool) bool {
	if v == nil {
		return required
	}
	return !nonEmptyText(v)
}

func (v *CompactionInvariants) judge(ev *Event) (Violation, bool) {
	bad := func(label string) (Violation, bool) { return Violation{label, ev.Seq}, true }
	data := ev.Data
	switch ev.Type {
	case TypeTurnStart, TypeTurnEnd:
		if v.open {
			return bad("compaction-turn-boundary")
		}
		return Violation{}, false
	case TypeUserMessage:
		if _, _, isReplace := ev.Op.Range(); !isReplace {
			return Violation{}, false
		}
		src := lastMember(data, "source")
		if !jsonwire.TextIs(lastMember(src, "kind"), "plugin") || !jsonwire.TextIs(lastMember(src, "plugin"), "compact") {
			return Violation{}, false
		}
		data = src
	case TypeCompactionStart, TypeCompactionSummary, TypeCompactionEnd:
	default:
		return Violation{}, false
	}
	id, command := lastMember(data, "compactionId"), lastMember(data, "sourceCommandId")
	if badID(id, true) || badID(command, false) {
		return bad("compaction-id")
	}
	name, _ := jsonwire.Text(id)
	switch ev.Type {
	case TypeCompactionStart:
		if v.open {
			return bad("compaction-start-nested")
		}
		return v.judgeOwner(ev, string(lastMember(data, "turn")))
	case TypeUserMessage:
		if !v.open {
			return bad("checkpoint-no-start")
		}
		if name != v.id {
			return bad("checkpoint-id-mismatch")
		}
		if string(command) != v.command {
			return bad("compaction-command-id-mismatch")
		}
	case TypeCompactionSummary:
		if !v.open {
			return bad("summary-no-start")
		}
		if name != v.id {
			return bad("summary-id-mismatch")
		}
		if string(command) != v.command {
			return bad("compaction-command-id-mismatch")
		}
		if x, no := v.judgeOwner(ev, v.owner); no {
			return x, no
		}
		if v.summaries > 0 {
			return bad("summary-repeated")
		}
		return v.judgeShadow(ev)
	case TypeCompactionEnd:
		if !v.open {
			return bad("compaction-end-no-start")
		}
		if name != v.id {
			return bad("compaction-end-id-mismatch")
		}
		if string(command) != v.command {
			return bad("compaction-command-id-mismatch")
		}
		if string(lastMember(data, "turn")) != v.owner {
			return bad("compaction-end-owner")
		}
		if x, no := v.judgeOwner(ev, v.owner); no {
			return x, no
		}
		if lastMember(data, "error") == nil && v.summaries == 0 {
			return bad("compaction-end-no-summary")
		}
	}
	return Violation{}, false
}

func (v *CompactionInvariants) judgeOwner(ev *Event, owner string) (Violation, bool) {
	switch {
	case owner == "null" && v.turn != "":
		return Violation{"compaction-standalone-in-turn", ev.Seq}, true
	case owner != "null" && v.turn == "":
		return Violation{"compaction-outside-turn", ev.Seq}, true
	case owner != "null" && owner != v.turn:
		return Violation{"compaction-wrong-turn", ev.Seq}, true
	}
	return Violation{}, false
}

func (v *CompactionInvariants) judgeShadow(ev *Event) (Violation, bool) {
	var first, last []byte
	for s := range jsonwire.Elements(lastMember(ev.Data, "shadowedSeqs")) {
		if first == nil {
			first = s
		}
		last = s
	}
	if first == nil {
		return Violation{"summary-empty-shadow", ev.Seq}, true
	}
	r := lastMember(ev.Data, "shadowedRange")
	if string(lastMember(r, "start")) != string(first) || string(lastMember(r, "end")) != string(last) {
		return Violation{"summary-range-mismatch", ev.Seq}, true
	}
	if n, ok := jsonwire.Int(lastMember(ev.Data, "shadowedTokenCount")); !ok || n < 0 {
		return Violation{"summary-token-count", ev.Seq}, true
	}
	return Violation{}, false
}

func (v *CompactionInvariants) apply(ev *Event) {
	switch ev.Type {
	case TypeTurnStart:
		v.turn = string(lastMember(ev.Data, "turn"))
	case TypeTurnEnd:
		v.turn = ""
	case TypeEndSeed:
		v.open = false
	case TypeCompactionStart:
		v.open, v.summaries = true, 0
		v.id, _ = jsonwire.Text(lastMember(ev.Data, "compactionId"))
		v.command = string(lastMember(ev.Data, "sourceCommandId"))
		v.owner = string(lastMember(ev.Data, "turn"))
	case TypeCompactionSummary:
		v.summaries++
	case TypeCompactionEnd:
		v.open = false
	}
}
