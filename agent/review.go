package agent

import (
	"bytes"
	"context"
	"slices"

	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// askBefore asks the hooks whether a call may run. deny is their reason why
// not, "" when it may.
func (r *round) askBefore(tl tool.Tool, call tool.Call) (deny string, err error) {
	t := r.t
	for _, h := range t.a.o.Hooks.BeforeTool {
		st := t.stage(t.step, 0)
		deny, err = hookedIn(t, r, "before-tool", func() (string, error) { return h.BeforeTool(r.ctx, st, tl, call) })
		if deny != "" || err != nil || r.over() {
			return deny, err
		}
	}
	return "", nil
}

// mustReview reports whether hooks have to see the outcome of a call that ran.
func (r *round) mustReview(c *pendingCall) bool {
	return !c.reviewed && len(r.t.a.o.Hooks.AfterTool) > 0
}

// review gives the outcome of a call that ran to the hooks, one after the other
// on a goroutine of its own; it comes back as ended. It reports whether there
// is anybody to give it to.
func (r *round) review(i int) bool {
	c, t := r.calls[i], r.t
	if !r.mustReview(c) {
		return false
	}
	r.reviewing = true
	st := t.stage(t.step, 0)
	was, call := *c.out, c.call
	go func() {
		e := ended{i: i, reviewed: true, err: hookEnded("after-tool")}
		defer func() { r.done <- e }()
		out := was
		for _, h := range t.a.o.Hooks.AfterTool {
			out.Content = slices.Clone(out.Content)
			got, err := contain(t.a, "after-tool", func() (g given[[]message.Message], err error) {
				out, g.v, err = h.AfterTool(r.ctx, st, call, out)
				return g, err
			})
			if err != nil {
				e.err = err
				return
			}
			e.messages = append(e.messages, got.v...)
		}
		e.err = nil
		e.out = r.finished(call, was, out)
	}()
	return true
}

// finished makes what hooks made of an outcome fit for a log, by the rules for
// what tools give: a result that could not be written would end the session.
// What they left alone has passed these rules already.
func (r *round) finished(call tool.Call, was, out tool.Outcome) tool.Outcome {
	content := out.Content
	same := slices.EqualFunc(content, was.Content, func(x, y message.Block) bool {
		return bytes.Equal(x.AppendJSON(nil), y.AppendJSON(nil))
	})
	if same {
		out.Content = []message.Block{message.Text("(unchanged)")}
	}
	call.ID += "-hook" // the whole of a result that was cut keeps its place
	fit := r.tools.Run(context.WithoutCancel(r.ctx), gives{out: out}, call)
	if fit.Err = out.Err; same {
		fit.Content = was.Content
	}
	return fit
}

// gives is a tool that gives one result; nothing but Run is asked of it.
type gives struct {
	tool.Tool
	out tool.Outcome
}

func (g gives) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Content: g.out.Content, IsError: g.out.IsError, Meta: g.out.Meta, EndTurn: g.out.EndTurn}, nil
}

// reviewed takes back what the hooks made of an outcome, and commits it with
// their messages behind it.
func (r *round) reviewed(c *pendingCall, e ended) {
	r.reviewing = false
	c.reviewed = true
	switch {
	case e.err == nil:
		*c.out = e.out
	case r.t.canceled():
		r.t.masked(e.err)
		*c.out = tool.Failed(tool.Aborted)
	default:
		r.fail(e.err)
		*c.out = withheld()
	}
	r.advance()
	if e.err != nil {
		return
	}
	if err := r.t.a.stageAll(e.messages); err != nil {
		r.fail(err)
	}
}

// fail ends the round: a hook is broken. What runs should stop.
func (r *round) fail(err error) {
	if r.broken == nil {
		r.broken = err
		r.cancel()
		return
	}
	r.t.a.log.Warn("another hook failed", "turn", r.t.n, "step", r.t.step, "err", err)
}

// withheld is the result of a call whose outcome no hook could look at.
func withheld() tool.Outcome {
	return tool.Failed(&tool.Error{Name: "ToolHookError", Code: "WITHHELD",
		Msg: "the call ran, but its result cannot be shown: the check of the result failed"})
}
