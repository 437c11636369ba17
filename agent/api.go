package agent

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// Phase says what an agent is doing.
type Phase string

const (
	Idle      Phase = "idle"
	Preparing Phase = "preparing" // sampling context, building the request, flushing
	Calling   Phase = "calling"   // waiting for the model, or reading its reply
	Retrying  Phase = "retrying"  // waiting before another attempt
	Asking    Phase = "asking"    // waiting for a person's approval
	Running   Phase = "running"   // tools run
	Ending    Phase = "ending"    // closing the turn
)

// Status is a picture of an agent at one moment.
type Status struct {
	Phase    Phase
	Turn     int    // the running turn, or the last one when idle
	Step     int    // 0 between steps
	Attempt  int    // of the model call
	Tool     string // the tool that is asked about
	Canceled bool   // the running turn was cancelled and is ending
}

// Outcome is how the last turn ended.
type Outcome struct {
	Turn   int // 0: no turn was run by this agent
	Reason outcrop.TurnReason
	// Err is what went wrong besides the reason: the log could not be made
	// durable, or the input was refused. Nil when all is well.
	Err error
}

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

// Send puts a message at the end of the inbox and wakes the agent: it gets a
// turn of its own. An empty role is user, an empty source a person, an empty id
// is made. The message is in the log when Send returns, and durable before any
// model sees it. It returns the id.
func (a *Agent) Send(ctx context.Context, m message.Message) (string, error) {
	return a.input(ctx, outcrop.NextTurn, m)
}

// Steer puts a message where the running turn's next step takes it. When
// nothing runs it starts a turn; while a cancelled turn ends it waits for the
// next one.
func (a *Agent) Steer(ctx context.Context, m message.Message) (string, error) {
	return a.input(ctx, outcrop.NextStep, m)
}

func (a *Agent) input(ctx context.Context, target outcrop.InboxTarget, m message.Message) (id string, err error) {
	if m.Role == "" {
		m.Role = message.User
	}
	if m.Source.Kind == "" && m.Source.Raw == nil {
		m.Source = message.FromUser
	}
	if m.Role != message.User {
		return "", fmt.Errorf("%w: its role is %q, it must be user", ErrInput, m.Role)
	}
	if len(m.Content) == 0 {
		return "", fmt.Errorf("%w: it is empty", ErrInput)
	}
	perr := a.post(ctx, func() { id, err = a.insert(target, m) })
	if perr != nil {
		return "", perr
	}
	return id, err
}

// insert is the owner's side of Send and Steer.
func (a *Agent) insert(target outcrop.InboxTarget, m message.Message) (string, error) {
	if a.closing {
		return "", ErrClosed
	}
	if err := a.s.Err(); err != nil {
		return "", err
	}
	if a.inbox.len() >= a.o.Limits.Inbox {
		return "", fmt.Errorf("%w: %d messages are pending", ErrInboxFull, a.inbox.len())
	}
	ending := a.turn != nil && a.turn.over()
	if ending {
		target = outcrop.NextTurn
	}
	if m.ID == "" {
		m.ID = a.id("m", a.s.Len())
	}
	if a.inbox.has(m.ID) {
		return "", fmt.Errorf("%w: a message with the id %q is pending already", ErrInput, m.ID)
	}
	at := len(*a.inbox.list(target))
	_, err := a.s.Append(outcrop.InboxSpliced{Target: target, Start: at, Inserted: []message.Message{m}})
	if err != nil {
		return "", err
	}
	a.inbox.insert(target, at, m)
	if a.turn == nil || ending {
		a.wake = true
	}
	return m.ID, nil
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

// CancelOption changes what Cancel does.
type CancelOption int

// KeepInbox leaves pending input where it is. It does not run until the next
// waking input.
const KeepInbox CancelOption = 1

// Cancel stops the running turn and, unless KeepInbox is given, drops what is
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
		a.turn.cancel(cause)
		a.mu.Lock()
		a.status.Canceled = true
		a.mu.Unlock()
	}
	a.wake = false
	for _, o := range opts {
		if o == KeepInbox {
			return nil, nil
		}
	}
	var dropped []message.Message
	for _, target := range []outcrop.InboxTarget{outcrop.NextStep, outcrop.NextTurn} {
		list := a.inbox.list(target)
		if len(*list) == 0 {
			continue
		}
		_, err := a.s.Append(outcrop.InboxSpliced{Target: target, RemovedCount: len(*list), Canceled: true})
		if err != nil {
			return dropped, err
		}
		dropped = append(dropped, *list...)
		*list = nil
	}
	return dropped, nil
}

// Wait returns when the agent is idle: no turn runs and none is about to.
func (a *Agent) Wait(ctx context.Context) (Outcome, error) {
	w := make(chan struct{})
	err := a.post(ctx, func() {
		if a.turn == nil && !a.wake {
			close(w)
			return
		}
		a.waiters = append(a.waiters, w)
	})
	if err != nil {
		return Outcome{}, err
	}
	select {
	case <-w:
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
	return a.lastOutcome(), nil
}

func (a *Agent) lastOutcome() Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// Status is what the agent does now. It never waits.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

func (a *Agent) setStatus(st Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	st.Canceled = st.Phase != Idle && a.status.Canceled && a.status.Turn == st.Turn
	a.status = st
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

// Maintain runs f on the owner while nothing else can append: for operations
// on the history. It fails with ErrBusy when a turn runs. What f appended is
// flushed before Maintain returns nil.
func (a *Agent) Maintain(ctx context.Context, f func(s *outcrop.Session) error) error {
	var err error
	perr := a.post(ctx, func() {
		switch {
		case a.closing:
			err = ErrClosed
		case a.turn != nil || a.wake:
			err = ErrBusy
		default:
			err = contained(func() error { return f(a.s) })
		}
	})
	if perr != nil {
		return perr
	}
	if err != nil {
		return err
	}
	return a.live.Flush(ctx)
}

// edit is Stage.Edit.
func (a *Agent) edit(ctx context.Context, st Stage, f func(s *outcrop.Session) error) error {
	var err error
	if perr := a.post(ctx, func() { err = contained(func() error { return f(a.s) }) }); perr != nil {
		return perr
	}
	return err
}

// contained turns a panic into an error.
func contained(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// Observe calls f for each event that is committed from now on, in order, on a
// goroutine of its own. A slow f delays nobody: it reads the log at its own
// pace. f may call the agent, but not stop. The event is a view of the log:
// Clone what is kept. stop returns when f has seen everything that was
// committed before it was called; f is not called again.
func (a *Agent) Observe(f func(outcrop.Event)) (stop func()) {
	return a.watch.add(f, a.log)
}

// Close cancels the running turn, keeps what is pending, and ends the agent;
// when ctx ends first, waiting for the disk is given up. The session and its
// store stay open: they are the caller's. A second Close returns at once.
func (a *Agent) Close(ctx context.Context) error {
	err := a.post(ctx, func() {
		a.closing = true
		_, _ = a.cancel(Cause{Kind: Disposed}, KeepInbox)
	})
	switch {
	case err == ErrClosed:
		return nil
	case err != nil:
		a.kill()
		return err
	}
	select {
	case <-a.ended:
		a.kill()
		return nil
	case <-ctx.Done():
		a.kill()
		return ctx.Err()
	}
}
