package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// reply is what one attempt has brought so far.
type reply struct {
	asm    message.Assembler
	chunks []outcrop.Seq // of its assistant/chunk events
	ended  bool          // a finish chunk that tells of an error is in the log
}

// piece is what the stream's goroutine hands to the owner.
type piece struct {
	chunk message.Chunk
	err   error // ends the stream, with done
	done  bool
}

// piecesAhead is how many pieces a provider may be ahead of the log. It is what
// a running stream holds in memory, so it is no more than keeps both busy.
const piecesAhead = 16

// ask calls the model until an attempt succeeds or the step ends: ok is false,
// then v says how.
func (t *turn) ask() (rep *reply, v verdict, ok bool) {
	var retry retrying
	var rescue rescuing
	for attempt := 1; ; {
		if why := t.a.costLimit(); why != "" {
			return nil, hookStop(why), false
		}
		rep, err := t.attempt(attempt)
		if t.canceled() {
			if rep != nil {
				t.keepVisible(rep)
			}
			return nil, t.failed(orCanceled(err, t.ctx)), false
		}
		if err == nil {
			return rep, verdict{}, true
		}
		var f *message.Failure
		var h *hookError
		if !errors.As(err, &f) || errors.As(err, &h) {
			return nil, t.failed(err), false
		}
		again := false
		if err = nil; rep != nil { // it was sent
			if !rep.ended {
				err = t.logChunk(rep, failureChunk(f))
			}
			if err == nil {
				again, err = t.waitToRetry(&retry, f)
			}
		}
		if err == nil && !again {
			again, err = t.askRequestError(&rescue, attempt, f)
		}
		if err != nil {
			return nil, t.failed(err), false
		}
		if !again {
			return nil, t.failed(f), false
		}
		if rep != nil {
			attempt++
		}
	}
}

// attempt makes one request and sends it. The reply is nil when it was not
// sent. A failure that somebody may recover from is a *message.Failure.
func (t *turn) attempt(attempt int) (*reply, error) {
	t.a.enterPhase(place{phase: Preparing, turn: t.n, step: t.step, attempt: attempt})
	m, err := t.choose(attempt)
	if err != nil {
		return nil, err
	}
	t.model = m
	req, err := t.request(m, attempt)
	if err != nil {
		return nil, err
	}
	t.a.enterPhase(place{phase: Calling, turn: t.n, step: t.step, attempt: attempt})
	rep, err := t.stream(req)
	t.a.count(req, rep)
	return rep, err
}

// orCanceled is err, or that the turn was cancelled when nothing else went
// wrong.
func orCanceled(err error, ctx context.Context) error {
	if err != nil {
		return err
	}
	return ctx.Err()
}

const (
	// rescuesUnchanged is how often a hook may have the very same request
	// sent again in a step, and rescuesAtAll how often any.
	rescuesUnchanged = 2
	rescuesAtAll     = 10
)

// rescuing counts what hooks had sent again in one step.
type rescuing struct {
	n         int
	unchanged int
	failed    string // the digest of the request that failed last
}

// askRequestError asks whether a failed request is to be built and sent again.
func (t *turn) askRequestError(r *rescuing, attempt int, f *message.Failure) (again bool, err error) {
	hooks := t.a.o.Hooks.RequestError
	if len(hooks) == 0 {
		return false, nil
	}
	if digest := t.a.s.RequestDigest(); digest == r.failed {
		r.unchanged++
	} else {
		r.failed, r.unchanged = digest, 0
	}
	if r.n >= rescuesAtAll || r.unchanged >= rescuesUnchanged {
		t.a.log.Warn("hooks had a failing request sent again too often; its failure stands", "turn", t.n, "step", t.step, "again", r.n, "code", f.Code)
		return false, nil
	}
	for _, h := range hooks {
		st, done := t.editing(t.step, attempt)
		failure := *f
		again, err = hooked(t, "request-error", func() (bool, error) { return h.RequestError(t.ctx, st, &failure) })
		done()
		switch {
		case err != nil:
			return false, err
		case t.canceled():
			return false, t.ctx.Err()
		case again:
			r.n++
			return true, nil
		}
	}
	return false, nil
}

// failureChunk is the finish chunk that ends a failed attempt in the log.
func failureChunk(f *message.Failure) message.Chunk {
	kind := message.Errored
	if f.Code == message.CodeAborted {
		kind = message.Aborted
	}
	return message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: kind, Failure: f}}
}

