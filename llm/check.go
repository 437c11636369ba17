package llm

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"unicode"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// MaxRequestBytes is the most text, in bytes, that a request may hold: what
// strict providers take as a body.
const MaxRequestBytes = 10 << 20

// Check refuses what a strict provider would refuse, before anything is sent:
// no messages, wrong ends, calls and results that are not pairs, bad ids and
// names, arguments that are not objects, tools without a proper schema, empty
// content, text that is not valid. The error is a *message.Failure with the
// code INVALID_REQUEST that names the message by its index; text over
// MaxRequestBytes is CONTEXT_WINDOW_EXCEEDED with status 413.
//
// Check is about every provider. Rules of a single one (alternating roles,
// shorter ids, signed reasoning, images) are kept by its encoder.
func Check(req Request) error {
	var c Checker
	return c.Check(req)
}

// Checker is Check for a session that grows: messages that it has accepted are
// not looked at again while a request begins with them. Messages are the same
// when their content is the same memory. The zero value is ready; one
// goroutine at a time.
type Checker struct {
	given []identity      // the messages that were accepted
	ids   map[string]bool // of all calls so far
	open  []string        // calls of the last assistant message without a result
	size  int             // bytes of text so far
}

// Check is the function Check.
func (c *Checker) Check(req Request) error {
	if c.ids == nil || !begins(req.Messages, c.given) {
		*c = Checker{ids: make(map[string]bool)}
	}
	messages := c.size
	f := c.request(&req, &messages)
	c.size = messages
	if f == nil {
		return nil
	}
	if len(c.given) < len(req.Messages) { // stopped inside a message
		*c = Checker{}
	}
	return f
}

func refuse(format string, args ...any) *message.Failure {
	return &message.Failure{Code: message.CodeInvalidRequest, Message: "request refused: " + fmt.Sprintf(format, args...)}
}

// request checks everything. It leaves in messages how much text the messages
// hold, without the system prompt and the tools, which may be others next time.
func (c *Checker) request(req *Request, messages *int) *message.Failure {
	if t := req.Config.Temperature; t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0)) {
		return refuse("temperature is not a number")
	}
	if fault := c.text(req.System); fault != "" {
		return refuse("system: %s", fault)
	}
	if f := c.tools(req.Tools); f != nil {
		return f
	}
	if len(req.Messages) == 0 {
		return refuse("no messages")
	}
	before := c.size
	for i := len(c.given); i < len(req.Messages); i++ {
		if fault := c.message(&req.Messages[i]); fault != "" {
			return refuse("messages[%d]: %s", i, fault)
		}
		c.given = append(c.given, identify(&req.Messages[i]))
	}
	*messages += c.size - before
	last := len(req.Messages) - 1
	switch {
	case req.Messages[0].Role != message.User:
		return refuse("messages[0]: the first message must be from the user")
	case req.Messages[last].Role != message.User:
		return refuse("messages[%d]: the last message must not be from the assistant", last)
	case len(c.open) > 0:
		return refuse("messages[%d]: call %s has no result directly after it", last, quote(c.open[0]))
	case c.size > MaxRequestBytes:
		f := refuse("%d bytes of text are more than %d", c.size, MaxRequestBytes)
		f.Code, f.Status = message.CodeContextWindow, http.StatusRequestEntityTooLarge
		return f
	}
	return nil
}

func (c *Checker) tools(tools []Tool) *message.Failure {
	names := make(map[string]bool, len(tools))
	for i := range tools {
		t := &tools[i]
		if !isName(t.Name) {
			return refuse("tools[%d]: name %s is not 1 to 64 letters, digits, _ or -", i, quote(t.Name))
		}
		if names[t.Name] {
			return refuse("tools[%d]: two tools are called %q", i, t.Name)
		}
		names[t.Name] = true
		if fault := c.text(t.Description); fault != "" {
			return refuse("tools[%d]: description: %s", i, fault)
		}
		schema := t.Schema()
		fault := c.text(string(schema))
		switch {
		case fault != "":
		case jsonwire.Valid(schema) != nil:
			fault = "not JSON"
		case badEscape(schema, 0) >= 0:
			fault = "holds a lone surrogate or NUL"
		case !jsonwire.TextIs(jsonwire.Get(schema, "type"), "object"):
			fault = `the schema's root must have "type":"object"`
		}
		if fault != "" {
			return refuse("tools[%d] %q: parameters: %s", i, t.Name, fault)
		}
	}
	return nil
}

