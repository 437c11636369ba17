package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// author makes sessions worth replaying: a person, a model and tools that do a
// bit of everything, drawn from a seed.
type author struct {
	*rand.Rand
	mu      sync.Mutex // of Rand and of what follows: tools and model run at any time
	a       *agent.Agent
	s       *outcrop.Session
	durable []int // lengths of the log that were flushed: where a crash may cut it
	prompts int
}

func (w *author) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.IntN(n)
}

func (w *author) stream(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
	index := 0
	text := func(typ message.BlockType, s string) bool {
		delta := message.TextDelta
		if typ == message.ReasoningBlock {
			delta = message.ReasoningDelta
		}
		ok := yield(message.Chunk{Type: message.BlockStart, Index: index, BlockType: typ}, nil)
		for _, word := range strings.SplitAfter(s, " ") {
			ok = ok && yield(message.Chunk{Type: delta, Index: index, Text: word}, nil)
		}
		index++
		return ok
	}
	if w.draw(3) == 0 && !text(message.ReasoningBlock, "Let me think about this.") {
		return
	}
	if w.draw(4) > 0 && !text(message.TextBlock, fmt.Sprintf("This is step %d of turn %d, as asked.", req.Step, req.Turn)) {
		return
	}
	fail := func(code string) { yield(message.Chunk{}, &message.Failure{Code: code, Message: "drawn " + code}) }
	switch w.draw(14) {
	case 0, 1:
		fail(message.CodeServer)
		return
	case 2:
		fail(message.CodeAuth)
		return
	case 3:
		<-ctx.Done()
		fail(message.CodeAborted)
		return
	case 4:
		yield(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.MaxTokens}}, nil)
		return
	}
	calls := max(w.draw(5)-1, 0)
	if req.Step > 4 {
		calls = 0
	}
	ids := []string{"a", "b", "a", "", "has space", "call_1_1_1", strings.Repeat("x", 50)}
	names := []string{"look", "look", "look", "edit", "edit", "boom", "hang", "wait", "steer", "nope", "lok"}
	args := []string{`{}`, `{"x":"1"}`, `{"x":"1"}`, ``, `{"x":"cut`, `{"x":1}`, `{"y":1}`}
	for range calls {
		id, name, arg := ids[w.draw(len(ids))], names[w.draw(len(names))], args[w.draw(len(args))]
		b := message.ToolCall(id, name, arg)
		if !yield(message.Chunk{Type: message.ToolCallDelta, Index: index, ID: id, Name: name, Text: arg}, nil) ||
			!yield(message.Chunk{Type: message.BlockEnd, Index: index, Block: &b}, nil) {
			return
		}
		index++
	}
	if w.draw(4) > 0 {
		_ = yield(message.Chunk{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: 10, OutputTokens: 5}}, nil) &&
			yield(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Stop}}, nil)
	}
}

func (w *author) tools() []tool.Tool {
	wait := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	return []tool.Tool{
		&fakeTool{name: "look", class: tool.Read, parallel: true, run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Text(strings.Repeat("A line of a file.\n", 1+w.draw(40))), nil
		}},
		&fakeTool{name: "edit", class: tool.Edit, run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Content: []message.Block{message.Text("edited"), imageBlock("small")}, Meta: []byte(`{"n":1}`)}, nil
		}},
		&fakeTool{name: "boom", class: tool.Read, parallel: true, run: func(context.Context, tool.Call) (tool.Result, error) { panic("drawn") }},
		&fakeTool{name: "hang", class: tool.Read, run: wait},
		&fakeTool{name: "wait", class: tool.Read, parallel: true, run: wait},
		&fakeTool{name: "steer", class: tool.Read, run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			if _, err := w.a.Steer(ctx, w.prompt()); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{}, &tool.Error{Name: "Odd", Code: "ODD", Msg: "steered"}
		}},
	}
}

func (w *author) prompt() message.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prompts++
	return message.Message{ID: fmt.Sprintf("p-%d", w.prompts), Content: []message.Block{message.Text(fmt.Sprintf("Prompt %d.", w.prompts))}}
}

func (w *author) approve(ctx context.Context, _ agent.Question) (agent.Answer, error) {
	switch w.draw(5) {
	case 0:
		return agent.Answer{Verdict: agent.Reject, Reason: "not that file"}, nil
	case 1:
		return agent.Answer{Verdict: agent.Reject}, nil
	case 2:
		if w.draw(2) == 0 {
			return agent.Answer{}, agent.ErrUnavailable
		}
		<-ctx.Done()
		return agent.Answer{}, ctx.Err()
	}
	return agent.Answer{Verdict: agent.AllowOnce}, nil
}

// session makes one session. It must be called in a bubble.
func (w *author) session(header outcrop.Header) (outcrop.Log, error) {
	var err error
	if w.s, err = outcrop.New(header, outcrop.Options{}); err != nil {
		return nil, err
	}
	lives := 1 + w.draw(3)
	for life := range lives {
		w.durable = nil
		crashed, err := w.live()
		if err != nil {
			return w.s.Log(), err
		}
		log := w.s.Log()
		if crashed && len(w.durable) > 0 {
			log = outcrop.Prefix(log, w.durable[w.draw(len(w.durable))])
		}
		synctest.Wait()
		if life == lives-1 {
			return log, nil
		}
		if w.s, err = outcrop.Restore(header, records(log), outcrop.Options{}); err != nil {
			return log, err
		}
	}
	return w.s.Log(), nil
}

