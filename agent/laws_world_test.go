package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// world is a provider, tools, a person and a disk that do whatever was drawn.
type world struct {
	a       *agent.Agent
	replies []drawnReply
	mu      sync.Mutex // a provider that was cancelled may still run beside the next call
	next    int
	release chan struct{} // ends the tools that do not listen
}

type drawnReply struct {
	Chunks   []message.Chunk
	End      string // "", "panic", "hang", or a failure code
	CancelAt int    // cancel the turn before this chunk, -1 never
}

func drawChunks(t *rapid.T) []message.Chunk {
	var out []message.Chunk
	n := rapid.IntRange(0, 6).Draw(t, "blocks")
	for i := range n {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			text := rapid.SampledFrom([]string{"Hello.", " ", "", "a\x00b", "\xed\xa0\xbd"}).Draw(t, "text")
			out = append(out, message.Chunk{Type: message.TextDelta, Index: i, Text: text})
		case 1:
			out = append(out, message.Chunk{Type: message.ReasoningDelta, Index: i, Text: "Hm."})
		default:
			id := rapid.SampledFrom([]string{"", "a", "b", "call_1_1_2"}).Draw(t, "id")
			name := rapid.SampledFrom([]string{"look", "look", "edit", "boom", "hang", "deaf", "slow", "nope", ""}).Draw(t, "name")
			args := rapid.SampledFrom([]string{`{}`, `{"x":"1"}`, `{"x":"cut`, `[]`, ``, `{"x":1}`, `{"x":"a","x":"b"}`}).Draw(t, "args")
			out = append(out, message.Chunk{Type: message.ToolCallDelta, Index: i, ID: id, Name: name, Text: args})
			if rapid.Bool().Draw(t, "end") {
				b := message.ToolCall(id, name, args)
				out = append(out, message.Chunk{Type: message.BlockEnd, Index: i, Block: &b})
			}
		}
	}
	switch rapid.IntRange(0, 9).Draw(t, "tail") {
	case 0:
		out = append(out, message.Chunk{Type: message.BlockEnd, Index: 99})
	case 1:
		out = append(out, message.Chunk{Type: "x"})
	case 2:
		out = append(out, message.Chunk{Type: message.BlockEnd, Index: 98, Block: &message.Block{Type: "x", Raw: json.RawMessage("{")}})
	case 3, 4:
		kind := rapid.SampledFrom([]message.FinishKind{message.MaxTokens, message.Errored, message.Aborted, "odd"}).Draw(t, "finish")
		out = append(out, message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: kind}})
	default:
		out = append(out, message.Chunk{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: 1}},
			message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Stop}})
	}
	return out
}

func drawReply(t *rapid.T) drawnReply {
	r := drawnReply{Chunks: drawChunks(t), CancelAt: -1}
	r.End = rapid.SampledFrom([]string{"", "", "", "", "panic", "hang", "SERVER", "AUTH", "plain"}).Draw(t, "end")
	if rapid.IntRange(0, 5).Draw(t, "cancels") == 0 {
		r.CancelAt = rapid.IntRange(0, len(r.Chunks)).Draw(t, "at")
	}
	return r
}

func (w *world) stream(ctx context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
	w.mu.Lock()
	i := w.next
	w.next++
	w.mu.Unlock()
	if i >= len(w.replies) {
		yield(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Stop}}, nil)
		return
	}
	r := w.replies[i]
	for i, c := range r.Chunks {
		if i == r.CancelAt {
			w.cancel()
		}
		if !yield(c, nil) {
			return
		}
	}
	if r.CancelAt == len(r.Chunks) {
		w.cancel()
	}
	switch r.End {
	case "":
	case "panic":
		panic("drawn")
	case "hang":
		<-ctx.Done()
		yield(message.Chunk{}, &message.Failure{Code: message.CodeAborted, Message: "cancelled"})
	case "plain":
		yield(message.Chunk{}, errors.New("drawn"))
	default:
		yield(message.Chunk{}, &message.Failure{Code: r.End, Message: "drawn"})
	}
}

func (w *world) cancel() {
	// It comes from inside a turn, so it cannot be closed already.
	_, _ = w.a.Cancel(context.Background(), agent.Cause{Kind: agent.ByUser}, agent.KeepInbox)
}

