package agent

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// Cause says why a turn is cancelled.
type Cause struct {
	Kind   CauseKind
	Reason string // for ByHook
}

// CauseKind is the kind of a Cause, as turn/end records it.
type CauseKind string

const (
	ByUser   CauseKind = "user"
	ByParent CauseKind = "parent"
	ByHook   CauseKind = "hook"
	Disposed CauseKind = "disposed"
)

// Error implements error, so that a Cause can be the cause of a context.
func (c Cause) Error() string {
	if c.Reason != "" {
		return "cancelled: " + c.Reason
	}
	return "cancelled (" + string(c.Kind) + ")"
}

// CancelOption changes what Cancel does.
type CancelOption int

// KeepInbox leaves pending input where it is. It does not run until the next
// waking input.
const KeepInbox CancelOption = 1

// Cancel stops the running turn or operation and, unless KeepInbox is given, drops what is
// pending, also when nothing runs; it returns the messages that it dropped, so
// that their text can be given back to the person. The first cause counts. The
// turn ends soon after; Wait waits for that.
func (a *Agent) Cancel(ctx context.Context, cause Cause, opts ...CancelOption) (dropped []message.Message, err error) {
	perr := a.post(ctx, func() { dropped, err = a.cancel(cause, opts...) })
	if perr != nil {
		return nil, perr
	}
	return dropped, err
}

func (a *Agent) cancel(cause Cause, opts ...CancelOption) ([]message.Message, error) {
	// First the signal: whatever the splices come to, the turn ends.
	if a.turn != nil {
		a.turn.stop(cause)
		a.show(func(st *Status) { st.Canceled = true })
	}
	if a.operation != nil {
		a.operation.stop(cause)
	}
	a.wake = false
	for _, o := range opts {
		if o == KeepInbox {
			return nil, nil
		}
	}
	defer a.showInbox()
	var dropped []message.Message
	for _, target := range []outcrop.InboxTarget{outcrop.NextStep, outcrop.NextTurn} {
		n := len(*a.inbox.list(target))
		if n == 0 {
			continue
		}
		_, err := a.s.Append(outcrop.InboxSpliced{Target: target, RemovedCount: n, Canceled: true})
		if err != nil {
			return dropped, err
		}
		dropped = append(dropped, a.inbox.drop(target)...)
	}
	return dropped, nil
}
