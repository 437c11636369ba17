package agent

import (
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
