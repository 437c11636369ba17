package opencode

import (
	"fmt"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
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
		s := text(e.info, "text")
		if s == "" {
			return nil
		}
		f.order = append(f.order, e.id)
		return f.b.AddContext(exchange.Context{ID: e.id, Time: at, Content: []message.Block{message.Text(s)}})
	case "shell":
		f.b.Mapped("command of the person", "a context message with its output")
		f.order = append(f.order, e.id)
		return f.b.AddContext(exchange.Context{ID: e.id, Time: at, Content: []message.Block{
			message.Text("The person ran a command:\n$ " + text(e.info, "command") + "\n" + text(e.info, "output"))}})
	case "assistant":
		return f.laterAssistant(e, at)
	case "compaction":
		s := text(e.info, "summary")
		if s == "" {
			f.b.Dropped("summary", "it was not finished, and replaced nothing")
			return nil
		}
		c := exchange.Compaction{Time: at, Summary: []message.Block{message.Text(s)}, MessageID: e.id}
		if kept := text(e.info, "include"); kept != "" {
			c.Summary = append(c.Summary, message.Text(kept))
		}
		f.order = append(f.order, e.id)
		return f.compact(c)
	case "model-switched":
		m := get(e.info, "model")
		f.b.Model(exchange.Model{Provider: text(m, "providerID"), Model: text(m, "id"), Effort: text(m, "variant")})
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
	if s := text(e.info, "text"); s != "" {
		content = append(content, message.Text(s))
	}
	for p := range elements(get(e.info, "files")) {
		b, ok, err := f.file(p, false)
		if err != nil {
			return err
		}
		if ok {
			content = append(content, b)
		}
	}
	for range elements(get(e.info, "agents")) {
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
	m := get(e.info, "model")
	r := exchange.Reply{ID: e.id, Time: at, Provider: text(m, "providerID"), Model: text(m, "id"), Usage: usageOf(get(e.info, "tokens")),
		MaxTokens: text(e.info, "finish") == "length"}
	var states []exchange.Thinking
	var results []exchange.Result
	add := func(b message.Block, t exchange.Thinking) {
		r.Content, states = append(r.Content, b), append(states, t)
	}
	for p := range elements(get(e.info, "content")) {
		switch t := text(p, "type"); t {
		case "text":
			if s := text(p, "text"); s != "" && !isTrue(p, "ignored") {
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
			add(f.b.Raw("content "+clip(t), p), exchange.Thinking{})
		}
	}
	failure := ""
	if v := get(e.info, "error"); jsonwire.Kind(v) == '{' {
		if failure = text(v, "type"); failure == "" {
			failure = text(v, "name")
		}
		if failure == "" {
			failure = "UnknownError"
		}
		if failure == "aborted" || text(v, "name") == "MessageAbortedError" {
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
		f.failed(e, failure, max(at, millis(get(get(e.info, "time"), "completed"))))
	}
	return nil
}

// laterTool gives a call and its result; nil when there is none.
func (f *feeder) laterTool(p []byte) (message.Block, *exchange.Result, error) {
	state := get(p, "state")
	id := text(p, "id")
	call := message.ToolCall(id, text(p, "name"), f.arguments(get(state, "input"), ""))
	status := text(state, "status")
	if status != "completed" && status != "error" {
		return call, nil, nil
	}
	times := get(p, "time")
	if get(times, "pruned") != nil {
		f.b.Mapped("result that was cleared from requests", "the whole result")
	}
	r := &exchange.Result{CallID: id, Time: millis(get(times, "completed")), IsError: status == "error"}
	for c := range elements(get(state, "content")) {
		switch t := text(c, "type"); t {
		case "text":
			if s := text(c, "text"); s != "" {
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
			r.Content = append(r.Content, f.b.Raw("content "+clip(t), c))
		}
	}
	for c := range elements(get(state, "attachments")) {
		b, ok, err := f.file(c, false)
		if err != nil {
			return call, nil, err
		}
		if ok {
			r.Content = append(r.Content, b)
		}
	}
	if s := text(get(state, "error"), "message"); s != "" {
		r.Content = append(r.Content, message.Text(s))
	} else if len(r.Content) == 0 && r.IsError {
		r.Content = append(r.Content, message.Text(fmt.Sprintf("tool %s failed", text(p, "name"))))
	}
	return call, r, nil
}
