package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// round runs the calls of one assistant message.
//
// Calls start in the model's order. One that may run in parallel waits only
// for room; any other, and one that is wrong, waits until all before it have
// their results, and is waited for. Results are reviewed by the hooks and
// committed in the model's order, each as soon as those before it are.
type round struct {
	t      *turn
	tools  *tool.Registry
	ctx    context.Context // of the tools
	cancel context.CancelFunc
	calls  []*pendingCall
	done   chan ended // holds all: a tool or hook that was given up never blocks

	running   int
	reviewing bool // a result is with the hooks
	committed int
	broken    error // a hook failed: nothing more is started
	endTurn   bool  // a tool said that the turn has come to its end
}

type pendingCall struct {
	block    message.Block
	call     tool.Call
	seq      outcrop.Seq // of its tool/call, -1 before that
	started  bool
	reviewed bool
	out      *tool.Outcome
}

// ended is a call that ran, or one that the hooks have reviewed.
type ended struct {
	i        int
	out      tool.Outcome
	reviewed bool
	messages []message.Message
	err      error
}

// runCalls runs calls and leaves each with exactly one result in the log,
// whatever happens.
func (t *turn) runCalls(blocks []message.Block) verdict {
	r := &round{t: t, tools: t.a.tools.Registry, done: make(chan ended, 2*len(blocks))}
	r.ctx, r.cancel = context.WithCancel(t.ctx)
	defer r.cancel()
	for _, b := range blocks {
		r.calls = append(r.calls, &pendingCall{block: b, seq: -1})
	}
	v := t.guarded(r.run)
	if v.kind == turnEnds && v.reason.Kind == outcrop.TurnError {
		// The log or the hooks cannot take more: what runs should stop.
		r.cancel()
	}
	r.settleRunning()
	if err := r.answerRest(v); err != nil {
		return t.failed(err)
	}
	switch {
	case v.kind == turnEnds:
		return v
	case r.over(): // while the last results came
		return r.stopped()
	case r.endTurn:
		return verdict{kind: turnMayEnd}
	}
	return v
}

func (r *round) run() verdict {
	for i := range r.calls {
		if v, ok := r.start(i); !ok {
			return v
		}
	}
	if !r.drain(0) {
		return r.stopped()
	}
	return verdict{kind: turnGoesOn}
}

// stopped is the verdict when nothing more is started.
func (r *round) stopped() verdict {
	if r.broken != nil {
		return r.t.failed(r.broken)
	}
	return r.t.aborted()
}

