package llm

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

func TestCheckRefuses(t *testing.T) {
	u := asks("x")
	nan := math.NaN()
	tool := Tool{Name: "read", Parameters: []byte(`{"type":"object"}`)}
	with := func(m ...message.Message) Request { return Request{Messages: m} }
	tests := []struct {
		name string
		req  Request
		want string
	}{
		{"no messages", Request{}, "no messages"},
		{"a first message of the assistant", with(says(message.Text("a")), u), "messages[0]: the first"},
		{"a last message of the assistant", with(u, says(message.Text("a"))), "messages[1]: the last"},
		{"another role", with(u, message.Message{Role: "tool", Content: u.Content}), `messages[1]: role "tool"`},
		{"a call without a result at the end", with(u, says(calls("c"))), "messages[1]: the last message"},
		{"a call with one result too few", with(u, says(calls("c"), calls("d")), gives("c", "A")), `messages[2]: call "d" has no result`},
		{"a call before the next reply", with(u, says(calls("c")), says(message.Text("a")), u), `messages[2]: call "c" has no result`},
		{"text between call and result", with(u, says(calls("c")), u, gives("c", "A")), `messages[2]: content[0]: stands between call "c"`},
		{"a result without a call", with(u, gives("c", "A")), `messages[1]: content[0]: result for "c"`},
		{"two results for a call", with(u, says(calls("c")), gives("c", "A"), gives("c", "A")), `messages[3]: content[0]: result for "c"`},
		{"a result behind text in its message", with(u, says(calls("c"), calls("d")), gives("c", "A"), message.Message{Role: message.User, Content: []message.Block{gives("d", "B").Content[0], message.Text("t"), gives("d", "B").Content[0]}}), "messages[3]: content[2]: results must come first"},
		{"an id twice", with(u, says(calls("c")), gives("c", "A"), says(calls("c")), gives("c", "A")), `messages[3]: content[0]: call id "c" stands twice`},
		{"an odd id", with(u, says(calls("a|b")), gives("a|b", "A")), `messages[1]: content[0]: call id "a|b"`},
		{"an odd tool name in a call", with(u, says(message.ToolCall("c", "a b", "{}")), gives("c", "A")), `tool name "a b"`},
		{"arguments that are no object", with(u, says(message.ToolCall("c", "a", "[]")), gives("c", "A")), "arguments are not a JSON object"},
		{"repeated members in arguments", with(u, says(message.ToolCall("c", "a", `{"a":{"b":1,"b":1}}`)), gives("c", "A")), "arguments repeat a member"},
		{"NUL in arguments", with(u, says(message.ToolCall("c", "a", `{"a":"\u0000"}`)), gives("c", "A")), "arguments hold"},
		{"an empty user message", with(u, message.Message{Role: message.User}, u), "messages[1]: no content"},
		{"an empty reply", with(u, says(), u), "messages[1]: neither text nor calls"},
		{"a reply of reasoning only", with(u, says(message.Reasoning("r")), u), "messages[1]: neither text nor calls"},
		{"blank text", with(u, asks(" \n")), "messages[1]: content[0]: text is empty or blank"},
		{"blank text in a result", with(u, says(calls("c")), gives("c", "")), `result for "c": content[0]: text is empty`},
		{"a result without content", with(u, says(calls("c")), gives("c")), `result for "c" has no content`},
		{"white space at the end of a reply", with(u, says(message.Text("a ")), u), "messages[1]: text ends in white space"},
		{"white space at the end of a text with reasoning behind it", with(u, says(message.Text("a "), message.Reasoning("r")), u), "messages[1]: text ends in white space"},
		{"half a surrogate pair", with(asks("\xed\xa0\xbd")), "messages[0]: content[0]: text holds"},
		{"NUL in a text", with(asks("a\x00")), "messages[0]: content[0]: text holds"},
		{"an image in a reply", with(u, says(message.Text("a"), message.Block{Type: message.ImageBlock}), u), `messages[1]: content[1]: an assistant message cannot hold`},
		{"an unknown block", with(message.Message{Role: message.User, Content: []message.Block{{Type: "x"}}}), `type "x"`},
		{"invalid text in the system prompt", Request{System: "\xff", Messages: []message.Message{u}}, "system: text holds"},
		{"a temperature that is no number", Request{Config: Config{Temperature: &nan}, Messages: []message.Message{u}}, "temperature"},
		{"two tools of one name", Request{Tools: []Tool{tool, tool}, Messages: []message.Message{u}}, `tools[1]: two tools are called "read"`},
		{"an odd tool name", Request{Tools: []Tool{{Name: "a.b"}}, Messages: []message.Message{u}}, `tools[0]: name "a.b"`},
		{"a schema that is no object", Request{Tools: []Tool{{Name: "a", Parameters: []byte(`{"type":"string"}`)}}, Messages: []message.Message{u}}, `tools[0] "a": parameters: the schema's root`},
		{"a schema that is no JSON", Request{Tools: []Tool{{Name: "a", Parameters: []byte(`{`)}}, Messages: []message.Message{u}}, "parameters: not JSON"},
		{"a schema with NUL", Request{Tools: []Tool{{Name: "a", Parameters: []byte(`{"type":"object","title":"\u0000"}`)}}, Messages: []message.Message{u}}, "lone surrogate or NUL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f *message.Failure
			if err := Check(tt.req); !errors.As(err, &f) {
				t.Fatalf("Check returned %v, want a failure", err)
			}
			if f.Code != message.CodeInvalidRequest || !strings.Contains(f.Message, tt.want) {
				t.Errorf("%s: %s, want INVALID_REQUEST with %q", f.Code, f.Message, tt.want)
			}
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	u := asks("x")
	tests := []struct {
		name string
		req  Request
	}{
		{"a call of a tool that is no longer offered", Request{Messages: []message.Message{u, says(calls("c")), gives("c", "A")}}},
		{"results in another order than the calls", Request{Messages: []message.Message{u, says(calls("c"), calls("d")), gives("d", "B"), gives("c", "A")}}},
		{"results and then text in one message", Request{Messages: []message.Message{u, says(calls("c")), {Role: message.User, Content: []message.Block{gives("c", "A").Content[0], message.Text("t")}}}}},
		{"neighbours of one role", Request{Messages: []message.Message{u, u, says(message.Text("a")), says(message.Text("b")), u}}},
		{"a tool without parameters", Request{Tools: []Tool{{Name: "a"}}, Messages: []message.Message{u}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := Check(tt.req); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckCallsAHugeRequestTooLong(t *testing.T) {
	var f *message.Failure
	err := Check(Request{Messages: []message.Message{asks(strings.Repeat("a", MaxRequestBytes+1))}})
	if !errors.As(err, &f) || f.Code != message.CodeContextWindow || f.Status != 413 {
		t.Errorf("Check returned %v, want CONTEXT_WINDOW_EXCEEDED", err)
	}
}

func TestACheckerLooksAtToolsAgainWhenTheyChanged(t *testing.T) {
	var c Checker
	with := func(tools ...Tool) error {
		return c.Check(Request{Tools: tools, Messages: []message.Message{asks("x")}})
	}
	good, bad := Tool{Name: "a", Parameters: []byte(`{"type":"object"}`)}, Tool{Name: "a", Parameters: []byte(`{"type":"string"}`)}
	if err := with(good); err != nil {
		t.Error(err)
	}
	if err := with(bad); err == nil {
		t.Error("a tool that became unfit was accepted")
	}
	if err := with(good, good); err == nil {
		t.Error("two tools of one name were accepted")
	}
	if err := with(); err != nil {
		t.Error(err)
	}
}