func (w *world) tools() []tool.Tool {
	run := func(name string) func(context.Context, tool.Call) (tool.Result, error) {
		return func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			switch name {
			case "boom":
				panic("drawn")
			case "hang":
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			case "deaf":
				<-w.release
			case "slow":
				timer := time.NewTimer(time.Minute)
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
			}
			return tool.Text("ok"), nil
		}
	}
	var out []tool.Tool
	for _, name := range []string{"look", "edit", "boom", "hang", "deaf", "slow"} {
		class := tool.Read
		if name == "edit" {
			class = tool.Edit
		}
		out = append(out, &fakeTool{name: name, class: class, parallel: name != "edit", run: run(name)})
	}
	return out
}

type approverFunc func(ctx context.Context, q agent.Question) (agent.Answer, error)

func (f approverFunc) Approve(ctx context.Context, q agent.Question) (agent.Answer, error) {
	return f(ctx, q)
}

// drawnHooks do what was drawn, whichever of them is asked.
type drawnHooks struct {
	w    *world
	mu   sync.Mutex
	next int
	does []int
}

// act does the next thing and says what it was; the rest is up to the hook.
func (h *drawnHooks) act(ctx context.Context, st agent.Stage) (int, error) {
	h.mu.Lock()
	n := h.does[h.next%len(h.does)]
	h.next++
	h.mu.Unlock()
	switch n {
	case 1:
		return n, errDrawn
	case 2:
		panic("drawn")
	case 3:
		<-ctx.Done()
		return n, ctx.Err()
	case 4:
		<-h.w.release // left behind after the time of grace
	case 5:
		h.w.cancel()
	case 6:
		_, _ = h.w.a.Steer(ctx, said("From a hook."))
	case 7:
		// Where it is not allowed it fails, and changes nothing.
		_ = st.Edit(ctx, func(s *outcrop.Session) error {
			if len(s.Surface().Nodes()) == 0 {
				return nil
			}
			return coverAll(s)
		})
	case 8:
		return n, h.w.a.SetPolicy(ctx, agent.AskExec)
	}
	return n, nil
}

func (h *drawnHooks) hooks(kinds int) (out agent.Hooks) {
	all := agent.Options{}
	with(
		contribute(func(ctx context.Context, st agent.Stage) ([]workspace.Context, error) {
			n, err := h.act(ctx, st)
			return []workspace.Context{{Name: "hook", Text: fmt.Sprint("State ", n/5)}}, err
		}),
		preStep(func(ctx context.Context, st agent.Stage, in inputs) (inputs, bool, error) {
			n, err := h.act(ctx, st)
			if n == 9 && len(in) > 0 {
				in = in[1:]
			}
			return in, n == 6, err
		}),
		request(func(ctx context.Context, st agent.Stage, c llm.Config) (llm.Config, error) {
			n, err := h.act(ctx, st)
			c.MaxTokens = int64(n)
			return c, err
		}),
		onError(func(ctx context.Context, st agent.Stage, _ *message.Failure) (bool, error) {
			n, err := h.act(ctx, st)
			return n%2 == 1, err
		}),
		before(func(ctx context.Context, st agent.Stage, _ tool.Tool, _ tool.Call) (string, error) {
			n, err := h.act(ctx, st)
			return map[bool]string{true: "drawn"}[n == 9], err
		}),
		after(func(ctx context.Context, st agent.Stage, _ tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
			n, err := h.act(ctx, st)
			out.EndTurn = n == 8
			if n == 9 {
				out.Content = []message.Block{{Type: "x", Raw: json.RawMessage("{")}}
				return out, inputs{said("About a call.")}, err
			}
			return out, nil, err
		}),
		stopping(func(ctx context.Context, st agent.Stage) (inputs, error) {
			if n, err := h.act(ctx, st); n != 9 || st.Step > 3 {
				return nil, err
			}
			return inputs{said("And then?")}, nil
		}))(&all)
	has := func(bit int) bool { return kinds&(1<<bit) != 0 }
	if has(0) {
		out.Contributors = all.Hooks.Contributors
	}
	if has(1) {
		out.PreStep = all.Hooks.PreStep
	}
	if has(2) {
		out.Request = all.Hooks.Request
	}
	if has(3) {
		out.RequestError = all.Hooks.RequestError
	}
	if has(4) {
		out.BeforeTool = all.Hooks.BeforeTool
	}
	if has(5) {
		out.AfterTool = all.Hooks.AfterTool
	}
	if has(6) {
		out.Stopping = all.Hooks.Stopping
	}
	return out
}
