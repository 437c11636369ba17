package agent

import (
	"context"
	"errors"
	"fmt"
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

// ask calls the model until an attempt succeeds or the step ends: ok is false,
// then v says how.
func (t *turn) ask() (rep *reply, v verdict, ok bool) {
	a := t.a
	var retry retrying
	for attempt := 1; ; attempt++ {
		if why := a.costLimit(); why != "" {
			return nil, hookStop(why), false
		}
		req, err := t.request(attempt)
		if err != nil {
			return nil, t.failed(err), false
		}
		a.setStatus(Status{Phase: Calling, Turn: t.n, Step: t.step, Attempt: attempt})
		rep, err = t.stream(req)
		if cost, known := llm.Cost(rep.asm.Usage(), a.o.Price); known {
			a.spent += cost
		}
		if t.canceled() {
			t.keepVisible(rep)
			return nil, t.failed(t.ctx.Err()), false
		}
		if err == nil {
			return rep, verdict{}, true
		}
		var f *message.Failure
		if !errors.As(err, &f) {
			return nil, t.failed(err), false
		}
		if !rep.ended {
			if err := t.logChunk(rep, failureChunk(f)); err != nil {
				return nil, t.failed(err), false
			}
		}
		again, err := t.waitToRetry(&retry, f)
		if err != nil {
			return nil, t.failed(err), false
		}
		if !again {
			return nil, t.failed(f), false
		}
	}
}

// failureChunk is the finish chunk that ends a failed attempt in the log.
func failureChunk(f *message.Failure) message.Chunk {
	kind := message.Errored
	if f.Code == message.CodeAborted {
		kind = message.Aborted
	}
	return message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: kind, Failure: f}}
}

// stream makes one attempt and logs each chunk. A failure of the provider
// comes back as *message.Failure, one of the log as another error.
func (t *turn) stream(req llm.Request) (*reply, error) {
	a, rep := t.a, &reply{}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	pieces := make(chan piece, 64)
	go func() { produce(ctx, a.o.Provider, req, pieces, a) }()

	idle, stopIdle := a.o.Clock.Timer(a.o.Limits.IdleStream)
	defer func() { stopIdle() }()
	for {
		select {
		case p := <-pieces:
			if t.canceled() {
				return rep, t.ctx.Err()
			}
			if p.done {
				return rep, rep.failure(p.err)
			}
			if err := t.logChunk(rep, p.chunk); err != nil {
				return rep, err
			}
			stopIdle()
			idle, stopIdle = a.o.Clock.Timer(a.o.Limits.IdleStream)
		case f := <-a.mails:
			f()
		case <-t.ctx.Done():
			return rep, t.ctx.Err()
		case <-idle:
			return rep, &message.Failure{Code: message.CodeTimeout,
				Message: fmt.Sprintf("the model sent nothing for %s", a.o.Limits.IdleStream.Round(time.Second))}
		}
	}
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
func produce(ctx context.Context, p llm.Provider, req llm.Request, out chan<- piece, a *Agent) {
	send := func(v piece) bool {
		select {
		case out <- v:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() {
		if v := recover(); v != nil {
			a.log.Error("provider panicked", "provider", p.Name(), "panic", v, "stack", string(debug.Stack()))
			send(piece{done: true, err: &message.Failure{Message: fmt.Sprintf("provider %s panicked: %v", p.Name(), v), Code: message.CodeUnknown}})
		}
	}()
	if ctx.Err() != nil {
		return
	}
	for c, err := range p.Stream(ctx, req) {
		if err == nil {
			err = checkChunk(&c)
		}
		if err != nil {
			send(piece{done: true, err: err})
			return
		}
		if !send(piece{chunk: c}) {
			return
		}
	}
	send(piece{done: true})
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
