package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/tool"
)

// Policy says which classes of calls need a person's approval. It holds for
// one agent; nothing in a log widens it.
type Policy string

const (
	AskAll    Policy = "ask"   // edit and exec ask
	AskExec   Policy = "edits" // exec asks
	AllowAll  Policy = "all"   // nothing asks
	AllowRead Policy = "none"  // everything but read is refused
)

// What approval/policy records.
const (
	policyAsk   = "ask"
	policyNever = "never"
)

func (p Policy) check() error {
	switch p {
	case AskAll, AskExec, AllowAll, AllowRead:
		return nil
	}
	return fmt.Errorf("agent: approval policy %q: it is one of ask, edits, all, none", string(p))
}

func (p Policy) logged() string {
	if p == AllowAll {
		return policyNever
	}
	return policyAsk
}

// asks reports whether calls of a class need an answer. A class that is not
// known asks like exec.
func (p Policy) asks(c tool.Class) bool {
	switch {
	case c == tool.Read || p == AllowAll:
		return false
	case c == tool.Edit && p == AskExec:
		return false
	}
	return true
}

// Approver asks a person about a call.
type Approver interface {
	// Approve returns the answer. It waits as long as the person does, and
	// returns soon after ctx is done. ErrUnavailable says that nobody can be
	// asked; any other error counts as the same and is logged. Questions
	// come one at a time, in the model's order, each on a goroutine of its
	// own.
	Approve(ctx context.Context, q Question) (Answer, error)
}

// ErrUnavailable: there is nobody to ask.
var ErrUnavailable = errors.New("nobody to ask")

// Question is what a person is asked.
type Question struct {
	ID        string // as approval/asked records it
	CallID    string
	Tool      string
	Class     tool.Class
	Arguments string // as the model wrote them
	Preview   tool.Preview
}

// Answer is what the person said.
type Answer struct {
	Verdict Verdict
	Reason  string // for Reject: told to the model, or ""
}

// Verdict is the kind of an Answer.
type Verdict int

const (
	Reject    Verdict = iota
	AllowOnce         // this call
	AllowSame         // this call, and every call of this session with the same tool and arguments
)

// The texts of refusals.
const (
	refusedText     = "not approved by the user"
	unavailableText = "not approved: nobody to ask (run with --approve edits or --yes)"
	// With the policy edits the first way is taken already.
	unavailableExec = "not approved: nobody to ask (run with --yes)"
)

// unavailable is the text of a refusal for want of somebody to ask.
func (p Policy) unavailable() string {
	if p == AskExec {
		return unavailableExec
	}
	return unavailableText
}

func notApproved(text string) *tool.Error {
	return &tool.Error{Name: "ApprovalError", Code: "NOT_APPROVED", Msg: text}
}