// start brings one call to the point where it runs, or has its result.
func (r *round) start(i int) (verdict, bool) {
	t, a, c := r.t, r.t.a, r.calls[i]
	tl, call, bad := r.tools.Check(c.block.ID, c.block.Name, c.block.Arguments)
	alone := bad != nil || !tl.Parallel()
	room := a.o.Limits.Parallel - 1
	if alone {
		room = 0
	}
	if !r.drain(room) {
		return r.stopped(), false
	}
	if err := r.logCall(c); err != nil {
		if !errors.Is(err, outcrop.ErrVetoed) {
			return t.failed(err), false
		}
		t.refused = 0
		return verdict{}, r.settle(c, notStarted(err))
	}
	if bad != nil {
		t.refused = 0
		return verdict{}, r.settle(c, tool.Failed(bad))
	}
	call.Key = fmt.Sprintf("%s:%d:%s", a.s.ID(), c.seq, call.ID)
	call.Epoch = a.o.Epoch
	c.call = call
	if deny, err := r.askBefore(tl, call); err != nil {
		return t.failed(err), false
	} else if deny != "" {
		return verdict{}, r.settle(c, denied(deny))
	}
	if r.over() {
		return r.stopped(), false
	}
	out, refused, err := r.approve(c, tl, call)
	if err != nil {
		return t.failed(err), false
	}
	if r.over() {
		if out != nil {
			r.settle(c, *out)
		}
		return r.stopped(), false
	}
	if out != nil {
		r.settle(c, *out)
		if !refused {
			t.refused = 0
		} else if t.refused++; t.refused >= refusalsInARow {
			return hookStop("3 calls refused"), false
		}
		return verdict{}, true
	}
	t.refused = 0
	// The call, and the answer that allowed it, must be on disk before it runs.
	if err := r.flush(); err != nil {
		return t.failed(err), false
	}
	if r.over() {
		return r.stopped(), false
	}
	a.enterPhase(place{phase: Running, turn: t.n, step: t.step, tool: call.Name})
	if a.o.Guard != nil {
		// As late as can be: what comes between this and the tool is a window in
		// which the session may be lost and the tool starts all the same.
		_, err := hookedIn(t, r, "guard", func() (struct{}, error) { return struct{}{}, a.o.Guard(r.ctx) })
		if err != nil {
			a.log.Warn("a tool was not started", "turn", t.n, "step", t.step, "tool", call.Name, "err", err)
			return t.failed(err), false
		}
		if r.over() {
			return r.stopped(), false
		}
	}
	c.started = true
	r.running++
	go func() { r.done <- ended{i: i, out: r.tools.Run(r.ctx, tl, call)} }()
	if alone && !r.drain(0) {
		return r.stopped(), false
	}
	return verdict{}, true
}

func (r *round) logCall(c *pendingCall) error {
	ev, err := r.t.a.s.Append(outcrop.ToolCall{
		Turn: r.t.n, Step: r.t.step, CallID: c.block.ID, Name: c.block.Name, Arguments: c.block.Arguments,
	})
	if err == nil {
		c.seq = ev.Seq
	}
	return err
}

// over reports that nothing more is started.
func (r *round) over() bool { return r.broken != nil || r.t.canceled() }

// awaitIn waits for a value while mails are read and results of running calls
// are committed. ok is false when the turn was cancelled.
func awaitIn[T any](r *round, c <-chan T) (v T, ok bool) {
	for {
		select {
		case v = <-c:
			return v, !r.t.canceled()
		case e := <-r.done:
			r.ended(e)
		case f := <-r.t.a.mails:
			f()
		case <-r.t.ctx.Done():
			return v, false
		}
	}
}

// drain waits until at most n calls run, and for n = 0 until all that ran have
// their results. It is false when nothing more is to be started.
func (r *round) drain(n int) bool {
	for (r.running > n || n == 0 && r.reviewing) && !r.over() {
		select {
		case e := <-r.done:
			r.ended(e)
		case f := <-r.t.a.mails:
			f()
		case <-r.t.ctx.Done():
		}
	}
	return !r.over()
}

// settleRunning waits for what still runs. Tools and hooks of a cancelled round
// get the time of grace; one that does not stop is given up: its call is
// answered without it and what it returns later is ignored.
func (r *round) settleRunning() {
	a := r.t.a
	busy := func() bool { return r.running > 0 || r.reviewing }
	var grace <-chan time.Time
	cancelled := r.ctx.Done()
	for busy() {
		select {
		case e := <-r.done:
			r.ended(e)
		case f := <-a.mails:
			f()
		case <-cancelled:
			timer := a.o.Clock.Timer(a.o.Limits.Grace)
			defer timer.Stop()
			cancelled, grace = nil, timer.C()
		case <-grace:
			a.log.Warn("tools or hooks did not stop when they were cancelled; they are left behind", "turn", r.t.n, "step", r.t.step, "tools", r.running)
			return
		}
	}
}

// ended takes what came of a call.
func (r *round) ended(e ended) {
	c := r.calls[e.i]
	if e.reviewed {
		r.reviewed(c, e)
		return
	}
	r.running--
	if r.ctx.Err() != nil && !e.out.IsError {
		// It may have been done, in part or in whole; nobody waited for it.
		e.out = tool.Failed(tool.Aborted)
	}
	r.settle(c, e.out)
	if r.running > 0 {
		// Nothing waits for this one; it must not wait for the others either.
		go func() { _ = r.t.a.live.Flush(r.t.ctx) }()
	}
}

