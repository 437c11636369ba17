package openai

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/drawn"
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

func nodes(messages ...message.Message) []llm.Node {
	var out []llm.Node
	for i, m := range messages {
		out = append(out, llm.Node{Seq: int64(i), Message: m})
	}
	return out
}

func ask(messages ...message.Message) llm.Request {
	return llm.Request{
		Config:   llm.Config{Provider: "deepseek", Model: "deepseek-chat"},
		Purpose:  llm.Turn,
		Turn:     2,
		Step:     3,
		Attempt:  1,
		Messages: llm.Build(nodes(messages...)),
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
		{"a long id is replaced, call and result alike", Quirks{},
			ask(user(message.Text("a")), model(message.ToolCall(long, "read", `{}`)), result(long, "A")),
			head + `{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c_a6685f3b62d57bfc4935","type":"function","function":{"name":"read","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"c_a6685f3b62d57bfc4935","content":"A"}]}`},
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

func TestImages(t *testing.T) {
	objects := drawn.Objects{}
	small, large := objects.Add(drawn.PNG(3, 2)), objects.Add(drawn.PNG(1, 8001))
	missing := drawn.Image("sha256:" + strings.Repeat("ab", 32))
	id := strings.TrimPrefix(string(large.Attachment), `{"attachmentId":"sha256:`)[:12]
	data := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(drawn.PNG(3, 2)) + `"}}`
	show := func(id string, blocks ...message.Block) message.Message {
		return user(message.ToolResult(id, false, blocks...))
	}
	text := message.Text
	const head = `{"model":"deepseek-chat","stream":true,"stream_options":{"include_usage":true},"messages":[`
	const calls = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"read","arguments":"{}"}}]}`
	asked := []message.Message{user(text("a")), model(message.ToolCall("c1", "read", "{}"), message.ToolCall("c2", "read", "{}")), show("c2", text("B"), small), show("c1", small)}
	const behind = `{"role":"tool","tool_call_id":"c1","content":"[an image of this result stands below the results]"},{"role":"tool","tool_call_id":"c2","content":"B\n[an image of this result stands below the results]"},`
	tests := []struct {
		name   string
		quirks Quirks
		req    llm.Request
		want   string
	}{
		{"an image is a data URL in its place, others are named", Quirks{}, ask(user(text("see"), text("this"), small, large, missing)),
			head + `{"role":"user","content":[{"type":"text","text":"see\nthis"},` + data + `,{"type":"text","text":"[image sha256:` + id + `... was left out: it is over 8,000 pixels a side]\n[image sha256:abababababab... is missing]"}]}]}`},
		{"images in results stand behind all results", Quirks{}, ask(append(asked, user(text("steer")))...),
			head + `{"role":"user","content":"a"},` + calls + `,` + behind +
				`{"role":"user","content":[{"type":"text","text":"[image of the result of tool call c1]"},` + data + `,{"type":"text","text":"[image of the result of tool call c2]"},` + data + `]},{"role":"user","content":"steer"}]}`},
		{"and are joined with what follows where roles alternate", Quirks{AlternateRoles: true}, ask(append(asked, user(text("steer")))...),
			head + `{"role":"user","content":"a"},` + calls + `,` + behind +
				`{"role":"user","content":[{"type":"text","text":"[image of the result of tool call c1]"},` + data + `,{"type":"text","text":"[image of the result of tool call c2]"},` + data + `,{"type":"text","text":"steer"}]}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.Images, tt.req.Objects = true, objects
			body := newProvider(t, Options{Quirks: tt.quirks}).Body(tt.req)
			if bad := strict(tt.quirks).Check(body); bad != nil {
				t.Error(bad)
			}
			if got := string(body); got != tt.want {
				t.Errorf("body\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestTheOutputLimitIsCutToTheWindow(t *testing.T) {
	for _, tt := range []struct {
		name        string
		asked, left int64
		want        string
	}{
		{"the window leaves less", 1000, 300, "300"},
		{"the window leaves more", 1000, 3000, "1000"},
		{"the window is not known", 1000, 0, "1000"},
		{"no limit was asked for", 0, 300, ""},
	} {
		req := ask(user(message.Text("hi")))
		req.Config.MaxTokens, req.MaxOutput = tt.asked, tt.left
		if got := string(jsonwire.Get(newProvider(t, Options{}).Body(req), "max_tokens")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestABodyWithoutMessagesIsJSON(t *testing.T) {
	if body := newProvider(t, Options{}).Body(llm.Request{System: "s"}); jsonwire.Valid(body) != nil {
		t.Errorf("%s", body)
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
