package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/outcrop-dev/outcrop/message"
)

// Run runs a call that Check has passed and contains whatever the tool does.
// The outcome is within the registry's limit. It returns when the tool does,
// or, for a Timeouter, StopGrace after its time limit at the latest.
func (r *Registry) Run(ctx context.Context, t Tool, call Call) Outcome {
	if l, ok := t.(Timeouter); ok {
		if d := l.Timeout(); d > 0 {
			return r.finish(ctx, call, r.limited(ctx, t, call, d))
		}
	}
	return r.finish(ctx, call, r.contained(ctx, t, call))
}

// contained runs a tool and makes an outcome of what it does.
func (r *Registry) contained(ctx context.Context, t Tool, call Call) (out Outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.logger.Error("tool panicked", "tool", call.Name, "call", call.ID, "panic", p, "stack", string(debug.Stack()))
			out = Failed(&Error{Name: "ToolPanicError", Code: "TOOL_PANIC", Msg: fmt.Sprintf("tool %q panicked: %v", call.Name, p)})
		}
	}()
	res, err := t.Run(ctx, call)
	if err == nil {
		return Outcome{Content: res.Content, IsError: res.IsError, Meta: res.Meta, EndTurn: res.EndTurn}
	}
	var coded *Error
	if !errors.As(err, &coded) && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		coded = Aborted
	}
	if coded != nil {
		out = Failed(coded)
	} else {
		out = Outcome{Content: []message.Block{message.Text("Error: " + err.Error())}, IsError: true}
	}
	out.Meta = res.Meta
	return out
}

// limited runs a tool that has d to do its work.
func (r *Registry) limited(ctx context.Context, t Tool, call Call, d time.Duration) Outcome {
	tctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	done := make(chan Outcome, 1) // room for a value that comes too late
	go func() { done <- r.contained(tctx, t, call) }()
	var out Outcome
	select {
	case out = <-done:
	case <-tctx.Done():
		grace := time.NewTimer(StopGrace)
		defer grace.Stop()
		select {
		case out = <-done:
		case <-grace.C:
			r.logger.Warn("tool does not stop; it is given up", "tool", call.Name, "call", call.ID)
			out = Failed(Aborted)
		}
	}
	if out.Err == Aborted && ctx.Err() == nil {
		return Failed(&Error{Name: "ToolTimeoutError", Code: "TOOL_TIMEOUT",
			Msg: fmt.Sprintf("tool %q did not end within %s; it may have been done in part", call.Name, d)})
	}
	return out
}