// stream makes one call and logs each chunk. A failure of the provider comes
// back as *message.Failure, one of the log as another error. The reply is never
// nil.
func (t *turn) stream(req *sentRequest) (*reply, error) {
	a, rep := t.a, &reply{}
	ctx, cancel := context.WithCancel(t.ctx)
	pieces, left := make(chan piece, piecesAhead), make(chan struct{})
	go func() {
		defer close(left)
		produce(ctx, req, pieces, a.log)
	}()
	defer func() {
		cancel()
		select {
		case <-left:
		default:
			// The provider may still be busy with what it keeps.
			a.cache = new(llm.Cache)
		}
	}()

	idle := a.o.Clock.Timer(a.o.Limits.IdleStream)
	defer idle.Stop()
	for {
		select {
		case p := <-pieces:
			// What is there already is taken without a look at the rest of the
			// world each time; no more than that, or a fast model would keep
			// a cancel from being heard.
			for n := len(pieces); ; n-- {
				if p.done {
					<-left
				}
				if ended, err := t.take(rep, p); ended {
					return rep, err
				}
				if n == 0 {
					break
				}
				p = <-pieces
			}
			idle.Reset(a.o.Limits.IdleStream)
		case f := <-a.mails:
			f()
		case <-t.ctx.Done():
			return rep, t.ctx.Err()
		case <-idle.C():
			return rep, &message.Failure{Code: message.CodeTimeout,
				Message: fmt.Sprintf("the model sent nothing for %s", a.o.Limits.IdleStream.Round(time.Second))}
		}
	}
}

// take takes in one piece, and reports whether the stream has ended with it.
func (t *turn) take(rep *reply, p piece) (ended bool, err error) {
	if p.done {
		return true, rep.failure(p.err)
	}
	if t.canceled() {
		return true, t.ctx.Err()
	}
	if err := t.logChunk(rep, p.chunk); err != nil {
		return true, err
	}
	return false, nil
}

// failure is why an ended stream is no success, or nil.
func (rep *reply) failure(err error) error {
	if err != nil {
		var f *message.Failure
		if errors.As(err, &f) {
			return f
		}
		return &message.Failure{Message: err.Error(), Code: message.CodeUnknown}
	}
	fin := rep.asm.Finish()
	if fin.Kind != message.Errored && fin.Kind != message.Aborted {
		return nil
	}
	if fin.Failure != nil {
		return fin.Failure
	}
	return &message.Failure{Message: "the model ended its reply with " + string(fin.Kind), Code: message.CodeUnknown}
}

// produce runs the provider and hands over what it yields, until ctx ends. It
// contains panics.
func produce(ctx context.Context, req *sentRequest, out chan<- piece, log *slog.Logger) {
	p := req.model.Provider
	send := func(v piece) bool {
		select {
		case out <- v:
			return true
		default:
		}
		select {
		case out <- v:
			return true
		case <-ctx.Done():
			return false
		}
	}
	end := piece{done: true, err: &message.Failure{Message: "the provider ended its goroutine", Code: message.CodeUnknown}}
	defer func() {
		if v := recover(); v != nil {
			log.Error("provider panicked", "provider", p.Name(), "panic", v, "stack", string(debug.Stack()))
			end.err = &message.Failure{Message: fmt.Sprintf("provider %s panicked: %v", p.Name(), v), Code: message.CodeUnknown}
		}
		send(end)
	}()
	for c, err := range p.Stream(ctx, req.Request) {
		if err == nil {
			err = checkChunk(&c)
		}
		if err != nil {
			end.err = err
			return
		}
		if !send(piece{chunk: c}) {
			return
		}
	}
	end.err = nil
}

// checkChunk refuses what could not be written as a chunk.
func checkChunk(c *message.Chunk) error {
	ok := c.Index >= 0
	switch c.Type {
	case message.BlockStart, message.TextDelta, message.ReasoningDelta, message.ToolCallDelta:
	case message.BlockEnd:
		ok = ok && c.Block != nil
	case message.UsageChunk:
		ok = ok && c.Usage != nil
	case message.FinishChunk:
		if c.Reason == nil {
			c.Reason = &message.Finish{Kind: message.Stop}
		}
	default:
		ok = false
	}
	if !ok {
		return &message.Failure{Message: fmt.Sprintf("the provider sent a malformed chunk of type %q", c.Type), Code: message.CodeUnknown}
	}
	return nil
}

// logChunk commits one chunk and adds it to the reply.
func (t *turn) logChunk(rep *reply, c message.Chunk) error {
	ev, err := t.a.s.Append(outcrop.AssistantChunk{Turn: t.n, Step: t.step, Chunk: c})
	if err != nil {
		return err
	}
	rep.chunks = append(rep.chunks, ev.Seq)
	rep.asm.Add(c)
	if c.Type == message.FinishChunk {
		k := c.Reason.Kind
		rep.ended = k == message.Errored || k == message.Aborted
	}
	return nil
}
