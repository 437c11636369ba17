// Package agent is the loop between a person, a model and tools: it takes
// input from a durable inbox, opens turns and steps, calls the model, runs the
// tools that the model asks for, and records each of it in the session's log
// before the next thing happens.
//
// # One goroutine
//
// One goroutine, the owner, has the session: inbox, phase and every append.
// All calls of the API are mails to it, and while it waits (for a chunk, a
// tool, a person, the disk, the clock) it goes on reading mails. So there is no
// moment between two states: input that arrives while a turn ends is either
// part of it or starts the next one, and a cancel is never lost.
//
// The session's own vetoes and observers run on the owner and must not call
// the agent. Who wants to call it from an observer uses [Agent.Observe], whose
// functions run on goroutines of their own. Hooks ([Hooks]), tools, the provider
// and the approver run on goroutines of their own too, and may call it: what
// they send, steer, inject or cancel is done when the call returns, or the call
// returns an error. An idle agent has one goroutine, which sleeps.
//
// # Order of events
//
//	agent/inbox/spliced    insert (Send, Steer)
//	approval/policy        when it differs from what the log says
//	turn/start             \
//	agent/inbox/spliced     | claim: all of next-step, one of next-turn
//	step/start              | one group: all or none
//	user/message ...        |
//	context/message ...    /  what is due
//	request/header         when owed: initial, resume, change
//	request/context        when changed
//	outcrop/request        before each attempt
//	assistant/chunk ...
//	assistant/message      sources: the chunks of the attempt that succeeded
//	tool/call, approval/asked, approval/decided, tool/result ...
//	step/end
//	  next step: claim of next-step, step/start, ...
//	turn/end
//
// The first group is one batch in the store, so input cannot be claimed and
// then lost. When a veto refuses the input in it, the turn is opened all the
// same, the input is claimed and the turn ends as blocked. When it refuses
// something else of the group, the turn ends as an error and the input stays
// pending; when it refuses the turn itself there is no turn.
//
// With contributors or pre-step hooks the turn is opened before they are asked,
// and the group begins with the claim. Input that they leave out is removed
// from the inbox, not claimed. A turn that is cancelled before its first step
// is recorded all the same, with its end.
//
// # Requests
//
// A request is built from the log alone, when all that hooks decide about it is
// decided; what it is built from is told by outcrop/request. Its reply may have
// what the window leaves, less a margin of 1,024 tokens or a fiftieth of the
// window. A request that leaves nothing is refused here, before it is announced,
// with the code that a provider uses for it; it is no attempt. Sizes are what
// the provider counted last and the estimate of what came since.
//
// How a turn ends is one thing, whether it goes on another: a reply that was cut
// off makes the turn end as max-tokens, and the model still sees the results of
// what it asked for in other steps.
//
// # What is durable when
//
// The agent flushes before each effect: before a model is called (this covers
// the input, the header and what earlier steps did), before a tool runs and
// after it was approved, and at the end of a turn. Results that come while other
// calls still run are flushed without waiting. A flush that fails stops the
// turn: there is no effect without a record.
//
// # What always holds
//
//   - Each call of a committed assistant/message has exactly one tool/result
//     before step/end, whatever happened: error, panic, cancel, unknown tool,
//     bad arguments, a failed flush.
//   - Ids of calls are unique and not empty within a message.
//   - A step or turn that was opened is closed. When the closer cannot be
//     written the session has failed, and every later call says so.
//   - What is sent to a model is built from the session's messages alone, and
//     passes llm.Check.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

var (
	// ErrClosed: the agent was closed.
	ErrClosed = errors.New("agent is closed")
	// ErrBusy: a turn is running; the call needs an idle agent.
	ErrBusy = errors.New("a turn is running")
	// ErrInboxFull: too much input is pending; Cancel or wait.
	ErrInboxFull = errors.New("the inbox is full")
	// ErrInput: a message that cannot be sent.
	ErrInput = errors.New("message cannot be sent")
)

