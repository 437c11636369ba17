package agent

import "github.com/outcrop-dev/outcrop"

// Phase says what an agent is doing.
type Phase string

const (
	Idle      Phase = "idle"
	Preparing Phase = "preparing" // asking hooks, sampling context, building the request, flushing
	Calling   Phase = "calling"   // waiting for the model, or reading its reply
	Retrying  Phase = "retrying"  // waiting before another attempt
	Asking    Phase = "asking"    // waiting for a person's approval
	Running   Phase = "running"   // tools run
	Ending    Phase = "ending"    // closing the turn
	Operating Phase = "operating" // an operation on the history runs, see Agent.Operate
)

// Status is a picture of an agent at one moment: what a person's screen shows.
type Status struct {
	Phase    Phase
	Turn     int    // the running turn, or the last one when idle
	Step     int    // 0 between steps
	Attempt  int    // of the model call
	Tool     string // the tool that runs, or that is asked about
	Canceled bool   // the running turn was cancelled and is ending

	// Tokens is the size of the last request: as the provider counted it, or
	// the estimate before it did. 0 before the first request of this agent.
	Tokens int64
	// Window is the context window of the model in tokens, 0 when unknown.
	Window int64
	// SpentMicroUSD is what the calls of this agent cost, in micro-dollars.
	// Calls that cost nobody knows what are not in it; Unpriced counts them.
	SpentMicroUSD int64
	Unpriced      int
	// Pending is how many messages wait in the inbox.
	Pending int
}

// Outcome is how the last turn ended.
type Outcome struct {
	Turn   int // 0: no turn was run by this agent
	Reason outcrop.TurnReason
	// Err is what went wrong besides the reason: the log could not be made
	// durable, or the input was refused. Nil when all is well.
	Err error
}

// Status is what the agent does now. It never waits.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// place is the part of a Status that a phase of the loop sets.
type place struct {
	phase               Phase
	turn, step, attempt int
	tool                string
}

func (a *Agent) enterPhase(p place) {
	a.show(func(st *Status) {
		st.Canceled = p.phase != Idle && st.Canceled && st.Turn == p.turn
		st.Phase, st.Turn, st.Step, st.Attempt, st.Tool = p.phase, p.turn, p.step, p.attempt, p.tool
	})
}

// show changes what Status tells.
func (a *Agent) show(change func(*Status)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.status)
}

// showInbox is called by whoever changed the inbox.
func (a *Agent) showInbox() {
	n := a.inbox.len()
	a.show(func(st *Status) { st.Pending = n })
}

func (a *Agent) setOutcome(o Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = o
}

func (a *Agent) lastOutcome() Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}