// approve decides about a call that is logged and checked. nil means run it;
// otherwise the outcome is the call's result. refused says that the reason is
// a refusal. err is one of the log.
func (r *round) approve(c *pendingCall, tl tool.Tool, call tool.Call) (out *tool.Outcome, refused bool, err error) {
	a := r.t.a
	class, err := classOf(tl, call)
	if err != nil {
		a.log.Error("tool classifier panicked", "tool", call.Name, "call", call.ID, "err", err)
	}
	if !a.o.Policy.asks(class) || a.remembered[call.Name+"\x00"+c.block.Arguments] {
		return nil, false, nil
	}
	if a.o.Policy == AllowRead {
		why := "the approval policy is " + string(AllowRead)
		return r.refuse(c, "rejected", why, refusedText+": "+why)
	}
	pre, ok, err := r.preview(tl, call)
	if !ok {
		o := tool.Failed(tool.NotDispatched)
		return &o, false, nil
	}
	if err != nil {
		// The call would fail; nobody needs to be asked about that.
		o := failedBy(err)
		return &o, false, nil
	}
	if a.o.Approver == nil {
		return r.refuse(c, "unavailable", "", a.o.Policy.unavailable())
	}
	id := a.id("ap", a.s.Len())
	if _, err := a.s.Append(outcrop.ApprovalAsked{ID: id, ToolName: call.Name, CallID: call.ID}); err != nil {
		return nil, false, err
	}
	a.enterPhase(place{phase: Asking, turn: r.t.n, step: r.t.step, tool: call.Name})
	q := Question{ID: id, CallID: call.ID, Tool: call.Name, Class: class, Arguments: c.block.Arguments, Preview: pre}
	answer, ok := awaitIn(r, a.ask(r.t.ctx, q))
	if !ok {
		if _, err := a.s.Append(outcrop.ApprovalDecided{ID: id, Outcome: "cancelled"}); err != nil {
			return nil, false, err
		}
		o := tool.Failed(tool.NotDispatched)
		return &o, false, nil
	}
	outcome, text := "rejected", refusedText
	switch {
	case answer.err != nil:
		outcome, text = "unavailable", a.o.Policy.unavailable()
	case answer.Verdict == AllowOnce || answer.Verdict == AllowSame:
		outcome = "allowed-once"
	case answer.Reason != "":
		text += ": " + answer.Reason
	}
	if _, err := a.s.Append(outcrop.ApprovalDecided{ID: id, Outcome: outcome}); err != nil {
		return nil, false, err
	}
	if outcome == "allowed-once" {
		if answer.Verdict == AllowSame {
			a.remembered[call.Name+"\x00"+c.block.Arguments] = true
		}
		return nil, false, nil
	}
	o := tool.Failed(notApproved(text))
	return &o, true, nil
}

// classOf is the class of a call. A tool that panics when it is asked has the
// class that asks most.
func classOf(tl tool.Tool, call tool.Call) (class tool.Class, err error) {
	defer func() {
		if p := recover(); p != nil {
			class, err = tool.Exec, fmt.Errorf("panic: %v", p)
		}
	}()
	return tool.ClassOf(tl, call), nil
}

// refuse records a question that was answered without asking.
func (r *round) refuse(c *pendingCall, outcome, reason, text string) (*tool.Outcome, bool, error) {
	s := r.t.a.s
	id := r.t.a.id("ap", s.Len())
	_, err := s.AppendAll(
		outcrop.LogCandidate(outcrop.ApprovalAsked{ID: id, ToolName: c.block.Name, CallID: c.block.ID, Reason: reason}),
		outcrop.LogCandidate(outcrop.ApprovalDecided{ID: id, Outcome: outcome}))
	o := tool.Failed(notApproved(text))
	return &o, true, err
}

type answered struct {
	Answer
	err error
}

// ask puts a question on a goroutine of its own and contains panics.
func (a *Agent) ask(ctx context.Context, q Question) <-chan answered {
	out := make(chan answered, 1)
	go func() {
		var got answered
		defer func() {
			if p := recover(); p != nil {
				a.log.Error("approver panicked", "tool", q.Tool, "call", q.CallID, "panic", p, "stack", string(debug.Stack()))
				got = answered{err: fmt.Errorf("approver panicked: %v", p)}
			}
			out <- got
		}()
		got.Answer, got.err = a.o.Approver.Approve(ctx, q)
		if got.err != nil && !errors.Is(got.err, ErrUnavailable) && ctx.Err() == nil {
			a.log.Warn("the approval could not be asked for", "tool", q.Tool, "call", q.CallID, "err", got.err)
		}
	}()
	return out
}

// preview asks the tool what the call would do. ok is false when the turn was
// cancelled meanwhile.
func (r *round) preview(tl tool.Tool, call tool.Call) (tool.Preview, bool, error) {
	type result struct {
		tool.Preview
		err error
	}
	got := make(chan result, 1)
	go func() {
		p, err := r.tools.Preview(r.ctx, tl, call)
		got <- result{p, err}
	}()
	v, ok := awaitIn(r, got)
	return v.Preview, ok, v.err
}