// Live is the part of a store's live session that the agent uses.
type Live interface {
	Session() *outcrop.Session
	// Flush returns nil when every event that was appended before the call
	// is durable.
	Flush(ctx context.Context) error
}

// Options of an agent. Live, Provider and Config.Model are needed.
type Options struct {
	Live Live

	// The model that the agent begins with, see Model and SetModel.
	Provider llm.Provider
	Config   llm.Config
	Window   int64
	Price    *llm.Price
	Images   bool
	// Objects has the bytes of attachments; nil: none are here.
	Objects llm.Objects

	// System is the system prompt.
	System string
	// Tools are offered to the model; nil: none.
	Tools *tool.Registry
	// Contexts samples, at the start of each turn, what the program tells
	// the model about its environment; nil: nothing. It runs on a goroutine
	// of its own.
	Contexts func(ctx context.Context) []workspace.Context

	// Hooks take part in the loop.
	Hooks Hooks

	// Policy says which calls need a person's approval; empty: AskAll.
	Policy Policy
	// Approver asks the person; nil: nobody can be asked.
	Approver Approver

	Limits Limits
	Retry  RetryPolicy

	// Guard is asked right before each tool starts, when its call is durable;
	// an error keeps the tool from starting and ends the turn. It is for a
	// session that can be taken away, as store.Live.Held tells, and runs on a
	// goroutine of its own. Nil: nobody is asked.
	Guard func(ctx context.Context) error
	// Epoch is the number of the session's lease, which tools get with their
	// calls; 0 where there is none.
	Epoch uint64

	// NewID makes ids of messages, retries and questions; nil: the seq of
	// the event that carries it, with a letter, so that a run on the same
	// log gives the same ids.
	NewID func() string
	// Clock is for back-off and time limits; nil: the system's.
	Clock Clock
	// Rand gives numbers in [0, 1) for the jitter of back-off; nil: none.
	Rand   func() float64
	Logger *slog.Logger
}

// Agent runs one session. All methods may be called from any goroutine.
type Agent struct {
	o    Options
	live Live
	s    *outcrop.Session
	log  *slog.Logger

	mails chan func()
	ended chan struct{} // closed when the owner is gone
	life  context.Context
	kill  context.CancelFunc
	watch *watchers

	// Owned by the owner.
	model      Model
	tools      *offering
	inbox      inbox
	lastTurn   int
	policy     string // what the log says, approval/policy
	headerDone bool   // this agent has logged a request header
	headerIs   []byte // the one in force, when nothing else logged one since
	cutText    string // visible text of the attempt that a crash cut
	resumed    Resumed
	spent      int64 // micro-dollars
	turn       *turn // nil when idle
	wake       bool  // waking input that no turn has taken
	closing    bool
	waiters    []chan struct{}
	headers    headers
	parsed     parsedMessages
	told       toldContexts
	builder    llm.Builder // the session only grows: both look at what is new
	checker    llm.Checker
	cache      *llm.Cache
	counted    counted
	remembered map[string]bool        // calls approved for this session
	operation  *operation             // the one that runs, nil when none does
	bracket    *outcrop.CompactionEnd // that would close the compaction that has begun, nil when none has

	mu     sync.Mutex
	status Status
	last   Outcome
}

