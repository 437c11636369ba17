package run

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// output shows the events of a run while it goes on, and sums up what it cost.
// event is called by one goroutine at a time; asked may be waited for by another.
type output struct {
	r      *run
	json   bool
	stream bool // the answer streams to stdout
	calls  bool // calls are told on stderr

	midLine  bool             // stdout stands inside a line
	attempts []*message.Usage // of each attempt, nil when the model did not say
	text     string           // of the turn's last assistant/message
	retries  int              // of the step

	mu    sync.Mutex
	asked map[string]chan struct{} // by question: closed when all before it is shown
}

func (r *run) newOutput() *output {
	a := r.a
	return &output{
		r: r, json: a.Flags.JSON,
		stream: !a.Flags.JSON && a.Env.Terminal(a.Env.Stdout),
		calls:  !a.Flags.JSON && !a.Flags.Quiet && a.Env.Terminal(a.Env.Stderr),
		asked:  map[string]chan struct{}{},
	}
}

// event shows one committed event.
func (o *output) event(ev outcrop.Event) {
	o.note(ev)
	a := o.r.a
	if o.json {
		if ev.Type != outcrop.TypeAssistantChunk || o.r.chunks {
			a.Line(answer.New().Raw("event", ev.AppendJSON(nil)).End())
			a.Out.Flush()
		}
		o.reached(ev)
		return
	}
	switch ev.Type {
	case outcrop.TypeAssistantChunk:
		c := jsonwire.Get(ev.Data, "chunk")
		if o.stream && jsonwire.TextIs(jsonwire.Get(c, "type"), string(message.TextDelta)) {
			if text, _ := jsonwire.Text(jsonwire.Get(c, "text")); text != "" {
				a.Text(term.Text(text))
				a.Out.Flush()
				o.midLine = !strings.HasSuffix(text, "\n")
			}
		}
	case outcrop.TypeAssistantMessage, outcrop.TypeStepEnd:
		o.endLine()
	case outcrop.TypeToolCall:
		if o.calls {
			o.endLine()
			name, _ := jsonwire.Text(jsonwire.Get(ev.Data, "name"))
			args, _ := jsonwire.Text(jsonwire.Get(ev.Data, "arguments"))
			fmt.Fprintln(a.ErrOut, term.Cut("  "+term.Pad(term.Line(name), 6)+" "+brief.Call(args), term.Width))
		}
	case outcrop.TypeLLMRetry:
		o.endLine()
		o.tellRetry(ev)
	}
	o.reached(ev)
}

// endLine ends a line of stdout that the stream left open.
func (o *output) endLine() {
	if o.midLine {
		o.r.a.Text("\n")
		o.r.a.Out.Flush()
		o.midLine = false
	}
}

// note keeps what the result needs.
func (o *output) note(ev outcrop.Event) {
	switch ev.Type {
	case outcrop.TypeTurnStart:
		o.text = ""
	case outcrop.TypeStepStart:
		o.retries = 0
	case outcrop.TypeLLMRetry:
		o.retries++
	case outcrop.TypeOutcropRequest:
		o.attempts = append(o.attempts, nil)
	case outcrop.TypeAssistantChunk:
		c := jsonwire.Get(ev.Data, "chunk")
		if n := len(o.attempts); n > 0 && jsonwire.TextIs(jsonwire.Get(c, "type"), string(message.UsageChunk)) {
			o.attempts[n-1] = message.ParseUsage(jsonwire.Get(c, "usage"))
		}
	case outcrop.TypeAssistantMessage:
		if m, err := message.Parse(jsonwire.Get(ev.Data, "message")); err == nil {
			var texts []message.Block
			for _, b := range m.Content {
				if b.Type == message.TextBlock {
					texts = append(texts, b)
				}
			}
			o.text = message.PlainText(texts)
		}
	}
}

func (o *output) tellRetry(ev outcrop.Event) {
	ms, _ := jsonwire.Int(jsonwire.Get(ev.Data, "delayMs"))
	why := ""
	if f := message.ParseFailure(jsonwire.Get(ev.Data, "failure")); f != nil {
		why = term.OneLine(f.Message) + ": "
	}
	o.r.a.Note("%strying again in %.1f s", why, float64(ms)/1000)
}

// end prints what comes after the last event.
func (o *output) end(end agent.Outcome) {
	a := o.r.a
	o.endLine()
	switch {
	case o.json:
		a.Line(answer.New().Raw("result", o.result(end)).End())
	case !o.stream && o.text != "":
		a.Text(o.text)
		if !strings.HasSuffix(o.text, "\n") {
			a.Text("\n")
		}
	}
	a.Out.Flush()
}

func (o *output) result(end agent.Outcome) []byte {
	usage, cost := o.spent()
	res := answer.Inner().Text("session", o.r.w.Session().ID()).Number("turn", int64(end.Turn)).
		TextOrNull("reason", string(end.Reason.Kind)).Text("text", o.text).Raw("usage", usage).NumberOrNull("costMicroUSD", cost)
	switch f := end.Reason.Error; {
	case f != nil:
		res.Raw("error", f.AppendJSON(nil))
	case end.Reason.Abort.Kind != "":
		res.Raw("aborted", answer.Inner().Text("kind", end.Reason.Abort.Kind).TextOrNull("reason", end.Reason.Abort.Reason).End())
	}
	return res.End()
}

// spent sums up the attempts: usage is null when the model never said, the cost
// is -1 when it cannot be known.
func (o *output) spent() (usage []byte, cost int64) {
	var sum message.Usage
	known := false
	for _, u := range o.attempts {
		c, ok := llm.Cost(u, o.r.w.Model().Price)
		if !ok {
			cost = -1
		} else if cost >= 0 {
			cost += c
		}
		if u == nil {
			continue
		}
		known = true
		sum.InputTokens += u.InputTokens
		sum.OutputTokens += u.OutputTokens
		sum.CacheReadTokens = plus(sum.CacheReadTokens, u.CacheReadTokens)
		sum.CacheWriteTokens = plus(sum.CacheWriteTokens, u.CacheWriteTokens)
		sum.ReasoningTokens = plus(sum.ReasoningTokens, u.ReasoningTokens)
	}
	if !known {
		return []byte("null"), -1
	}
	return sum.AppendJSON(nil), cost
}

func plus(a, b *int64) *int64 {
	if b == nil {
		return a
	}
	n := *b
	if a != nil {
		n += *a
	}
	return &n
}

// question is the channel that is closed when everything before a question was
// shown.
func (o *output) question(id string) chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.asked[id]
	if c == nil {
		c = make(chan struct{})
		o.asked[id] = c
	}
	return c
}

func (o *output) reached(ev outcrop.Event) {
	if ev.Type == outcrop.TypeApprovalAsked {
		id, _ := jsonwire.Text(jsonwire.Get(ev.Data, "id"))
		o.endLine()
		close(o.question(id))
	}
}

// shown waits until everything before a question was shown.
func (o *output) shown(ctx context.Context, id string) {
	select {
	case <-o.question(id):
	case <-ctx.Done():
	}
}
