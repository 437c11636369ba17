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
//	before a step    Contributors, then PreStep
//	before a call    Request
//	a call failed    RequestError
//	before a tool    BeforeTool
//	after a tool     AfterTool
//	nothing to do    Stopping
//
// A hook runs on a goroutine of its own while the owner goes on reading mails,
// so it may call the agent (Send, Steer, Inject, Remove, Cancel, the setters),
// but not Wait, Maintain or Close, which wait for the turn. It must return soon
// after its ctx is done, which is the turn's; one that does not is left behind
// after the time of grace. An error or a panic of a hook ends the turn as an
// error; what was pending stays pending, and calls that wait are answered. When
// the turn was cancelled the turn ends as aborted, and the error is logged.
//
// Before the hooks of a turn's first step are asked the turn is opened, and
// what the step will take is still pending: what happens in between loses no
// input. Messages that hooks get share no memory with the loop.
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
	pass  *pass
}

// Edit runs f on the session's one appender and waits for it: the way to change
// the history from a hook. f gets the session as it is then; it must be short,
// and must not call the agent. It is allowed in PreStep and RequestError, until
// the hook returns; elsewhere it fails with ErrBusy and f does not run. What f
// appended is durable before the next model call. A panic of f is its error.
func (st Stage) Edit(ctx context.Context, f func(s *outcrop.Session) error) error {
	if st.agent == nil {
		return ErrBusy
	}
	return st.agent.edit(ctx, st.pass, f)
}

// Contributor adds contexts to a step that is about to begin. They are appended
// when they are due (see workspace.Due), behind the input of the step. Of two
// contexts with one name the later one counts; Options.Contexts come first. A
// context that an edit takes off the surface while the step runs is appended
// again before the next model call.
type Contributor interface {
	Contribute(ctx context.Context, st Stage) ([]workspace.Context, error)
}

// PreStepDecider decides, before a step begins, what enters it.
type PreStepDecider interface {
	// PreStep gets the messages that the step will take, in order, and returns
	// what enters: the same, changed ones, fewer or more. What is left out is
	// removed from the inbox; a changed message keeps its id. An empty list
	// begins no step, unless the model has yet to see the results of tools:
	// the turn ends as it would without the step, its first one as completed.
	// reject ends the turn as blocked; then the messages are taken and do not
	// enter.
	PreStep(ctx context.Context, st Stage, claimed []message.Message) (enter []message.Message, reject bool, err error)
}

// RequestDecider chooses model and settings of a model call. It gets a config
// of its own and returns one; the provider stays (SetModel changes it), and
// messages, system prompt and tools change by events only, and are derived
// afterwards. The header that is logged says what was decided. Of another model
// than the agent's neither window nor price nor images are known.
type RequestDecider interface {
	Request(ctx context.Context, st Stage, c llm.Config) (llm.Config, error)
}

// RequestErrorDecider is asked about an attempt that failed and that the retry
// policy does not repeat, in order until one says retry. One that changed the
// history (after an overflow) says retry to have the request built again. A
// request that was refused before it was sent is an attempt too. When the same
// request fails again and again, the failure stands all the same.
type RequestErrorDecider interface {
	RequestError(ctx context.Context, st Stage, f *message.Failure) (retry bool, err error)
}

// BeforeTool decides whether a call may run, before a person is asked. It is
// asked in the model's order, about calls whose tool and arguments are right. A
// deny with a reason becomes the call's result; "" lets it run.
type BeforeTool interface {
	BeforeTool(ctx context.Context, st Stage, t tool.Tool, call tool.Call) (deny string, err error)
}

// AfterTool sees the outcome of each call that ran, in the model's order, also
// when the turn was cancelled, and returns what is committed, and messages that
// enter at the next step, behind all results. When the turn was cancelled they
// wait in the inbox. If it fails, the outcome is withheld: it may be what had
// to be kept from the model.
type AfterTool interface {
	AfterTool(ctx context.Context, st Stage, call tool.Call, out tool.Outcome) (tool.Outcome, []message.Message, error)
}

// StoppingContributor is asked when the model has nothing more to do. The
// messages that it returns enter a further step of the same turn.
type StoppingContributor interface {
	Stopping(ctx context.Context, st Stage) ([]message.Message, error)
}
