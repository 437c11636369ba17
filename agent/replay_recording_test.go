package agent_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// recording is a log taken apart into what came into the loop from outside.
type recording struct {
	header outcrop.Header
	log    outcrop.Log
	lives  []life
	// foreign says that another program wrote the log: it has no
	// outcrop/request.
	foreign bool

	results   map[string]tool.Outcome // by callPlace
	decisions map[string]string       // outcome of approval/decided, by the question's id
	asked     map[string]bool         // tools that were asked about
	parallel  map[string]bool         // tools of which two ran at once
	ids       []string                // of replies and results, in order
	loopIDs   []string                // of contexts, retries and questions, in order
	retries   int                     // the most that a step may have, 0: nothing says it
}

// life is what one program did between opening the log and its end.
type life struct {
	start outcrop.Seq // its first event; 0, or a session/end-seed
	turns []turnPlan
	after []happening // behind the last turn
}

// turnPlan is one turn as it came about.
type turnPlan struct {
	n        int
	steps    int
	header   outcrop.Seq               // of the request header in force at its first call
	before   []happening               // in the idle agent
	during   map[int][]happening       // in a step
	edits    map[int][]outcrop.Event   // of the history, before a step
	enters   map[int][]message.Message // into a step, in order
	contexts map[int][]workspace.Context
	end      string // kind of the reason, "" when the log ends in the turn
	cause    agent.Cause
	drop     bool            // the cancel took what was pending
	closers  []outcrop.Event // written by repair
}

func (tp *turnPlan) cut() bool { return tp.end == "" || tp.end == string(outcrop.TurnInterrupted) }

// happening is one thing that came from outside: input, input taken back, or
// edits of the history.
type happening struct {
	target outcrop.InboxTarget
	insert *message.Message
	remove string
	edit   []outcrop.Event
}

func callPlace(turn, step int, id string) string { return fmt.Sprintf("%d/%d/%s", turn, step, id) }

func number(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(n)
}

func word(data []byte, path ...string) string {
	for _, name := range path {
		data = jsonwire.Get(data, name)
	}
	s, _ := jsonwire.Text(data)
	return s
}

// taker takes a log apart.
type taker struct {
	*recording
	turn    *turnPlan
	step    int
	inStep  bool
	waiting []happening         // since the last step or turn ended
	known   map[string]bool     // messages that were pending at some time
	lists   map[string][]string // ids that are pending
	now     outcrop.Seq
}

func takeApart(h outcrop.Header, log outcrop.Log) (*recording, error) {
	t := &taker{recording: &recording{
		header: h, log: log, results: map[string]tool.Outcome{}, decisions: map[string]string{}, asked: map[string]bool{}, parallel: map[string]bool{},
	}, known: map[string]bool{}, lists: map[string][]string{}}
	begin := outcrop.Seq(0)
	if h.SeedLength != nil {
		begin = outcrop.Seq(*h.SeedLength) // what a fork inherited is given
	}
	t.lives = []life{{start: begin}}
	t.foreign = true
	for ev := range outcrop.Events(log, begin) {
		t.now = ev.Seq
		if err := t.event(ev); err != nil {
			return nil, fmt.Errorf("event %d %s: %w", ev.Seq, ev.Type, err)
		}
	}
	t.endTurn()
	t.life().after = t.waiting
	return t.recording, nil
}

func (t *taker) life() *life { return &t.lives[len(t.lives)-1] }

// endTurn puts the turn into its life.
func (t *taker) endTurn() {
	if t.turn == nil {
		return
	}
	if t.turn.end == string(outcrop.TurnInterrupted) {
		t.findClosers()
	}
	t.life().turns = append(t.life().turns, *t.turn)
	t.turn, t.step, t.inStep = nil, 0, false
}

