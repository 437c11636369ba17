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
type inbox struct {
	nextStep []message.Message
	nextTurn []message.Message
}

func (b *inbox) list(t outcrop.InboxTarget) *[]message.Message {
	if t == outcrop.NextStep {
		return &b.nextStep
	}
	return &b.nextTurn
}

func (b *inbox) len() int { return len(b.nextStep) + len(b.nextTurn) }

func (b *inbox) has(id string) bool {
	same := func(m message.Message) bool { return m.ID == id }
	return slices.ContainsFunc(b.nextStep, same) || slices.ContainsFunc(b.nextTurn, same)
}

func (b *inbox) insert(t outcrop.InboxTarget, at int, m ...message.Message) {
	l := b.list(t)
	*l = slices.Insert(*l, at, m...)
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