// New starts an agent on a session. It reads the log once: pending input is
// found again, and input that was claimed but never entered (a crash came
// between) is put back at the front of the inbox by one insert each. Nothing
// runs until Send, Steer or Wake.
func New(o Options) (*Agent, error) {
	if o.Live == nil {
		return nil, errors.New("agent: a live session is needed")
	}
	model := Model{Provider: o.Provider, Config: cloneConfig(o.Config), Window: o.Window, Price: o.Price, Images: o.Images}
	if err := model.check(); err != nil {
		return nil, err
	}
	if o.Policy == "" {
		o.Policy = AskAll
	}
	if err := o.Policy.check(); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits = o.Limits.withDefaults()
	o.Retry = o.Retry.withDefaults()
	s := o.Live.Session()
	if err := s.Err(); err != nil {
		return nil, err
	}
	a := &Agent{
		o: o, live: o.Live, s: s, log: o.Logger.With("session", s.ID()),
		model: model, tools: offer(o.Tools), cache: new(llm.Cache),
		mails:      make(chan func()),
		ended:      make(chan struct{}),
		remembered: map[string]bool{},
	}
	if _, err := a.headers.of(model.Config, o.System, a.tools); err != nil {
		return nil, err
	}
	if err := a.resume(); err != nil {
		return nil, err
	}
	a.status = Status{Phase: Idle, Turn: a.lastTurn, Window: model.Window, Pending: a.inbox.len()}
	a.life, a.kill = context.WithCancel(context.Background())
	a.watch = newWatchers(s, func(ev outcrop.Event) {
		switch ev.Type {
		case outcrop.TypeRequestHeader:
			a.headerIs = nil
		case outcrop.TypeCompactionStart:
			a.bracket = bracketOf(ev)
		case outcrop.TypeCompactionEnd:
			a.bracket = nil
		case outcrop.TypeCompactionSummary, history.TypeSummarizerUsage:
			a.chargeSummary(ev)
		case outcrop.TypeOutcropRewind:
			a.cutText = "" // it was taken out of the conversation
		}
	})
	go a.own()
	return a, nil
}

// own is the owner's goroutine.
func (a *Agent) own() {
	defer close(a.ended)
	defer a.watch.close()
	for {
		if a.wake && !a.closing && a.operation == nil {
			a.drive()
		}
		a.idle()
		if a.closing && a.operation == nil {
			return
		}
		(<-a.mails)()
	}
}

// drive runs turns until nothing is left to do. After a turn that did not end
// by itself the rest of the inbox waits for the next waking input.
func (a *Agent) drive() {
	for {
		a.wake = false
		again := a.runTurn()
		if a.closing || a.s.Err() != nil {
			return
		}
		if !a.wake && (!again || a.inbox.len() == 0) {
			return
		}
	}
}

// idle tells everybody who waits, unless there is more to do.
func (a *Agent) idle() {
	if a.operation != nil {
		a.enterPhase(place{phase: Operating, turn: a.lastTurn})
		return
	}
	if a.wake && !a.closing {
		return
	}
	a.enterPhase(place{phase: Idle, turn: a.lastTurn})
	for _, w := range a.waiters {
		close(w)
	}
	a.waiters = nil
}

// post runs f on the owner and waits until it ran.
func (a *Agent) post(ctx context.Context, f func()) error {
	done := make(chan struct{})
	mail := func() {
		defer close(done)
		f()
	}
	select {
	case a.mails <- mail:
		<-done
		return nil
	case <-a.ended:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits for a value while the owner goes on reading mails. ok is false
// when ctx ended first. It is called by the owner only.
func await[T any](a *Agent, ctx context.Context, c <-chan T) (v T, ok bool) {
	for {
		select {
		case v = <-c:
			return v, true
		case f := <-a.mails:
			f()
		case <-ctx.Done():
			return v, false
		}
	}
}

// flush makes everything durable that was appended so far; mails are read
// while it waits. The error of a cancelled ctx is ctx's.
func (a *Agent) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- a.live.Flush(ctx) }()
	err, ok := await(a, ctx, done)
	if !ok {
		return ctx.Err()
	}
	return err
}

// id makes the id for an event that will have this seq.
func (a *Agent) id(letter string, seq int) string {
	if a.o.NewID != nil {
		return a.o.NewID()
	}
	return fmt.Sprintf("%s-%d", letter, seq)
}

// failureOf is an error as turn/end records it.
func failureOf(err error) *message.Failure {
	var f *message.Failure
	if errors.As(err, &f) {
		return f
	}
	return &message.Failure{Message: err.Error(), Code: message.CodeUnknown}
}