// findClosers tells what repair wrote from what the loop wrote: results of
// repair's own codes, and the ends.
func (t *taker) findClosers() {
	for seq := t.now; seq >= 0; seq-- {
		ev := t.log.At(seq)
		code := word(ev.Data, "error", "code")
		result := ev.Type == outcrop.TypeToolResult && (code == "TOOL_OUTCOME_UNKNOWN" || code == "TOOL_NOT_STARTED")
		if !result && ev.Type != outcrop.TypeStepEnd && ev.Type != outcrop.TypeTurnEnd {
			break
		}
		t.turn.closers = append(t.turn.closers, ev)
		if result {
			delete(t.results, callPlace(number(ev.Data, "turn"), number(ev.Data, "step"), word(ev.Data, "message", "source", "callId")))
			t.ids = t.ids[:len(t.ids)-1]
		}
	}
	slices.Reverse(t.turn.closers)
}

var policyRetries = regexp.MustCompile(`^\["normal",(\d+),`)

func (t *taker) event(ev outcrop.Event) error {
	switch ev.Type {
	case outcrop.TypeEndSeed:
		t.endTurn()
		if ev.Seq > t.life().start {
			t.life().after, t.waiting = t.waiting, nil
			t.lives = append(t.lives, life{start: ev.Seq})
		}
	case outcrop.TypeTurnStart:
		t.turn = &turnPlan{
			n: number(ev.Data, "turn"), header: -1, before: t.waiting, during: map[int][]happening{}, edits: map[int][]outcrop.Event{},
			enters: map[int][]message.Message{}, contexts: map[int][]workspace.Context{},
		}
		t.waiting = nil
	case outcrop.TypeStepStart:
		t.step++
		t.turn.steps, t.inStep = t.step, true
		for _, h := range t.waiting {
			if h.edit != nil {
				t.turn.edits[t.step] = append(t.turn.edits[t.step], h.edit...)
			} else if t.step > 1 {
				t.turn.during[t.step-1] = append(t.turn.during[t.step-1], h)
			} else {
				t.turn.before = append(t.turn.before, h)
			}
		}
		t.waiting = nil
	case outcrop.TypeStepEnd:
		t.inStep = false
	case outcrop.TypeTurnEnd:
		t.turn.end = word(ev.Data, "reason", "kind")
		t.turn.cause = agent.Cause{Kind: agent.CauseKind(word(ev.Data, "reason", "reason", "kind")), Reason: word(ev.Data, "reason", "reason", "reason")}
		t.endTurn()
	case outcrop.TypeInboxSpliced:
		t.splice(ev)
	case outcrop.TypeOutcropRequest:
		t.foreign = false
	case outcrop.TypeRequestHeader:
		if t.turn != nil && t.turn.header < 0 {
			t.turn.header = ev.Seq
		}
	case outcrop.TypeUserMessage, outcrop.TypeContextMessage:
		return t.entered(ev)
	case outcrop.TypeAssistantMessage:
		t.ids = append(t.ids, word(ev.Data, "message", "id"))
	case outcrop.TypeToolCall:
		t.overlap(ev)
	case outcrop.TypeToolResult:
		if !ev.Op.IsAppend() {
			t.edit(ev)
			return nil
		}
		return t.result(ev)
	case outcrop.TypeApprovalAsked:
		t.loopIDs = append(t.loopIDs, word(ev.Data, "id"))
		t.asked[word(ev.Data, "toolName")] = true
	case outcrop.TypeApprovalDecided:
		t.decisions[word(ev.Data, "id")] = word(ev.Data, "outcome")
	case outcrop.TypeLLMRetry:
		if number(ev.Data, "retry") == 1 {
			t.loopIDs = append(t.loopIDs, word(ev.Data, "retryId"))
		}
		if m := policyRetries.FindStringSubmatch(word(ev.Data, "policyKey")); m != nil {
			t.retries, _ = strconv.Atoi(m[1])
		}
	case outcrop.TypeCompactionStart, outcrop.TypeCompactionSummary, outcrop.TypeCompactionEnd, outcrop.TypeCompactionPrune, outcrop.TypeOutcropEdit, outcrop.TypeOutcropRewind:
		t.edit(ev)
	}
	return nil
}

