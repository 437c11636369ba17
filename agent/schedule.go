package agent

import (
	"context"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// round runs the calls of one assistant message.
//
// Calls start in the model's order. One that may run in parallel waits only
// for room; any other, and one that is wrong, waits until all before it have
// ended, and is waited for. Results are committed in the model's order, each
// as soon as those before it are.
type round struct {
	t      *turn
	ctx    context.Context // of the tools
	cancel context.CancelFunc
	calls  []*pendingCall
	done   chan settled // holds all: a tool that was given up never blocks

	running   int
	committed int
}

type pendingCall struct {
	block   message.Block
	seq     outcrop.Seq // of its tool/call, -1 before that
	started bool
	out     *tool.Outcome
}

type settled struct {
	i   int
	out tool.Outcome
}

// runCalls runs calls and leaves each with exactly one result in the log,
// whatever happens.
func (t *turn) runCalls(blocks []message.Block) verdict {
	r := &round{t: t, done: make(chan settled, len(blocks))}
	r.ctx, r.cancel = context.WithCancel(t.ctx)
	defer r.cancel()
	for _, b := range blocks {
		r.calls = append(r.calls, &pendingCall{block: b, seq: -1})
	}
	v := t.guarded(r.run)
	if v.kind == turnEnds && v.reason.Kind == outcrop.TurnError {
		// The log cannot take more: what runs should stop.
		r.cancel()
	}
	r.settleRunning()
	if err := r.answerRest(v); err != nil {
		return t.failed(err)
	}
	if v.kind != turnEnds && t.canceled() {
		return t.aborted()
	}
	return v
}

func (r *round) run() verdict {
	for i := range r.calls {
		if v, ok := r.start(i); !ok {
			return v
		}
	}
	r.drain(0)
	return verdict{kind: turnGoesOn}
}

// start brings one call to the point where it runs, or has its result.
func (r *round) start(i int) (verdict, bool) {
	t, a, c := r.t, r.t.a, r.calls[i]
	tl, call, bad := a.o.Tools.Check(c.block.ID, c.block.Name, c.block.Arguments)
	alone := bad != nil || !tl.Parallel()
	room := a.o.Limits.Parallel - 1
	if alone {
		room = 0
	}
	if !r.drain(room) {
		return t.aborted(), false
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
	out, refused, err := r.approve(c, tl, call)
	if err != nil {
		return t.failed(err), false
	}
	if t.canceled() {
		if out != nil {
			r.settle(c, *out)
		}
		return t.aborted(), false
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
	a.setStatus(Status{Phase: Running, Turn: t.n, Step: t.step, Tool: call.Name})
	c.started = true
	r.running++
	go func() { r.done <- settled{i, a.o.Tools.Run(r.ctx, tl, call)} }()
	if alone && !r.drain(0) {
		return t.aborted(), false
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

// awaitIn waits for a value while mails are read and results of running calls
// are committed. ok is false when the turn was cancelled.
func awaitIn[T any](r *round, c <-chan T) (v T, ok bool) {
	for {
		select {
		case v = <-c:
			return v, !r.t.canceled()
		case s := <-r.done:
			r.ended(s)
		case f := <-r.t.a.mails:
			f()
		case <-r.t.ctx.Done():
			return v, false
		}
	}
}

// drain waits until at most n calls run; false when the turn was cancelled.
func (r *round) drain(n int) bool {
	for r.running > n {
		select {
		case s := <-r.done:
			r.ended(s)
		case f := <-r.t.a.mails:
			f()
		case <-r.t.ctx.Done():
			return false
		}
	}
	return !r.t.canceled()
}

// settleRunning waits for what still runs. Tools of a cancelled round get the
// time of grace; one that does not stop is given up: its call is answered
// without it and what it returns later is ignored.
func (r *round) settleRunning() {
	a := r.t.a
	for r.running > 0 && r.ctx.Err() == nil {
		select {
		case s := <-r.done:
			r.ended(s)
		case f := <-a.mails:
			f()
		case <-r.ctx.Done():
		}
	}
	if r.running == 0 {
		return
	}
	grace, stop := a.o.Clock.Timer(a.o.Limits.Grace)
	defer stop()
	for r.running > 0 {
		select {
		case s := <-r.done:
			r.ended(s)
		case f := <-a.mails:
			f()
		case <-grace:
			a.log.Warn("tools did not stop when they were cancelled; they are left behind", "turn", r.t.n, "step", r.t.step, "tools", r.running)
			return
		}
	}
}

// ended takes the outcome of a call that ran.
func (r *round) ended(s settled) {
	r.running--
	if r.ctx.Err() != nil && !s.out.IsError {
		// It may have been done, in part or in whole; nobody waited for it.
		s.out = tool.Failed(tool.Aborted)
	}
	r.settle(r.calls[s.i], s.out)
	if r.running > 0 {
		// Nothing waits for this one; it must not wait for the others either.
		go func() { _ = r.t.a.live.Flush(r.t.ctx) }()
	}
}

// settle gives a call its outcome and commits what is ready. It returns true,
// so that a call that needs no more can be left in one line.
func (r *round) settle(c *pendingCall, out tool.Outcome) bool {
	c.out = &out
	for r.committed < len(r.calls) && r.calls[r.committed].out != nil && r.commit(r.calls[r.committed]) {
		r.committed++
	}
	return true
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
	_, err := t.a.s.AppendSurface(p, outcrop.Tail, sources)
	return t.a.closed(err) == nil
}

// answerRest answers every call that has no result yet: those that were never
// dispatched, and those that did not stop.
func (r *round) answerRest(v verdict) error {
	for _, c := range r.calls[r.committed:] {
		if err := r.t.a.s.Err(); err != nil {
			return err
		}
		if c.out != nil {
			r.settle(c, *c.out)
			continue
		}
		switch {
		case c.started:
			r.settle(c, tool.Failed(tool.Aborted))
		case c.seq < 0 && r.logCall(c) != nil:
			r.settle(c, notStarted(errors.New("the log refused it")))
		case v.reason.Kind == outcrop.TurnError:
			r.settle(c, tool.Failed(&tool.Error{Name: "ToolNotRunError", Code: "NOT_RUN", Msg: "not run: the turn ended with an error before it"}))
		default:
			r.settle(c, tool.Failed(tool.NotDispatched))
		}
	}
	return r.t.a.s.Err()
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

// failedBy is the outcome of an error that a tool gave before it ran.
func failedBy(err error) tool.Outcome {
	var coded *tool.Error
	if errors.As(err, &coded) {
		return tool.Failed(coded)
	}
	return tool.Outcome{Content: []message.Block{message.Text("Error: " + err.Error())}, IsError: true}
}
