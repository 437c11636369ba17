package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

func newProvider(t testing.TB, o Options) *Provider {
	t.Helper()
	if o.Name == "" {
		o.Name = "deepseek"
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://api.deepseek.com/v1/"
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func user(blocks ...message.Block) message.Message {
	return message.Message{Role: message.User, Content: blocks}
}

func model(blocks ...message.Block) message.Message {
	return message.Message{Role: message.Assistant, Content: blocks}
}

func result(id, text string) message.Message {
	return user(message.ToolResult(id, false, message.Text(text)))
}

func ask(messages ...message.Message) llm.Request {
	return llm.Request{
		Config:   llm.Config{Provider: "deepseek", Model: "deepseek-chat"},
		Purpose:  llm.Turn,
		Turn:     2,
		Step:     3,
		Attempt:  1,
		Messages: llm.Build(messages),
	}
}

func TestBody(t *testing.T) {
	warm := 0.2
	full := ask(user(message.Text("hi")))
	full.Config.Temperature = &warm
	full.Config.MaxTokens = 100
	full.Config.ReasoningEffort = "low"
	full.Config.Stop = []string{"END"}
	full.System = "Be brief."
	full.Tools = []llm.Tool{{Name: "read", Description: "Reads <a> file.", Parameters: []byte(`{ "type":"object" }`)}, {Name: "now"}}
	long := "call_abc|fc_" + strings.Repeat("x", 50)
	thinks := ask(user(message.Text("a")), model(message.Reasoning("r1"), message.Text("t")), user(message.Text("b")),
		model(message.Reasoning("r2"), message.ToolCall("c1", "read", `{}`)), result("c1", "A"), model(message.ToolCall("c2", "read", `{}`)), result("c2", "B"))
	neighbours := ask(user(message.Text("a")), user(message.Text("b")), model(message.Text("c")), model(message.Text("d"), message.ToolCall("c1", "read", `{}`)), result("c1", "A"), user(message.Text("e")))
	neighbours.System = "s"
	const head = `{"model":"deepseek-chat","stream":true,"stream_options":{"include_usage":true},"messages":[`
	const c1 = `"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}]`
	const c2 = `"tool_calls":[{"id":"c2","type":"function","function":{"name":"read","arguments":"{}"}}]`
	tests := []struct {
		name   string
		quirks Quirks
		req    llm.Request
		want   string
	}{
		{"everything", Quirks{}, full,
			`{"model":"deepseek-chat","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"temperature":0.2,"reasoning_effort":"low","stop":["END"],` +
				`"tools":[{"type":"function","function":{"name":"read","description":"Reads <a> file.","parameters":{"type":"object"}}},` +
				`{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],` +
				`"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]}`},
		{"every quirk of names", Quirks{MaxTokens: "max_completion_tokens", SystemRole: "developer", NoStreamUsage: true},
			func() llm.Request {
				r := ask(user(message.Text("hi")))
				r.Config.MaxTokens, r.System = 5, "s"
				return r
			}(),
			`{"model":"deepseek-chat","stream":true,"max_completion_tokens":5,"messages":[{"role":"developer","content":"s"},{"role":"user","content":"hi"}]}`},
		{"calls without text have null content, results are tool messages in call order", Quirks{},
			ask(user(message.Text("a"), message.Text("b")), model(message.ToolCall("c1", "read", `{}`), message.ToolCall("c2", "read", `{}`)), result("c2", "B"), result("c1", "A")),
			head + `{"role":"user","content":"a\nb"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}},` +
				`{"id":"c2","type":"function","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"A"},{"role":"tool","tool_call_id":"c2","content":"B"}]}`},
		{"a long id is shortened, call and result alike", Quirks{},
			ask(user(message.Text("a")), model(message.ToolCall(long, "read", `{}`)), result(long, "A")),
			head + `{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_84ef253bd9b5c11254c164be","type":"function","function":{"name":"read","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"call_84ef253bd9b5c11254c164be","content":"A"}]}`},
		{"an image is named as left out", Quirks{},
			ask(user(message.Block{Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"sha256:abcdef0123456789"}`)}, message.Text("see"), message.Block{Type: message.ImageBlock})),
			head + `{"role":"user","content":"[image sha256:abcdef012345... was left out: images are not sent to this model]\nsee\n[an image was left out: images are not sent to this model]"}]}`},
		{"reasoning is not sent back", Quirks{}, thinks,
			head + `{"role":"user","content":"a"},{"role":"assistant","content":"t"},{"role":"user","content":"b"},{"role":"assistant","content":null,` + c1 + `},{"role":"tool","tool_call_id":"c1","content":"A"},` +
				`{"role":"assistant","content":null,` + c2 + `},{"role":"tool","tool_call_id":"c2","content":"B"}]}`},
		{"DeepSeek gets reasoning with calls, and only there", Quirks{Reasoning: ReasoningContent}, thinks,
			head + `{"role":"user","content":"a"},{"role":"assistant","content":"t"},{"role":"user","content":"b"},{"role":"assistant","content":null,"reasoning_content":"r2",` + c1 + `},{"role":"tool","tool_call_id":"c1","content":"A"},` +
				`{"role":"assistant","content":null,"reasoning_content":"(no reasoning was recorded)",` + c2 + `},{"role":"tool","tool_call_id":"c2","content":"B"}]}`},
		{"neighbours of one role stay apart", Quirks{SystemRole: "user"}, neighbours,
			head + `{"role":"user","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"assistant","content":"d",` + c1 + `},{"role":"tool","tool_call_id":"c1","content":"A"},{"role":"user","content":"e"}]}`},
		{"neighbours of one role are joined where roles alternate", Quirks{AlternateRoles: true, SystemRole: "user"}, neighbours,
			head + `{"role":"user","content":"s\na\nb"},{"role":"assistant","content":"c\nd",` + c1 + `},{"role":"tool","tool_call_id":"c1","content":"A"},{"role":"user","content":"e"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(newProvider(t, Options{Quirks: tt.quirks}).Body(tt.req)); got != tt.want {
				t.Errorf("body\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

var (
	wireID     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	wireName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	wireMember = map[string]string{
		"system":    " role content ",
		"user":      " role content ",
		"assistant": " role content tool_calls reasoning_content ",
		"tool":      " role content tool_call_id ",
	}
)

// refusal is the strict server's answer to a body, "" when it takes it. It
// looks at the bytes alone, as a server does.
func refusal(body []byte, deepseek bool) string {
	if err := jsonwire.Strict(body); err != nil {
		return err.Error()
	}
	if strings.Contains(string(body), `\u0000`) {
		return "NUL in the body"
	}
	var req struct {
		Messages []map[string]any `json:"messages"`
		Tools    []any            `json:"tools"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err.Error()
	}
	if len(req.Messages) == 0 {
		return "no messages"
	}
	if req.Messages[0]["role"] == "system" {
		req.Messages = req.Messages[1:]
	}
	if jsonwire.Get(body, "tools") != nil && len(req.Tools) == 0 {
		return "tools is empty"
	}
	ids := map[string]bool{}
	open := map[string]bool{}
	for i, m := range req.Messages {
		bad := func(format string, a ...any) string {
			return fmt.Sprintf("messages[%d]: ", i) + fmt.Sprintf(format, a...)
		}
		role, _ := m["role"].(string)
		for k := range m {
			if !strings.Contains(wireMember[role], " "+k+" ") {
				return bad("unknown member %s", k)
			}
		}
		content, isText := m["content"].(string)
		calls, _ := m["tool_calls"].([]any)
		switch {
		case isText && strings.TrimSpace(content) == "":
			return bad("content is empty")
		case !isText && (m["content"] != nil || len(calls) == 0):
			return bad("content is null")
		case m["tool_calls"] != nil && len(calls) == 0:
			return bad("tool_calls is empty")
		case role != "tool" && len(open) > 0:
			return bad("a call has no result")
		case i == 0 && role != "user":
			return bad("the first message is not from the user")
		case i == len(req.Messages)-1 && role == "assistant":
			return bad("the last message is from the assistant")
		}
		reasoning, _ := m["reasoning_content"].(string)
		switch {
		case deepseek && len(calls) > 0 && strings.TrimSpace(reasoning) == "":
			return bad("reasoning_content is missing")
		case !deepseek && m["reasoning_content"] != nil:
			return bad("reasoning_content is not known")
		}
		if role == "tool" {
			id, _ := m["tool_call_id"].(string)
			if !open[id] {
				return bad("result of %q without its call", id)
			}
			delete(open, id)
		}
		for _, c := range calls {
			call := c.(map[string]any)
			id, _ := call["id"].(string)
			function := call["function"].(map[string]any)
			name, _ := function["name"].(string)
			arguments, _ := function["arguments"].(string)
			if !wireID.MatchString(id) || ids[id] {
				return bad("call id %q", id)
			}
			ids[id], open[id] = true, true
			if !wireName.MatchString(name) {
				return bad("tool name %q", name)
			}
			if jsonwire.Strict([]byte(arguments)) != nil || jsonwire.Kind([]byte(arguments)) != '{' {
				return bad("arguments %q", arguments)
			}
		}
	}
	if len(open) > 0 {
		return "a call has no result at the end"
	}
	return ""
}

func TestTheStrictServerTakesEveryBody(t *testing.T) {
	ids := []string{"", "c", "c", "c_2", strings.Repeat("x", 41), strings.Repeat("x", 41) + "y", strings.Repeat("z", 64), "a|b", "call_e3b0c44298fc1c149afbf4c8"}
	rapid.Check(t, func(t *rapid.T) {
		var all []message.Message
		text := rapid.SampledFrom([]string{"", " ", "a", "b \n", "\x00", "\xff", "\xed\xa0\xbd", "日本"})
		for range rapid.IntRange(0, 6).Draw(t, "messages") {
			m := user()
			if rapid.Bool().Draw(t, "assistant") {
				m = model()
			}
			for range rapid.IntRange(0, 3).Draw(t, "blocks") {
				id := rapid.SampledFrom(ids).Draw(t, "id")
				switch rapid.IntRange(0, 5).Draw(t, "block") {
				case 0:
					m.Content = append(m.Content, message.Text(text.Draw(t, "text")))
				case 1:
					m.Content = append(m.Content, message.Reasoning(text.Draw(t, "reasoning")))
				case 2, 3:
					m.Content = append(m.Content, message.ToolCall(id, text.Draw(t, "name"), rapid.SampledFrom([]string{"", "{}", "{", "[]", `{"a":1,"a":1}`, `{"a":"\udc00\u0000"}`}).Draw(t, "arguments")))
				case 4:
					m.Content = append(m.Content, message.ToolResult(id, false, message.Text(text.Draw(t, "result")), message.Block{Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"sha256:\ud800"}`)}))
				case 5:
					m.Content = append(m.Content, message.Block{Type: message.ImageBlock, Attachment: []byte("{")})
				}
			}
			all = append(all, m)
		}
		quirks := Quirks{AlternateRoles: rapid.Bool().Draw(t, "alternate")}
		if rapid.Bool().Draw(t, "deepseek") {
			quirks.Reasoning = ReasoningContent
		}
		p, err := New(Options{Name: "p", BaseURL: "http://h/v1", Quirks: quirks})
		if err != nil {
			t.Fatal(err)
		}
		req := ask(all...)
		req.System = "be brief"
		body := p.Body(req)
		if bad := refusal(body, quirks.Reasoning == ReasoningContent); bad != "" {
			t.Fatalf("%s\n%s", bad, body)
		}
	})
}

func TestTheBodyOfALongerSessionBeginsWithTheShorterOne(t *testing.T) {
	p := newProvider(t, Options{Quirks: Quirks{Reasoning: ReasoningContent}})
	all := []message.Message{user(message.Text("a")), model(message.Reasoning("r"), message.ToolCall(strings.Repeat("i", 50), "read", "{")), result(strings.Repeat("i", 50), "A"),
		user(message.Text("steer")), model(message.Text("b")), user(message.Text("c"))}
	last := ""
	for _, n := range []int{1, 3, 4, 6} {
		body := strings.TrimSuffix(string(p.Body(ask(all[:n]...))), "]}")
		if !strings.HasPrefix(body, last) {
			t.Errorf("the body of %d messages\n%s\ndoes not begin with\n%s", n, body, last)
		}
		last = body
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name string
		opts Options
		want string
	}{
		{"no name", Options{BaseURL: "http://h"}, "needs a name"},
		{"no URL", Options{Name: "p"}, "p: base_url must be a URL"},
		{"another scheme", Options{Name: "p", BaseURL: "ftp://h/v1"}, "p: base_url must be a URL"},
		{"a password in the URL", Options{Name: "p", BaseURL: "https://u:secret@h/v1"}, "p: base_url holds a password"},
		{"a query in the URL", Options{Name: "p", BaseURL: "https://h/v1?key=secret"}, "p: base_url must end before ?"},
		{"a key of two lines", Options{Name: "p", BaseURL: "https://h/v1", Key: "secret\nx", KeyFrom: "P_KEY"}, "p: the key holds characters that no key has: check P_KEY"},
		{"an unknown quirk", Options{Name: "p", BaseURL: "https://h/v1", Quirks: Quirks{SystemRole: "root"}}, `p: quirk system_role is "root": it must be system or developer or user`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("New returned %v, want %q", err, tt.want)
			}
		})
	}
}