// edit takes an event that edits the history, or belongs to an edit.
func (t *taker) edit(ev outcrop.Event) {
	if n := len(t.waiting); n > 0 && t.waiting[n-1].edit != nil {
		t.waiting[n-1].edit = append(t.waiting[n-1].edit, ev)
		return
	}
	t.waiting = append(t.waiting, happening{edit: []outcrop.Event{ev}})
}

// splice takes a change of the inbox. What a step claimed, and what the loop
// put back by itself after a crash, came from inside.
func (t *taker) splice(ev outcrop.Event) {
	target := word(ev.Data, "target")
	list := t.lists[target]
	at, n := number(ev.Data, "start"), number(ev.Data, "removedCount")
	removed := list[at : at+n]
	rest := slices.Clone(list[at+n:])
	list = slices.Clone(list[:at])
	for v := range jsonwire.Elements(jsonwire.Get(ev.Data, "inserted")) {
		m, err := message.Parse(v)
		if err != nil {
			continue
		}
		list = append(list, m.ID)
		putBack := t.known[m.ID] && t.turn == nil && len(t.life().turns) == 0
		t.known[m.ID] = true
		if !putBack {
			t.happens(happening{target: outcrop.InboxTarget(target), insert: &m})
		}
	}
	t.lists[target] = append(list, rest...)
	if word(ev.Data, "outcome") != "canceled" {
		return
	}
	if t.turn != nil && len(t.lists[target]) == 0 {
		t.turn.drop = true // if the turn ends as aborted; see player.cancel
	}
	for _, id := range removed {
		t.happens(happening{target: outcrop.InboxTarget(target), remove: id})
	}
}

func (t *taker) happens(h happening) {
	if t.turn == nil || !t.inStep || t.turn.drop {
		t.waiting = append(t.waiting, h)
		return
	}
	t.turn.during[t.step] = append(t.turn.during[t.step], h)
}

// entered takes a message that came into the conversation.
func (t *taker) entered(ev outcrop.Event) error {
	if !ev.Op.IsAppend() {
		t.edit(ev)
		return nil
	}
	m, err := message.Parse(ev.Data)
	if err != nil || t.turn == nil {
		return fmt.Errorf("a message outside of a turn: %v", err)
	}
	if ev.Type == outcrop.TypeUserMessage {
		t.turn.enters[t.step] = append(t.turn.enters[t.step], m)
		return nil
	}
	t.loopIDs = append(t.loopIDs, m.ID)
	if m.Source.Form == "interrupted" {
		return nil // the loop says that by itself
	}
	text := strings.TrimSuffix(message.PlainText(m.Content), "\n\nThis replaces the earlier message of the same kind.")
	t.turn.contexts[t.step] = append(t.turn.contexts[t.step], workspace.Context{Name: m.Source.Form, Text: text})
	return nil
}

// overlap finds tools that ran beside another call.
func (t *taker) overlap(ev outcrop.Event) {
	if ev.Seq == 0 {
		return
	}
	if before := t.log.At(ev.Seq - 1); before.Type == outcrop.TypeToolCall {
		t.parallel[word(before.Data, "name")] = true
		t.parallel[word(ev.Data, "name")] = true
	}
}

// result takes what a tool gave.
func (t *taker) result(ev outcrop.Event) error {
	var d struct {
		Turn, Step int
		Message    struct {
			ID      string
			Content []json.RawMessage
		}
		Error *struct{ Name, Code string }
		Meta  json.RawMessage
	}
	if err := json.Unmarshal(ev.Data, &d); err != nil || len(d.Message.Content) != 1 {
		return fmt.Errorf("a result that is not one block: %v", err)
	}
	var b message.Block
	if err := b.UnmarshalJSON(d.Message.Content[0]); err != nil {
		return err
	}
	out := tool.Outcome{Content: b.Content, IsError: b.IsError, Meta: d.Meta}
	if d.Error != nil {
		out.Err = &tool.Error{Name: d.Error.Name, Code: d.Error.Code}
	}
	t.ids = append(t.ids, d.Message.ID)
	t.results[callPlace(d.Turn, d.Step, b.ToolCallID)] = out
	return nil
}
