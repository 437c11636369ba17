package agent

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// Hooks are the places where a program takes part in the loop. Contributors
// add, deciders decide: each contributor is asked and what they give is joined
// in order; deciders are asked in order, each gets what the one before decided.
//
// A hook runs on a goroutine of its own while the owner goes on reading mails,
// so it may call the agent (Send, Steer, Inject, Cancel); it must return soon
// after its ctx is done, which is the turn's. One that does not is left behind
// after the time of grace. An error or a panic of a hook ends the turn as an
// error; what was pending stays pending.
type Hooks struct {
	Contributors []Contributor
	PreStep      []PreStepDecider
	Request      []RequestDecider
	RequestError []RequestErrorDecider
	BeforeTool   []BeforeTool
	AfterTool    []AfterTool
	Stopping     []StoppingContributor
}

// Stage is where in the loop a hook is asked.
type Stage struct {
	Turn    int
	Step    int // the step that is about to begin, or runs
	Attempt int // of the model call; 0 outside one

	// Header and Log are the session's; the log is the prefix that was
	// committed when the hook was asked.
	Header outcrop.Header
	Log    outcrop.Log

	agent *Agent
}

// Edit runs f on the session's one appender and waits for it: the way to change
// the history from a hook. f gets the session as it is then. It is allowed in
// PreStep and RequestError; elsewhere it fails with ErrBusy. What f appended is
// durable before the next model call.
func (st Stage) Edit(ctx context.Context, f func(s *outcrop.Session) error) error {
	return st.agent.edit(ctx, st, f)
}

// Contributor adds contexts to a step that is about to begin. They are appended
// when they are due (see workspace.Due), behind the input of the step.
type Contributor interface {
	Contribute(ctx context.Context, st Stage) ([]workspace.Context, error)
}

// PreStepDecider decides, before a step begins, what enters it.
type PreStepDecider interface {
	// PreStep gets the messages that were claimed for the step, in order, and
	// returns what enters: the same, changed ones, fewer or more. An empty
	// list begins no step: the turn ends as completed. reject ends the turn as
	// blocked; then the messages that were claimed are not entered.
	PreStep(ctx context.Context, st Stage, claimed []message.Message) (enter []message.Message, reject bool, err error)
}

// RequestDecider chooses provider and settings of a model call. It gets a
// config that it cannot change and returns one; messages, system prompt and
// tools change by events only, and are derived afterwards.
type RequestDecider interface {
	Request(ctx context.Context, st Stage, c llm.Config) (llm.Config, error)
}

// RequestErrorDecider is asked about an attempt that failed and that the retry
// policy does not repeat, in order until one says retry. One that changed the
// history (after an overflow) says retry to have the request built again.
type RequestErrorDecider interface {
	RequestError(ctx context.Context, st Stage, f *message.Failure) (retry bool, err error)
}

// BeforeTool decides whether a call may run, before a person is asked. It is
// asked in the model's order. A deny with a reason becomes the call's result.
type BeforeTool interface {
	BeforeTool(ctx context.Context, st Stage, t tool.Tool, call tool.Call) (deny string, err error)
}

// AfterTool sees the outcome of each call that ran, in the model's order, and
// returns what is committed, and messages that enter at the next step, behind
// all results.
type AfterTool interface {
	AfterTool(ctx context.Context, st Stage, call tool.Call, out tool.Outcome) (tool.Outcome, []message.Message, error)
}

// StoppingContributor is asked when the model has nothing more to do. The
// messages that it returns enter a further step of the same turn.
type StoppingContributor interface {
	Stopping(ctx context.Context, st Stage) ([]message.Message, error)
}
