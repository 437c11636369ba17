package opencode

import (
	"fmt"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
	"github.com/outcrop-dev/outcrop/message"
)

// item gives one session message, as the later versions keep them: what
// happened, each with its content.
func (f *feeder) item(e *entry) error {
	at := created(e)
	switch e.kind {
	case "user":
		return f.laterUser(e, at)
	case "synthetic":
		s := e.info.Text("text")
		if s == "" {
			return nil
		}
		f.order = append(f.order, e.id)
		return f.b.AddContext(exchange.Context{ID: e.id, Time: at, Content: []message.Block{message.Text(s)}})
	case "shell":
		f.b.Mapped("command of the person", "a context message with its output")
		f.order = append(f.order, e.id)
		return f.b.AddContext(exchange.Context{ID: e.id, Time: at, Content: []message.Block{
			message.Text("The person ran a command:\n$ " + e.info.Text("command") + "\n" + e.info.Text("output"))}})
	case "assistant":
		return f.laterAssistant(e, at)
	case "compaction":
		s := e.info.Text("summary")
		if s == "" {
			f.b.Dropped("summary", "it was not finished, and replaced nothing")
			return nil
		}
		c := exchange.Compaction{Time: at, Summary: []message.Block{message.Text(s)}, MessageID: e.id}
		if kept := e.info.Text("include"); kept != "" {
			c.Summary = append(c.Summary, message.Text(kept))
		}
		f.order = append(f.order, e.id)
		return f.compact(c)
	case "model-switched":
		m := e.info.Of("model")
		f.b.Model(exchange.Model{Provider: m.Text("providerID"), Model: m.Text("id"), Effort: m.Text("variant")})
		return nil
	case "agent-switched":
		f.b.Dropped("switch of the agent", "a setting of opencode")
		return nil
	}
	f.b.Dropped("session message "+clip(e.kind), "the kind is not known")
	return nil
}

func (f *feeder) laterUser(e *entry, at int64) error {
	var content []message.Block
	if s := e.info.Text("text"); s != "" {
		content = append(content, message.Text(s))
	}
	for p := range e.info.List("files") {
		b, ok, err := f.file(fields.Of(p), false)
		if err != nil {
			return err
		}
		if ok {
			content = append(content, b)
		}
	}
	for range e.info.List("agents") {
		f.b.Mapped("mention of an agent", "its place in the prompt's text")
	}
	if len(content) == 0 {
		f.b.Dropped("prompt", "it has no content")
		return nil
	}
	if err := f.endTurn(); err != nil {
		return err
	}
	if err := f.b.Prompt(exchange.Prompt{ID: e.id, Time: at, Content: content}); err != nil {
		return err
	}
	f.order = append(f.order, e.id)
	return f.giveTitle(at)
}

func (f *feeder) laterAssistant(e *entry, at int64) error {
	m := e.info.Of("model")
	r := exchange.Reply{ID: e.id, Time: at, Provider: m.Text("providerID"), Model: m.Text("id"), Usage: usageOf(e.info.Of("tokens")),
		MaxTokens: e.info.Text("finish") == "length"}
	var states []exchange.Thinking
	var results []exchange.Result
	add := func(b message.Block, t exchange.Thinking) {
		r.Content, states = append(r.Content, b), append(states, t)
	}
	for v := range e.info.List("content") {
		p := fields.Of(v)
		switch t := p.Text("type"); t {
		case "text":
			if s := p.Text("text"); s != "" && !p.True("ignored") {
				add(message.Text(s), exchange.Thinking{})
			}
		case "reasoning":
			f.reasoning(p, r.Provider, add)
		case "tool":
			c, res, err := f.laterTool(p)
			if err != nil {
				return err
			}
			add(c, exchange.Thinking{})
			if res != nil {
				results = append(results, *res)
			}
		default:
			add(f.b.Raw("content "+clip(t), v), exchange.Thinking{})
		}
	}
	failure := ""
	if v := e.info.Of("error"); v.IsObject() {
		if failure = v.Text("type"); failure == "" {
			failure = v.Text("name")
		}
		if failure == "" {
			failure = "UnknownError"
		}
		if failure == "aborted" || v.Text("name") == "MessageAbortedError" {
			failure, r.Interrupted = "MessageAbortedError", true
		}
	}
	switch {
	case len(r.Content) > 0:
		r.Replay = exchange.ThinkingReplay(states)
		if err := f.reply(r); err != nil {
			return err
		}
		f.order = append(f.order, e.id)
	case failure == "":
		f.b.Dropped("reply", "it has no content")
	}
	for _, res := range results {
		if err := f.b.Result(res); err != nil {
			return err
		}
	}
	if failure != "" {
		f.failed(e, failure, max(at, millis(e.info.Of("time").Get("completed"))))
	}
	return nil
}

// laterTool gives a call and its result; nil when there is none.
func (f *feeder) laterTool(p fields.Object) (message.Block, *exchange.Result, error) {
	state := p.Of("state")
	id := p.Text("id")
	call := message.ToolCall(id, p.Text("name"), f.arguments(state.Get("input"), ""))
	status := state.Text("status")
	if status != "completed" && status != "error" {
		return call, nil, nil
	}
	times := p.Of("time")
	if times.Get("pruned") != nil {
		f.b.Mapped("result that was cleared from requests", "the whole result")
	}
	r := &exchange.Result{CallID: id, Time: millis(times.Get("completed")), IsError: status == "error"}
	for v := range state.List("content") {
		c := fields.Of(v)
		switch t := c.Text("type"); t {
		case "text":
			if s := c.Text("text"); s != "" {
				r.Content = append(r.Content, message.Text(s))
			}
		case "file":
			b, ok, err := f.file(c, false)
			if err != nil {
				return call, nil, err
			}
			if ok {
				r.Content = append(r.Content, b)
			}
		default:
			r.Content = append(r.Content, f.b.Raw("content "+clip(t), v))
		}
	}
	for v := range state.List("attachments") {
		b, ok, err := f.file(fields.Of(v), false)
		if err != nil {
			return call, nil, err
		}
		if ok {
			r.Content = append(r.Content, b)
		}
	}
	if s := state.Of("error").Text("message"); s != "" {
		r.Content = append(r.Content, message.Text(s))
	} else if len(r.Content) == 0 && r.IsError {
		r.Content = append(r.Content, message.Text(fmt.Sprintf("tool %s failed", p.Text("name"))))
	}
	return call, r, nil
}
