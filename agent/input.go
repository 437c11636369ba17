package agent

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// Send puts a message at the end of the inbox and wakes the agent: it gets a
// turn of its own. An empty role is user, an empty source a person, an empty id
// is made. The message is in the log when Send returns, and durable before any
// model sees it. It returns the id. A message that the log refuses is not
// pending, and the error says why.
func (a *Agent) Send(ctx context.Context, m message.Message) (string, error) {
	return a.input(ctx, outcrop.NextTurn, m, message.FromUser, true)
}

// Steer puts a message where the running turn's next step takes it. When
// nothing runs it starts a turn; while a cancelled turn ends it waits for the
// next one.
func (a *Agent) Steer(ctx context.Context, m message.Message) (string, error) {
	return a.input(ctx, outcrop.NextStep, m, message.FromUser, true)
}

// GoOn is Send with a place before everything else that waits for a turn: for a
// message that goes on with a turn that was interrupted.
func (a *Agent) GoOn(ctx context.Context, m message.Message) (string, error) {
	return a.inputAt(ctx, outcrop.NextTurn, true, m, injected, true)
}

// Inject puts a message where the next step takes it, and wakes nobody: in an
// idle agent it waits for the next input, in a running one it makes a further
// step. An empty source says that a program wrote it. Otherwise it is like
// Send.
func (a *Agent) Inject(ctx context.Context, m message.Message) (string, error) {
	return a.input(ctx, outcrop.NextStep, m, injected, false)
}

// injected is the source of a message that a program or a hook put in without
// saying more.
var injected = message.Source{Kind: "plugin", Plugin: "outcrop", Form: "notice", Summary: "injected"}

func (a *Agent) input(ctx context.Context, target outcrop.InboxTarget, m message.Message, from message.Source, wake bool) (id string, err error) {
	return a.inputAt(ctx, target, false, m, from, wake)
}

func (a *Agent) inputAt(ctx context.Context, target outcrop.InboxTarget, front bool, m message.Message, from message.Source, wake bool) (id string, err error) {
	if m, err = fitting(m, from); err != nil {
		return "", err
	}
	perr := a.post(ctx, func() {
		if a.closing {
			err = ErrClosed
			return
		}
		id, err = a.insertAt(target, front, m, wake)
	})
	if perr != nil {
		return "", perr
	}
	return id, err
}

// fitting is a message as the inbox and a step take it, or ErrInput.
func fitting(m message.Message, from message.Source) (message.Message, error) {
	if m.Role == "" {
		m.Role = message.User
	}
	if m.Source.Kind == "" && m.Source.Raw == nil {
		m.Source = from
	}
	if m.Role != message.User {
		return m, fmt.Errorf("%w: its role is %q, it must be user", ErrInput, m.Role)
	}
	if len(m.Content) == 0 {
		return m, fmt.Errorf("%w: it is empty", ErrInput)
	}
	return m, nil
}

// insert is the owner's side of the three, and what hooks give goes in by it.
func (a *Agent) insert(target outcrop.InboxTarget, m message.Message, wake bool) (string, error) {
	return a.insertAt(target, false, m, wake)
}

func (a *Agent) insertAt(target outcrop.InboxTarget, front bool, m message.Message, wake bool) (string, error) {
	if err := a.s.Err(); err != nil {
		return "", err
	}
	if a.inbox.len() >= a.o.Limits.Inbox {
		return "", fmt.Errorf("%w: %d messages are pending", ErrInboxFull, a.inbox.len())
	}
	ending := a.turn != nil && a.turn.over()
	if ending && wake {
		target = outcrop.NextTurn
	}
	if m.ID == "" {
		m.ID = a.id("m", a.s.Len())
	}
	if a.inbox.has(m.ID) {
		return "", fmt.Errorf("%w: a message with the id %q is pending already", ErrInput, m.ID)
	}
	at := len(*a.inbox.list(target))
	if front {
		at = *a.inbox.reserved(target) // what a step is about to take stays before it
	}
	ev, err := a.s.Append(outcrop.InboxSpliced{Target: target, Start: at, Inserted: []message.Message{m}})
	if err != nil {
		return "", err
	}
	// From here on it is the log's: the caller may change what it sent.
	a.inbox.splice(ev.Data)
	a.showInbox()
	if wake && (a.turn == nil || ending) {
		a.wake = true
	}
	return m.ID, nil
}

// Remove takes a pending message back, so that it never enters, and returns
// it. It reports false when no message with that id is pending, or when it is
// about to enter a step.
func (a *Agent) Remove(ctx context.Context, id string) (m message.Message, removed bool, err error) {
	perr := a.post(ctx, func() { m, removed, err = a.remove(id) })
	if perr != nil {
		return message.Message{}, false, perr
	}
	return m, removed, err
}

func (a *Agent) remove(id string) (m message.Message, removed bool, err error) {
	target, at, ok := a.inbox.find(id)
	if !ok {
		return m, false, nil
	}
	if _, err := a.s.Append(outcrop.InboxSpliced{Target: target, Start: at, RemovedCount: 1, Canceled: true}); err != nil {
		return m, false, err
	}
	m = a.inbox.remove(target, at)
	a.showInbox()
	return m, true, nil
}

// Wake runs what is pending, without new input. It does nothing when nothing
// is pending, and reports whether something is.
func (a *Agent) Wake(ctx context.Context) (pending bool, err error) {
	perr := a.post(ctx, func() {
		if err = a.s.Err(); err != nil || a.closing {
			return
		}
		pending = a.inbox.len() > 0
		if pending && (a.turn == nil || a.turn.over()) {
			a.wake = true
		}
	})
	if perr != nil {
		return false, perr
	}
	return pending, err
}

// Pending returns what waits in the inbox: for the next step of the running
// turn, and for turns to come.
func (a *Agent) Pending(ctx context.Context) (nextStep, nextTurn []message.Message, err error) {
	err = a.post(ctx, func() {
		nextStep = append(nextStep, a.inbox.nextStep...)
		nextTurn = append(nextTurn, a.inbox.nextTurn...)
	})
	return nextStep, nextTurn, err
}
