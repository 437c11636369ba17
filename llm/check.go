package llm

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm/internal/growth"
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
// signed reasoning, images) are kept by its encoder.
func Check(req Request) error {
	var c Checker
	return c.Check(req)
}

// Checker is Check for a session that grows: messages that it has accepted are
// not looked at again while a request begins with them, nor are tools. What is
// the same is decided as a Builder does. The zero value is ready; one goroutine
// at a time.
type Checker struct {
	given growth.Seen     // the messages that were accepted
	ids   map[string]bool // of all calls so far
	open  []string        // calls of the last assistant message without a result
	size  int             // bytes of text of the messages so far
	tools []Tool          // that were accepted
	extra int             // bytes of text of the tools
}

// Check is the function Check.
func (c *Checker) Check(req Request) error {
	same := c.given.Same(len(req.Messages), func(i int) (int64, *message.Message) { return 0, &req.Messages[i] })
	if c.ids == nil || same < c.given.Len() {
		*c = Checker{ids: make(map[string]bool), tools: c.tools, extra: c.extra}
	}
	if f := c.request(&req); f != nil {
		if c.given.Len() < len(req.Messages) { // stopped inside a message
			*c = Checker{}
		}
		return f
	}
	return nil
}

func refuse(format string, args ...any) *message.Failure {
	return &message.Failure{Code: message.CodeInvalidRequest, Message: "request refused: " + fmt.Sprintf(format, args...)}
}

func (c *Checker) request(req *Request) *message.Failure {
	if t := req.Config.Temperature; t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0)) {
		return refuse("temperature is not a number")
	}
	if !isClean(req.System) {
		return refuse("system: %s", faultText)
	}
	if !SameTools(c.tools, req.Tools) {
		size, f := checkTools(req.Tools)
		if f != nil {
			return f
		}
		c.tools, c.extra = slices.Clone(req.Tools), size
	}
	if len(req.Messages) == 0 {
		return refuse("no messages")
	}
	for i := c.given.Len(); i < len(req.Messages); i++ {
		if fault := c.message(&req.Messages[i]); fault != "" {
			return refuse("messages[%d]: %s", i, fault)
		}
		c.given.Add(0, &req.Messages[i])
	}
	size := len(req.System) + c.extra + c.size
	last := len(req.Messages) - 1
	switch {
	case req.Messages[0].Role != message.User:
		return refuse("messages[0]: the first message must be from the user")
	case req.Messages[last].Role != message.User:
		return refuse("messages[%d]: the last message must not be from the assistant", last)
	case len(c.open) > 0:
		return refuse("messages[%d]: call %s has no result directly after it", last, quote(c.open[0]))
	case size > MaxRequestBytes:
		f := refuse("%d bytes of text are more than %d", size, MaxRequestBytes)
		f.Code, f.Status = message.CodeContextWindow, http.StatusRequestEntityTooLarge
		return f
	}
	return nil
}

// SameTools reports whether two lists offer the same tools in the same words.
// It costs next to nothing when they share their text.
func SameTools(a, b []Tool) bool {
	return slices.EqualFunc(a, b, func(x, y Tool) bool {
		return x.Name == y.Name && x.Description == y.Description && bytes.Equal(x.Parameters, y.Parameters)
	})
}

// checkTools also says how many bytes of text the tools have.
func checkTools(tools []Tool) (size int, f *message.Failure) {
	names := make(map[string]bool, len(tools))
	for i := range tools {
		t := &tools[i]
		if !isName(t.Name) {
			return 0, refuse("tools[%d]: name %s is not 1 to 64 letters, digits, _ or -", i, quote(t.Name))
		}
		if names[t.Name] {
			return 0, refuse("tools[%d]: two tools are called %q", i, t.Name)
		}
		names[t.Name] = true
		if !isClean(t.Description) {
			return 0, refuse("tools[%d]: description: %s", i, faultText)
		}
		schema := t.Schema()
		fault := ""
		switch {
		case !isClean(string(schema)):
			fault = faultText
		case jsonwire.Valid(schema) != nil:
			fault = "not JSON"
		case badEscape(schema, 0) >= 0:
			fault = "holds a lone surrogate or NUL"
		case !jsonwire.TextIs(jsonwire.Get(schema, "type"), "object"):
			fault = `the schema's root must have "type":"object"`
		}
		if fault != "" {
			return 0, refuse("tools[%d] %q: parameters: %s", i, t.Name, fault)
		}
		size += len(t.Description) + len(schema)
	}
	return size, nil
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
	if last := m.Content[ending(m.Content)]; last.Type == message.TextBlock && strings.TrimRightFunc(last.Text, unicode.IsSpace) != last.Text {
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

const faultText = "text holds invalid UTF-8, half of a surrogate pair or NUL"

func (c *Checker) text(s string) string {
	c.size += len(s)
	if !isClean(s) {
		return faultText
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