// live is one life: some turns, with edits of the history between them.
func (w *author) live() (crashed bool, err error) {
	reg, err := tool.NewRegistry(tool.Options{}, w.tools()...)
	if err != nil {
		return false, err
	}
	cfg := llm.Config{Provider: "p", Model: "m1"}
	var day atomic.Int64
	live := &memoryLive{s: w.s, fail: func(n int) error { w.durable = append(w.durable, n); return nil }}
	w.a, err = agent.New(agent.Options{
		Live: live, Provider: streamFunc(w.stream), Config: cfg, System: "Be kind.", Tools: reg, Images: true,
		Policy: agent.AskAll, Approver: approverFunc(w.approve), Limits: agent.Limits{Steps: 6}, Retry: agent.RetryPolicy{Max: 2},
		Contexts: func(context.Context) []workspace.Context {
			return []workspace.Context{{Name: "runtime", Text: fmt.Sprintf("Day %d.", day.Load())}, {Name: "rules", Text: "Be brief."}}
		},
	})
	if err != nil {
		return false, err
	}
	ctx := context.Background()
	defer func() { err = errors.Join(err, w.a.Close(ctx)) }()
	for range 1 + w.draw(4) {
		for range 1 + w.draw(2) {
			if _, err := w.a.Send(ctx, w.prompt()); err != nil {
				return false, err
			}
		}
		day.Add(int64(w.draw(2)))
		if crashed, err := w.idle(ctx); crashed || err != nil {
			return crashed, err
		}
		if w.draw(4) == 0 {
			cfg.MaxTokens += 100
			if err := w.a.SetModel(ctx, agent.Model{Provider: streamFunc(w.stream), Config: cfg, Images: true}); err != nil {
				return false, err
			}
		}
		if w.draw(2) == 0 {
			if err := w.a.Maintain(ctx, w.edit); err != nil {
				return false, err
			}
		}
	}
	return w.draw(4) == 0, nil
}

// idle waits until the agent has nothing to do; what hangs is cancelled, or the
// process dies.
func (w *author) idle(ctx context.Context) (crashed bool, err error) {
	for {
		synctest.Wait()
		switch st := w.a.Status(); {
		case st.Phase == agent.Idle:
			return false, nil
		case st.Phase == agent.Retrying && w.draw(4) > 0:
			time.Sleep(time.Minute)
		case w.draw(4) == 0:
			return true, nil
		default:
			var keep []agent.CancelOption
			if w.draw(2) == 0 {
				keep = append(keep, agent.KeepInbox)
			}
			if _, err := w.a.Cancel(ctx, agent.Cause{Kind: agent.ByUser}, keep...); err != nil {
				return false, err
			}
		}
	}
}

// edit prunes a result or condenses the beginning of the conversation.
func (w *author) edit(s *outcrop.Session) error {
	nodes := s.Surface().Nodes()
	if w.draw(2) == 0 {
		for _, node := range nodes {
			if s.Log().At(node).Type != outcrop.TypeToolResult {
				continue
			}
			if _, err := history.CommitPrune(s, node, []message.Block{message.Text("(cut)")}); err == nil {
				return nil
			}
		}
		return nil
	}
	cuts := history.BalancedCut(s)
	for end := len(nodes) - 1; end > 2; end-- {
		if !cuts[end] {
			continue
		}
		_, err := history.CommitCompaction(s, history.Compaction{
			Start: nodes[0], End: nodes[end-1], Summary: []message.Block{message.Text("What happened.")}, Provider: "p", Model: "m1",
		})
		if err != nil && !errors.Is(err, outcrop.ErrRefused) {
			return err
		}
		return nil
	}
	return nil
}

// A hundred sessions with tools, retries, approvals, steering, cancels, crashes
// and edits of the history give the same messages and the same requests again.
func TestGeneratedSessionsCanBeReplayed(t *testing.T) {
	seen := map[outcrop.Type]int{}
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			header := ownHeader()
			if seed%5 == 4 {
				header = compatibleHeader()
			}
			var log outcrop.Log
			var err error
			synctest.Test(t, func(*testing.T) {
				w := &author{Rand: rand.New(rand.NewPCG(seed, 3))}
				log, err = w.session(header)
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, clipped(log))
			}
			for ev := range outcrop.Events(log, 0) {
				seen[ev.Type]++
			}
			replayLog(t, header, log, false)
		})
	}
	for _, typ := range []outcrop.Type{
		outcrop.TypeLLMRetry, outcrop.TypeApprovalAsked, outcrop.TypeCompactionSummary, outcrop.TypeCompactionPrune, outcrop.TypeEndSeed,
		outcrop.TypeContextMessage, outcrop.TypeToolResult,
	} {
		if seen[typ] < 20 {
			t.Errorf("only %d events of the type %s were generated", seen[typ], typ)
		}
	}
}
