package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// answer is what a model does in one call.
type answer func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool)

// model answers its calls one after the other, says "ok" when it has no more
// answers, and keeps what it was sent.
type model struct {
	name    string
	answers []answer

	mu   sync.Mutex
	sent []llm.Request
}

func plays(answers ...answer) *model { return &model{name: "fake", answers: answers} }

func (m *model) Name() string { return m.name }

func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	m.mu.Lock()
	n := len(m.sent)
	m.sent = append(m.sent, req)
	m.mu.Unlock()
	return func(yield func(message.Chunk, error) bool) {
		if n < len(m.answers) {
			m.answers[n](ctx, req, yield)
			return
		}
		says("ok")(ctx, req, yield)
	}
}

func (m *model) requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sent)
}

// texts is the text of each message of the nth request, from 1.
func (m *model) texts(t testing.TB, n int) (out []string) {
	t.Helper()
	sent := m.requests()
	if len(sent) < n {
		t.Fatalf("%d requests, want at least %d", len(sent), n)
	}
	for _, msg := range sent[n-1].Messages {
		out = append(out, blocksText(msg.Content))
	}
	return out
}

func blocksText(blocks []message.Block) string {
	var parts []string
	for _, b := range blocks {
		switch b.Type {
		case message.ToolCallBlock:
			parts = append(parts, "call "+b.ID)
		case message.ToolResultBlock:
			parts = append(parts, "result "+b.ToolCallID+" "+message.PlainText(b.Content))
		default:
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, " | ")
}

func delta(s string) message.Chunk { return message.Chunk{Type: message.TextDelta, Text: s} }

func finish(k message.FinishKind) message.Chunk {
	return message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: k}}
}

func says(s string) answer {
	return func(_ context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
		_ = yield(delta(s), nil) && yield(finish(message.Stop), nil)
	}
}

// asks calls tools: "name" or "name id" each, with arguments {}.
func asks(calls ...string) answer {
	return func(_ context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
		for i, c := range calls {
			name, id, ok := strings.Cut(c, " ")
			if !ok {
				id = fmt.Sprintf("c%d", i+1)
			}
			b := message.ToolCall(id, name, "{}")
			if !yield(message.Chunk{Type: message.BlockEnd, Index: i, Block: &b}, nil) {
				return
			}
		}
		yield(finish(message.ToolCalls), nil)
	}
}

// hangs streams chunks and then waits for its cancel.
func hangs(chunks ...message.Chunk) answer {
	return func(ctx context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(message.Chunk{}, &message.Failure{Code: message.CodeAborted, Message: "cancelled"})
	}
}

