package agent

import (
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// DropPending cancels what waits in the inbox of a session that no agent has,
// and returns it, oldest first: input for the next step, then for turns to come.
// Messages that a crash left claimed and not entered are among them.
func DropPending(s *outcrop.Session) ([]message.Message, error) {
	h := readHistory(s.Log(), s.Header())
	var group []outcrop.Candidate
	var dropped []message.Message
	for _, target := range []outcrop.InboxTarget{outcrop.NextStep, outcrop.NextTurn} {
		var again []message.Message
		for _, c := range h.limbo {
			if c.target == target && !h.inbox.has(c.m.ID) {
				again = append(again, c.m)
			}
		}
		if len(again) > 0 {
			group = append(group, outcrop.LogCandidate(outcrop.InboxSpliced{Target: target, Inserted: again}))
		}
		all := slices.Concat(again, *h.inbox.list(target))
		if len(all) > 0 {
			group = append(group, outcrop.LogCandidate(outcrop.InboxSpliced{Target: target, RemovedCount: len(all), Canceled: true}))
			dropped = append(dropped, all...)
		}
	}
	if len(group) == 0 {
		return nil, nil
	}
	_, err := s.AppendAll(group...)
	if err != nil {
		return nil, err
	}
	return dropped, nil
}

// Deliver puts a message at the end of the inbox of a session that no agent has,
// as Send and Steer do, and returns its event. The agent that is made on the
// session later finds it pending. An empty role is user, an empty source a
// person; an id is needed, and one that is pending is refused. At most limit
// messages may be pending, 0: the default of Limits. It is for the caller to make
// the event durable.
func Deliver(s *outcrop.Session, target outcrop.InboxTarget, m message.Message, limit int) (outcrop.Event, error) {
	m, err := fitting(m, message.FromUser)
	if err != nil {
		return outcrop.Event{}, err
	}
	if m.ID == "" {
		return outcrop.Event{}, fmt.Errorf("%w: it has no id", ErrInput)
	}
	h := readHistory(s.Log(), s.Header())
	if h.inbox.has(m.ID) || slices.ContainsFunc(h.limbo, func(c claimed) bool { return c.m.ID == m.ID }) {
		return outcrop.Event{}, fmt.Errorf("%w: a message with the id %q is pending already", ErrInput, m.ID)
	}
	waiting := h.inbox.len() + len(h.limbo)
	if most := (Limits{Inbox: limit}).withDefaults().Inbox; waiting >= most {
		return outcrop.Event{}, fmt.Errorf("%w: %d messages are pending", ErrInboxFull, waiting)
	}
	return s.Append(outcrop.InboxSpliced{Target: target, Start: len(*h.inbox.list(target)), Inserted: []message.Message{m}})
}
