package agent

import (
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// inbox is the fold of the agent/inbox/spliced events: two lists of messages.
// A turn begins with all of nextStep and one of nextTurn; later steps take
// nextStep.
//
// While hooks are asked about a step, what it will take is reserved: the first
// messages of each list. It stays pending in the log until the step begins, so
// a crash or an error of a hook loses nothing; what comes meanwhile stands
// behind it and enters at the next step.
type inbox struct {
	nextStep []message.Message
	nextTurn []message.Message

	reservedStep, reservedTurn int
}

func (b *inbox) list(t outcrop.InboxTarget) *[]message.Message {
	if t == outcrop.NextStep {
		return &b.nextStep
	}
	return &b.nextTurn
}

func (b *inbox) reserved(t outcrop.InboxTarget) *int {
	if t == outcrop.NextStep {
		return &b.reservedStep
	}
	return &b.reservedTurn
}

func (b *inbox) len() int { return len(b.nextStep) + len(b.nextTurn) }

func (b *inbox) has(id string) bool {
	same := func(m message.Message) bool { return m.ID == id }
	return slices.ContainsFunc(b.nextStep, same) || slices.ContainsFunc(b.nextTurn, same)
}

// find finds a message that is pending and not reserved.
func (b *inbox) find(id string) (t outcrop.InboxTarget, at int, ok bool) {
	for _, t := range []outcrop.InboxTarget{outcrop.NextStep, outcrop.NextTurn} {
		for i, m := range *b.list(t) {
			if m.ID == id && i >= *b.reserved(t) {
				return t, i, true
			}
		}
	}
	return "", 0, false
}

func (b *inbox) insert(t outcrop.InboxTarget, at int, m ...message.Message) {
	l := b.list(t)
	*l = slices.Insert(*l, at, m...)
}

func (b *inbox) remove(t outcrop.InboxTarget, at int) message.Message {
	l := b.list(t)
	m := (*l)[at]
	*l = slices.Concat((*l)[:at], (*l)[at+1:])
	return m
}

// drop empties a list and returns what was in it.
func (b *inbox) drop(t outcrop.InboxTarget) []message.Message {
	l := b.list(t)
	dropped := *l
	*l, *b.reserved(t) = nil, 0
	return dropped
}

// reserve sets aside what the next step takes, the first one of a turn or a
// later one, and returns it.
func (b *inbox) reserve(first bool) []message.Message {
	b.reservedStep, b.reservedTurn = len(b.nextStep), 0
	if first {
		b.reservedTurn = min(1, len(b.nextTurn))
	}
	return slices.Concat(b.nextStep[:b.reservedStep], b.nextTurn[:b.reservedTurn])
}

// release takes a reservation back.
func (b *inbox) release() { b.reservedStep, b.reservedTurn = 0, 0 }

// claims makes the splices that take what is reserved. Messages that do not
// enter, because a hook left them out, are removed and not claimed: what was
// claimed and did not enter counts as lost when the log is opened again.
func (b *inbox) claims(enters func(message.Message) bool) (claims []outcrop.Candidate) {
	for _, t := range []outcrop.InboxTarget{outcrop.NextStep, outcrop.NextTurn} {
		n := *b.reserved(t)
		for i := n - 1; i >= 0; i-- {
			if !enters((*b.list(t))[i]) {
				claims = append(claims, outcrop.LogCandidate(outcrop.InboxSpliced{Target: t, Start: i, RemovedCount: 1, Canceled: true}))
				n--
			}
		}
		if n > 0 {
			claims = append(claims, outcrop.LogCandidate(outcrop.InboxSpliced{Target: t, RemovedCount: n}))
		}
	}
	return claims
}

// take removes what is reserved, once its claims are committed.
func (b *inbox) take() {
	for _, t := range []outcrop.InboxTarget{outcrop.NextStep, outcrop.NextTurn} {
		l, n := b.list(t), b.reserved(t)
		*l = slices.Clone((*l)[*n:])
		if len(*l) == 0 {
			*l = nil
		}
		*n = 0
	}
}

// splice applies the data of one agent/inbox/spliced event and returns what it
// removed and whether as a claim. A splice that reaches beyond the list, which
// no writer of ours makes, is cut to what is there; ok is then false.
func (b *inbox) splice(data []byte) (removed []message.Message, claim, ok bool) {
	target, _ := jsonwire.Text(jsonwire.Get(data, "target"))
	if target != string(outcrop.NextStep) && target != string(outcrop.NextTurn) {
		return nil, false, false
	}
	l := b.list(outcrop.InboxTarget(target))
	ok = true
	start, good := jsonwire.Int(jsonwire.Get(data, "start"))
	if !good || start < 0 || start > int64(len(*l)) {
		start, ok = min(max(start, 0), int64(len(*l))), false
	}
	count := int64(0)
	if v := jsonwire.Get(data, "removedCount"); v != nil {
		if count, good = jsonwire.Int(v); !good || count < 0 || count > int64(len(*l))-start {
			count, ok = min(max(count, 0), int64(len(*l))-start), false
		}
	}
	var inserted []message.Message
	for v := range jsonwire.Elements(jsonwire.Get(data, "inserted")) {
		if m, err := message.Parse(v); err == nil {
			inserted = append(inserted, m)
		}
	}
	removed = slices.Clone((*l)[start : start+count])
	*l = slices.Concat((*l)[:start], inserted, (*l)[start+count:])
	claim = !jsonwire.TextIs(jsonwire.Get(data, "outcome"), "canceled")
	return removed, claim, ok
}