func streams(chunks ...message.Chunk) answer {
	return func(_ context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func fails(code string) answer {
	return func(_ context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
		yield(message.Chunk{}, &message.Failure{Code: code, Message: "no: " + code})
	}
}

// doing calls f before the answer.
func doing(f func(), then answer) answer {
	return func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
		f()
		then(ctx, req, yield)
	}
}

// Hooks made of functions.
type (
	contribute func(ctx context.Context, st agent.Stage) ([]workspace.Context, error)
	preStep    func(ctx context.Context, st agent.Stage, in []message.Message) ([]message.Message, bool, error)
	request    func(ctx context.Context, st agent.Stage, c llm.Config) (llm.Config, error)
	onError    func(ctx context.Context, st agent.Stage, f *message.Failure) (bool, error)
	before     func(ctx context.Context, st agent.Stage, t tool.Tool, call tool.Call) (string, error)
	after      func(ctx context.Context, st agent.Stage, call tool.Call, out tool.Outcome) (tool.Outcome, []message.Message, error)
	stopping   func(ctx context.Context, st agent.Stage) ([]message.Message, error)
)

func (f contribute) Contribute(ctx context.Context, st agent.Stage) ([]workspace.Context, error) {
	return f(ctx, st)
}
func (f preStep) PreStep(ctx context.Context, st agent.Stage, in []message.Message) ([]message.Message, bool, error) {
	return f(ctx, st, in)
}
func (f request) Request(ctx context.Context, st agent.Stage, c llm.Config) (llm.Config, error) {
	return f(ctx, st, c)
}
func (f onError) RequestError(ctx context.Context, st agent.Stage, e *message.Failure) (bool, error) {
	return f(ctx, st, e)
}
func (f before) BeforeTool(ctx context.Context, st agent.Stage, t tool.Tool, call tool.Call) (string, error) {
	return f(ctx, st, t, call)
}
func (f after) AfterTool(ctx context.Context, st agent.Stage, call tool.Call, out tool.Outcome) (tool.Outcome, []message.Message, error) {
	return f(ctx, st, call, out)
}
func (f stopping) Stopping(ctx context.Context, st agent.Stage) ([]message.Message, error) {
	return f(ctx, st)
}

// with adds hooks of any kind.
func with(hooks ...any) func(*agent.Options) {
	return func(o *agent.Options) {
		for _, h := range hooks {
			switch h := h.(type) {
			case contribute:
				o.Hooks.Contributors = append(o.Hooks.Contributors, h)
			case preStep:
				o.Hooks.PreStep = append(o.Hooks.PreStep, h)
			case request:
				o.Hooks.Request = append(o.Hooks.Request, h)
			case onError:
				o.Hooks.RequestError = append(o.Hooks.RequestError, h)
			case before:
				o.Hooks.BeforeTool = append(o.Hooks.BeforeTool, h)
			case after:
				o.Hooks.AfterTool = append(o.Hooks.AfterTool, h)
			case stopping:
				o.Hooks.Stopping = append(o.Hooks.Stopping, h)
			default:
				panic(fmt.Sprintf("%T is no hook", h))
			}
		}
	}
}

// row is one row of the checklist. Its name begins with the ids of the rows
// that it proves.
func row(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// talk is a session with its agent.
type talk struct {
	t     *testing.T
	live  *memoryLive
	model *model
	*agent.Agent
}

func talking(t *testing.T, m *model, change ...func(*agent.Options)) *talk {
	t.Helper()
	return talkingOn(t, newLive(t, ownHeader(), outcrop.Options{}), m, change...)
}

func talkingOn(t *testing.T, live *memoryLive, m *model, change ...func(*agent.Options)) *talk {
	t.Helper()
	return &talk{t, live, m, start(t, live, m, change...)}
}

func (k *talk) say(text string) agent.Outcome { k.t.Helper(); return ask(k.t, k.Agent, text) }
func (k *talk) send(text string)              { k.t.Helper(); send(k.t, k.Agent, text) }
func (k *talk) end() agent.Outcome            { k.t.Helper(); return wait(k.t, k.Agent) }

func (k *talk) steer(text string) string {
	k.t.Helper()
	id, err := k.Steer(background, said(text))
	if err != nil {
		k.t.Errorf("steer %q: %v", text, err)
	}
	return id
}

func (k *talk) inject(text string) {
	k.t.Helper()
	if _, err := k.Inject(background, said(text)); err != nil {
		k.t.Errorf("inject %q: %v", text, err)
	}
}

func (k *talk) cancel(opts ...agent.CancelOption) {
	k.t.Helper()
	if _, err := k.Cancel(background, agent.Cause{Kind: agent.ByUser}, opts...); err != nil {
		k.t.Errorf("cancel: %v", err)
	}
}

// logs compares the outline of the log.
func (k *talk) logs(want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(want, outline(k.live.s.Log())); diff != "" {
		k.t.Errorf("log (-want +got):\n%s", diff)
	}
}

// logsBut is logs without a line whose place is nobody's business.
func (k *talk) logsBut(left string, want ...string) {
	k.t.Helper()
	got := slices.DeleteFunc(outline(k.live.s.Log()), func(line string) bool { return line == left })
	if diff := cmp.Diff(want, got); diff != "" {
		k.t.Errorf("log (-want +got):\n%s", diff)
	}
}

// sends compares the messages of the nth request.
func (k *talk) sends(n int, want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(want, k.model.texts(k.t, n)); diff != "" {
		k.t.Errorf("request %d (-want +got):\n%s", n, diff)
	}
}

func (k *talk) calls(n int) {
	k.t.Helper()
	if got := len(k.model.requests()); got != n {
		k.t.Errorf("%d requests were sent, want %d", got, n)
	}
}

func (k *talk) waiting(step, turn []string) {
	k.t.Helper()
	gotStep, gotTurn := pending(k.t, k.Agent)
	if !cmp.Equal(step, gotStep) || !cmp.Equal(turn, gotTurn) {
		k.t.Errorf("pending %q and %q, want %q and %q", gotStep, gotTurn, step, turn)
	}
}

func ended(t testing.TB, out agent.Outcome, want string) {
	t.Helper()
	if got := reasonText(out.Reason); got != want {
		t.Errorf("the turn ended %q (%v), want %q", got, out.Err, want)
	}
}

func reasonText(r outcrop.TurnReason) string {
	switch r.Kind {
	case outcrop.TurnAborted:
		return strings.TrimSpace("aborted " + r.Abort.Kind + " " + r.Abort.Reason)
	case outcrop.TurnError:
		return "error " + r.Error.Code + " " + r.Error.Message
	}
	return string(r.Kind)
}

// outline is a log in short: what a reader would tell of it. Headers, requests
// and chunks are left out.
func outline(log outcrop.Log) (out []string) {
	for ev := range outcrop.Events(log, 0) {
		var d struct {
			Turn, Step, Start, RemovedCount int
			Target, Outcome, CallID, Name   string
			ToolName, Policy, Reason        any
			Interrupted                     bool
			Inserted                        []message.Message
			Content                         json.RawMessage
			Source                          message.Source
			Message                         *message.Message
			Error                           *struct{ Code string }
		}
		if err := json.Unmarshal(ev.Data, &d); err != nil {
			panic(err)
		}
		line := ""
		list := strings.TrimPrefix(d.Target, "next-")
		switch ev.Type {
		case outcrop.TypeInboxSpliced:
			switch {
			case d.Inserted != nil && d.RemovedCount == 0:
				line = fmt.Sprintf("+%s %s", list, blocksText(d.Inserted[0].Content))
			case d.Outcome == "canceled":
				line = fmt.Sprintf("drop %s %d at %d", list, d.RemovedCount, d.Start)
			default:
				line = fmt.Sprintf("claim %s %d", list, d.RemovedCount)
			}
		case outcrop.TypeTurnStart:
			line = fmt.Sprintf("turn %d", d.Turn)
		case outcrop.TypeStepStart:
			line = fmt.Sprintf("step %d", d.Step)
		case outcrop.TypeUserMessage, outcrop.TypeContextMessage:
			blocks, err := message.ParseBlocks(d.Content)
			if err != nil {
				panic(err)
			}
			line = "user " + blocksText(blocks)
			if ev.Type == outcrop.TypeContextMessage {
				line = "context " + d.Source.Form + ": " + blocksText(blocks)
			}
		case outcrop.TypeAssistantMessage:
			line = strings.TrimSpace("says " + blocksText(d.Message.Content))
			if d.Interrupted {
				line += " (interrupted)"
			}
		case outcrop.TypeToolCall:
			line = "call " + d.CallID
		case outcrop.TypeToolResult:
			line = blocksText(d.Message.Content)
			if d.Error != nil {
				line = "result " + d.Message.Content[0].ToolCallID + " " + d.Error.Code
			}
		case outcrop.TypeStepEnd:
			line = "end of step"
		case outcrop.TypeTurnEnd:
			line = "end of turn: " + turnEndText(ev.Data)
		case outcrop.TypeApprovalAsked:
			line = fmt.Sprint("ask ", d.ToolName)
		case outcrop.TypeApprovalDecided:
			line = "decided " + d.Outcome
		case outcrop.TypeApprovalPolicy:
			line = fmt.Sprint("policy ", d.Policy)
		case outcrop.TypeLLMRetry:
			line = "retry"
		case outcrop.TypeLLMRetryStarted:
			line = "retry started"
		default:
			continue
		}
		out = append(out, line)
	}
	return out
}

func turnEndText(data []byte) string {
	var d struct {
		Reason struct {
			Kind   string
			Reason struct{ Kind, Reason string }
			Error  struct{ Code, Message string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		panic(err)
	}
	r := d.Reason
	return strings.TrimSpace(strings.Join(strings.Fields(strings.Join([]string{r.Kind, r.Reason.Kind, r.Reason.Reason, r.Error.Code, r.Error.Message}, " ")), " "))
}

// atFlush does something once, inside the first flush that comes with an event
// of this type as the last one but for what is named here.
func (l *memoryLive) atFlush(typ outcrop.Type, f func()) {
	done := false
	var mu sync.Mutex
	l.during = func(context.Context) {
		mu.Lock()
		now := !done && len(eventsOf(l.s.Log(), typ)) > 0
		done = done || now
		mu.Unlock()
		if now {
			f()
		}
	}
}

// looks is a tool that may run beside others.
func looks(run func(ctx context.Context, call tool.Call) (tool.Result, error)) *fakeTool {
	return &fakeTool{name: "look", class: tool.Read, parallel: true, run: run}
}

// untilCancel is a tool that ends with its context.
func untilCancel(ctx context.Context, _ tool.Call) (tool.Result, error) {
	<-ctx.Done()
	return tool.Result{}, ctx.Err()
}

func logsTo(w io.Writer) func(*agent.Options) {
	return func(o *agent.Options) { o.Logger = slog.New(slog.NewTextHandler(w, nil)) }
}