func (c *Checker) message(m *message.Message) string {
	switch m.Role {
	case message.Assistant:
		return c.assistant(m)
	case message.User:
		return c.user(m)
	}
	return fmt.Sprintf("role %s is neither user nor assistant", quote(string(m.Role)))
}

func (c *Checker) assistant(m *message.Message) string {
	if len(c.open) > 0 {
		return fmt.Sprintf("call %s has no result directly after it", quote(c.open[0]))
	}
	said := false
	for i := range m.Content {
		b := &m.Content[i]
		var fault string
		switch b.Type {
		case message.TextBlock:
			said = true
			fault = c.notBlank(b.Text)
		case message.ReasoningBlock:
			fault = c.text(b.Text)
		case message.ToolCallBlock:
			said = true
			fault = c.call(b)
		default:
			fault = fmt.Sprintf("an assistant message cannot hold a block of the type %s", quote(string(b.Type)))
		}
		if fault != "" {
			return fmt.Sprintf("content[%d]: %s", i, fault)
		}
	}
	if !said {
		return "neither text nor calls"
	}
	if last := m.Content[len(m.Content)-1]; last.Type == message.TextBlock && strings.TrimRightFunc(last.Text, unicode.IsSpace) != last.Text {
		return "text ends in white space"
	}
	return ""
}

func (c *Checker) call(b *message.Block) string {
	switch {
	case !isCallID(b.ID):
		return fmt.Sprintf("call id %s is not 1 to %d letters, digits, _ or -", quote(b.ID), MaxCallID)
	case c.ids[b.ID]:
		return fmt.Sprintf("call id %q stands twice in the request", b.ID)
	case !isName(b.Name):
		return fmt.Sprintf("call %s: tool name %s is not 1 to 64 letters, digits, _ or -", b.ID, quote(b.Name))
	}
	if fault := argumentsFault(b.Arguments); fault != "" {
		return fmt.Sprintf("call %s: %s", b.ID, fault)
	}
	c.ids[b.ID] = true
	c.open = append(c.open, b.ID)
	c.size += len(b.ID) + len(b.Name) + len(b.Arguments)
	return ""
}

func (c *Checker) user(m *message.Message) string {
	if len(m.Content) == 0 {
		return "no content"
	}
	other := false
	for i := range m.Content {
		b := &m.Content[i]
		var fault string
		if b.Type == message.ToolResultBlock {
			if other {
				fault = "results must come first in their message"
			} else {
				fault = c.result(b)
			}
		} else {
			other = true
			if len(c.open) > 0 {
				fault = fmt.Sprintf("stands between call %s and its result", quote(c.open[0]))
			} else {
				fault = c.plain(b)
			}
		}
		if fault != "" {
			return fmt.Sprintf("content[%d]: %s", i, fault)
		}
	}
	return ""
}

func (c *Checker) result(b *message.Block) string {
	at := -1
	for i, id := range c.open {
		if id == b.ToolCallID {
			at = i
			break
		}
	}
	if at < 0 {
		return fmt.Sprintf("result for %s, but that call does not stand directly before it", quote(b.ToolCallID))
	}
	c.open = append(c.open[:at], c.open[at+1:]...)
	if len(b.Content) == 0 {
		return fmt.Sprintf("result for %s has no content", quote(b.ToolCallID))
	}
	for i := range b.Content {
		if fault := c.plain(&b.Content[i]); fault != "" {
			return fmt.Sprintf("result for %s: content[%d]: %s", quote(b.ToolCallID), i, fault)
		}
	}
	return ""
}

func (c *Checker) plain(b *message.Block) string {
	switch b.Type {
	case message.TextBlock:
		return c.notBlank(b.Text)
	case message.ImageBlock:
		return ""
	}
	return fmt.Sprintf("a block of the type %s cannot stand here", quote(string(b.Type)))
}

func (c *Checker) notBlank(s string) string {
	if blank(s) {
		return "text is empty or blank"
	}
	return c.text(s)
}

func (c *Checker) text(s string) string {
	c.size += len(s)
	if !isClean(s) {
		return "text holds invalid UTF-8, half of a surrogate pair or NUL"
	}
	return ""
}

// quote shows a string that may be long or odd.
func quote(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%q...", s[:80])
	}
	return fmt.Sprintf("%q", s)
}
