package arrays

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/callargs"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// feeder gives the messages of one list to a builder.
type feeder struct {
	b       *exchange.Builder
	dialect Dialect
	title   string
	titled  bool
	model   exchange.Model
	begun   bool   // something else than a system prompt came
	answers bool   // the last message was a result
	named   string // the function that was called last, by its name alone
	calls   int    // of such functions so far
}

// begin tells the builder the model before the first message.
func (f *feeder) begin() {
	if !f.begun {
		f.begun = true
		f.b.Model(f.model)
	}
}

// giveTitle gives the title behind the first message.
func (f *feeder) giveTitle() error {
	if f.titled {
		return nil
	}
	f.titled = true
	return f.b.Title(0, f.title)
}

// system adds to the system prompt: text, or blocks of text.
func (f *feeder) system(v []byte) {
	s := plain(v)
	if s == "" {
		return
	}
	if f.model.System != "" {
		s = f.model.System + "\n\n" + s
	}
	f.model.System = s
}

// plain is the text of a content.
func plain(v []byte) string {
	if s, ok := jsonwire.Text(v); ok {
		return s
	}
	var parts []string
	for p := range fields.Elements(v) {
		s, ok := jsonwire.Text(p)
		if !ok {
			s = fields.Of(p).Text("text")
		}
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n\n")
}

// tools reads the definitions of a body.
func (f *feeder) tools(v []byte) {
	for v := range fields.Elements(v) {
		t := fields.Of(v)
		schema, about := t.Get("input_schema"), t
		if fn := t.Of("function"); fn.IsObject() {
			schema, about = fn.Get("parameters"), fn
		} else if schema == nil {
			schema = t.Get("parameters")
		}
		name := about.Text("name")
		if schema == nil && name != "" && t.Text("type") == "function" {
			schema = []byte(`{"type":"object","properties":{}}`)
		}
		if name == "" || jsonwire.Kind(schema) != '{' || jsonwire.Strict(schema) != nil || jsonwire.Lossless(schema) != nil {
			f.b.Dropped("tool definition", "it has no name, or no schema")
			continue
		}
		f.model.Tools = append(f.model.Tools, llm.Tool{Name: name, Description: about.Text("description"), Parameters: json.RawMessage(jsonwire.Compact(schema))})
	}
}

// message gives one message.
func (f *feeder) message(v fields.Object) error {
	role := v.Text("role")
	if !f.begun && (role == "system" || role == "developer") {
		f.system(v.Get("content"))
		return nil
	}
	f.begin()
	answers := f.answers
	f.answers = false
	switch role {
	case "system", "developer":
		f.answers = answers
		s := plain(v.Get("content"))
		if s == "" {
			return nil
		}
		f.b.Mapped("system message inside the conversation", "a context message")
		return f.b.AddContext(exchange.Context{Time: timeOf(v), Content: []message.Block{message.Text(s)}})
	case "user", "human":
		return f.user(v, answers)
	case "assistant", "model":
		return f.assistant(v)
	case "tool":
		f.answers = true
		return f.result(v, v.Text("tool_call_id"))
	case "function":
		f.answers = true
		return f.function(v)
	}
	f.answers = answers
	if !v.IsObject() {
		f.b.Dropped("message", "it is no object")
	} else {
		f.b.Dropped("message of role "+clip(role), "the role is not known")
	}
	return nil
}

// clip shortens a name that a report shows.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// user gives a message of the user: results, and what was said with them.
func (f *feeder) user(v fields.Object, steer bool) error {
	at := timeOf(v)
	var blocks []message.Block
	if f.dialect == Anthropic {
		c, err := f.b.Anthropic(f.content(v))
		if err != nil {
			return err
		}
		for _, r := range c.Results {
			if r.Time == 0 {
				r.Time = at
			}
			if err := f.b.Result(r); err != nil {
				return err
			}
		}
		f.answers = len(c.Results) > 0
		steer = f.answers || steer
		if blocks = f.withoutCalls(c.Blocks); len(blocks) == 0 && f.answers {
			return nil
		}
	} else {
		var err error
		if blocks, err = f.parts(f.content(v)); err != nil {
			return err
		}
	}
	if len(blocks) == 0 {
		f.b.Dropped("prompt", "it has no content")
		return nil
	}
	if err := f.b.Prompt(exchange.Prompt{ID: v.Text("id"), Time: at, Content: blocks, Steer: steer}); err != nil {
		return err
	}
	return f.giveTitle()
}

// content is a message's content, a string or a list; "" for none.
func (f *feeder) content(v fields.Object) []byte {
	c := v.Get("content")
	switch jsonwire.Kind(c) {
	case '"', '[':
		return c
	case 0, 'n':
		return []byte(`""`)
	}
	f.b.Mapped("content that is no text", "its JSON as text")
	return jsonwire.AppendString(nil, string(c))
}

// withoutCalls makes calls in a message of the user text: it can have none.
func (f *feeder) withoutCalls(blocks []message.Block) []message.Block {
	for i, b := range blocks {
		if b.Type == message.ToolCallBlock {
			f.b.Mapped("call of the user", "its text")
			blocks[i] = message.Text(fmt.Sprintf("[call of %s with %s]", b.Name, b.Arguments))
		}
	}
	return blocks
}

// call makes a tool call.
func (f *feeder) call(id, name, args string) message.Block {
	args, mended := callargs.Object(args)
	if mended {
		f.b.Mapped("arguments that are no object", "an object that holds them")
	}
	return message.ToolCall(id, name, args)
}

// assistant gives a reply.
func (f *feeder) assistant(v fields.Object) error {
	r := exchange.Reply{ID: v.Text("id"), Time: timeOf(v)}
	var results []exchange.Result
	if f.dialect == Anthropic {
		c, err := f.b.Anthropic(f.content(v))
		if err != nil {
			return err
		}
		for i, b := range c.Blocks {
			if b.Type == message.ToolCallBlock {
				c.Blocks[i] = f.call(b.ID, b.Name, b.Arguments)
			}
		}
		r.Content, r.Replay, results = c.Blocks, c.Replay, c.Results
		r.Usage = exchange.AnthropicUsage(v.Get("usage"))
		r.MaxTokens = v.Text("stop_reason") == "max_tokens"
	} else if err := f.completion(v, &r); err != nil {
		return err
	}
	if len(r.Content) == 0 {
		f.b.Dropped("reply", "it has no content")
	} else if err := f.b.Reply(r); err != nil {
		return err
	}
	// Tools that the provider ran itself have their results in the reply.
	for _, res := range results {
		if err := f.b.Result(res); err != nil {
			return err
		}
	}
	return f.giveTitle()
}