// settle gives a call its outcome and commits what is ready. It returns true,
// so that a call that needs no more can be left in one line.
func (r *round) settle(c *pendingCall, out tool.Outcome) bool {
	c.out = &out
	r.advance()
	return true
}

// advance commits, in the model's order, the results that are there; those of
// calls that ran go to the hooks first.
func (r *round) advance() {
	for r.committed < len(r.calls) && !r.reviewing {
		c := r.calls[r.committed]
		if c.out == nil || c.started && !c.reviewed && r.review(r.committed) || !r.commit(c) {
			return
		}
		r.committed++
	}
}

// commit writes the result of the next call. One that cannot be written fails
// the session, which ends the turn at the next append.
func (r *round) commit(c *pendingCall) bool {
	t := r.t
	p := outcrop.NewToolResult(t.n, t.step, c.block.ID, c.out.IsError, c.out.Content...)
	if e := c.out.Err; e != nil {
		p.Error = &outcrop.ToolError{Name: e.Name, Code: e.Code}
	}
	p.Meta = c.out.Meta
	sources := outcrop.NoSources
	if c.seq >= 0 {
		sources = outcrop.SourcesOf(c.seq)
	}
	r.endTurn = r.endTurn || c.out.EndTurn
	_, err := t.a.s.AppendSurface(p, outcrop.Tail, sources)
	return t.a.written(err) == nil
}

// answerRest answers every call that has no result yet: those that were never
// dispatched, and those that did not stop. Nobody is left to review them.
func (r *round) answerRest(v verdict) error {
	a := r.t.a
	r.reviewing = false
	for r.committed < len(r.calls) {
		if err := a.s.Err(); err != nil {
			return err
		}
		c := r.calls[r.committed]
		var out tool.Outcome
		switch {
		case c.out != nil && !(c.started && r.mustReview(c)):
			out = *c.out
		case c.started:
			out = tool.Failed(tool.Aborted)
		case c.seq < 0 && r.logCall(c) != nil:
			out = notStarted(errors.New("the log refused it"))
		case v.reason.Kind == outcrop.TurnError:
			out = tool.Failed(&tool.Error{Name: "ToolNotRunError", Code: "NOT_RUN", Msg: "not run: the turn ended with an error before it"})
		default:
			out = tool.Failed(tool.NotDispatched)
		}
		c.out = &out
		if !r.commit(c) {
			return a.s.Err()
		}
		r.committed++
	}
	return a.s.Err()
}

// flush waits for the disk, and goes on committing results meanwhile.
func (r *round) flush() error {
	done := make(chan error, 1)
	go func() { done <- r.t.a.live.Flush(r.t.ctx) }()
	err, ok := awaitIn(r, done)
	if !ok {
		return r.t.ctx.Err()
	}
	return err
}

// notStarted is the result of a call that has no tool/call in the log.
func notStarted(err error) tool.Outcome {
	return tool.Failed(&tool.Error{Name: "ToolNotStartedError", Code: "TOOL_NOT_STARTED", Msg: "the call was not started: " + err.Error()})
}

// denied is the result of a call that a hook did not let run.
func denied(reason string) tool.Outcome {
	return tool.Failed(&tool.Error{Name: "ToolDeniedError", Code: "DENIED", Msg: reason})
}

// failedBy is the outcome of an error that a tool gave before it ran.
func failedBy(err error) tool.Outcome {
	var coded *tool.Error
	if errors.As(err, &coded) {
		return tool.Failed(coded)
	}
	return tool.Outcome{Content: []message.Block{message.Text("Error: " + err.Error())}, IsError: true}
}
