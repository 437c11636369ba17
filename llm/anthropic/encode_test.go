package anthropic

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/drawn"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/message"
)

var update = flag.Bool("update", false, "write the golden files anew")

func newProvider(t testing.TB, o Options) *Provider {
	t.Helper()
	if o.Name == "" {
		o.Name = "anthropic"
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://api.anthropic.com/v1/"
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func user(blocks ...message.Block) message.Message {
	return message.Message{Role: message.User, Content: blocks, Source: message.FromUser}
}

// thinks is a reply of the model that is asked, with signed thinking.
func thinks(blocks ...message.Block) message.Message {
	m := says("anthropic", "claude", blocks...)
	m.Source.ReplayState = signed(blocks)
	return m
}

func says(provider, model string, blocks ...message.Block) message.Message {
	return message.Message{Role: message.Assistant, Content: blocks, Source: message.FromModel(provider, model)}
}

func result(id string, content ...message.Block) message.Message {
	return user(message.ToolResult(id, false, content...))
}

func ask(messages ...message.Message) llm.Request {
	var nodes []llm.Node
	for i, m := range messages {
		nodes = append(nodes, llm.Node{Seq: int64(i), Message: m})
	}
	return llm.Request{
		Config: llm.Config{Provider: "anthropic", Model: "claude"}, Messages: llm.Build(nodes),
		Purpose: llm.Turn, Turn: 2, Step: 3, Attempt: 1,
	}
}

// The bodies are golden files, so that each byte that changes is seen.
func TestBody(t *testing.T) {
	objects := drawn.Objects{}
	small, wide := objects.Add(drawn.PNG(3, 2)), objects.Add(drawn.PNG(8001, 1))
	missing := drawn.Image("sha256:" + strings.Repeat("ab", 32))
	text, read := message.Text, func(id string) message.Block { return message.ToolCall(id, "read", ` {"path": "a"}`) }
	with := func(change func(*llm.Request), messages ...message.Message) llm.Request {
		req := ask(messages...)
		change(&req)
		return req
	}
	high := func(r *llm.Request) { r.Config.ReasoningEffort = "high" }
	warm := 0.2
	failed := user(message.ToolResult("c2", true, text("no such file")))
	redacted := says("anthropic", "claude", message.Reasoning(""), message.Reasoning("hm"), text("a"))
	redacted.Source.ReplayState = []byte(`{"anthropic":1,"blocks":[{"redacted":"ENCRYPTED"},{"signature":"` + llmtest.Sign("hm") + `"},null]}`)
	foreign := func(provider, model string) message.Message {
		m := says(provider, model, message.Reasoning("hm"), text("a"))
		m.Source.ReplayState = signed(m.Content)
		return m
	}
	odd := says("anthropic", "claude", message.Reasoning("hm"), text("a"))
	odd.Source.ReplayState = []byte(`{"version":2,"blocks":[{"signature":"x"},null]}`)
	half := says("anthropic", "claude", message.Reasoning("hm"), message.Reasoning("and"), text("a"))
	half.Source.ReplayState = []byte(`{"anthropic":1,"blocks":[{"signature":"` + llmtest.Sign("hm") + `"},null,null]}`)
	tests := []struct {
		name string
		req  llm.Request
	}{
		{"everything", with(func(r *llm.Request) {
			r.Config.Temperature, r.Config.MaxTokens, r.Config.Stop = &warm, 100, []string{"END", " "}
			r.System = "Be <brief>."
			r.Tools = []llm.Tool{{Name: "now"}, {Name: "read", Description: "Reads a file.", Parameters: []byte(`{ "type":"object" }`)}}
		}, user(text("hi")))},
		{"results come first in one message with what steers", with(func(r *llm.Request) { r.Tools = []llm.Tool{{Name: "read"}} },
			user(text("a"), text("b")), says("anthropic", "claude", text("t"), read("c1"), read("c2")), failed, user(text("steer")), result("c1", text("A")), user(text("now")))},
		{"calls without tools", ask(user(text("a")), says("p", "m", read("c1")), result("c1"))},
		{"neighbours of one role are joined, and only the first thinking stays", with(high,
			user(text("a")), user(text("b")), thinks(message.Reasoning("r1"), text("c")), thinks(message.Reasoning("r2"), text("d"), read("c1")), result("c1", text("A")), user(text("e")))},
		{"thinking goes back to where it came from", with(high,
			user(text("a")), thinks(message.Reasoning("r1"), read("c1")), result("c1", text("A")), thinks(message.Reasoning("r2"), text("b"), message.Reasoning("r3")), user(text("c")))},
		{"thinking of another model is left out, and its calls end thinking", with(func(r *llm.Request) {
			high(r)
			r.Config.Temperature = &warm
		}, user(text("a")), says("deepseek", "claude", message.Reasoning("r1"), read("c1")), result("c1", text("A")))},
		{"thinking of another model in an earlier turn does not end thinking", with(func(r *llm.Request) {
			high(r)
			r.Config.Temperature = &warm
		}, user(text("a")), says("deepseek", "claude", message.Reasoning("r1"), read("c1")), result("c1", text("A")), says("deepseek", "claude", text("b")), user(text("c")))},
		{"signed thinking of another model is left out", with(high, user(text("a")), foreign("anthropic", "other"), user(text("b")))},
		{"signed thinking of another provider is left out", with(high, user(text("a")), foreign("proxy", "claude"), user(text("b")))},
		{"a state of another program is left out", with(high, user(text("a")), odd, user(text("b")))},
		{"encrypted thinking goes back as it came", with(high, user(text("a")), redacted, user(text("b")))},
		{"thinking goes back complete or not at all", with(high, user(text("a")), half, user(text("b")))},
		{"images in their places", with(func(r *llm.Request) { r.Images, r.Objects = true, objects },
			user(text("see"), small, wide, missing), says("p", "m", read("c1")), result("c1", small, text("A")))},
		{"images for a model that takes none", with(func(r *llm.Request) { r.Objects = objects }, user(small, message.Block{Type: message.ImageBlock}))},
		{"marks on the last two user messages", ask(user(text("a")), says("p", "m", text("b")), user(text("c")), says("p", "m", text("d")), user(text("e"), text("f")))},
	}
	var golden []byte
	for _, tt := range tests {
		golden = fmt.Appendf(golden, "# %s\n%s\n", tt.name, newProvider(t, Options{}).Body(tt.req))
		t.Run(tt.name, func(t *testing.T) {
			if bad := (llmtest.Rules{Profile: llmtest.Anthropic}).Check(newProvider(t, Options{}).Body(tt.req)); bad != nil {
				t.Error(bad)
			}
		})
	}
	path := filepath.Join("testdata", "bodies.txt")
	if *update {
		if err := os.WriteFile(path, golden, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, want) {
		t.Errorf("bodies\n%s\nwant\n%s", golden, want)
	}
}

func TestLimits(t *testing.T) {
	tests := []struct {
		name           string
		effort         string
		max, model     int64 // Config.MaxTokens, and what is known of the model
		left           int64 // Request.MaxOutput
		limit, thought int64
	}{
		{"nothing is known", "", 0, 0, 0, 8192, 0},
		{"what the model gives", "", 0, 64000, 0, 64000, 0},
		{"what was asked for comes before what the model gives", "", 500, 64000, 0, 500, 0},
		{"the window leaves less", "", 500, 0, 300, 300, 0},
		{"the window leaves more", "", 500, 0, 30000, 500, 0},
		{"nothing is known, and thinking comes on top", "high", 0, 0, 0, 24576, 16384},
		{"thinking takes at most half", "max", 0, 32000, 0, 32000, 16000},
		{"half of too little is no thinking", "low", 2000, 0, 0, 2000, 0},
		{"the least there is", "minimal", 2048, 0, 0, 2048, 1024},
		{"a window that is nearly full ends thinking", "high", 0, 64000, 2000, 2000, 0},
		{"no thinking", "none", 0, 0, 0, 8192, 0},
	}
	for _, tt := range tests {
		p := newProvider(t, Options{MaxOutput: map[string]int64{"claude": tt.model}})
		req := ask(user(message.Text("hi")))
		req.Config.ReasoningEffort, req.Config.MaxTokens, req.MaxOutput = tt.effort, tt.max, tt.left
		body := p.Body(req)
		limit, _ := jsonwire.Int(jsonwire.Get(body, "max_tokens"))
		thought, _ := jsonwire.Int(jsonwire.Get(jsonwire.Get(body, "thinking"), "budget_tokens"))
		if limit != tt.limit || thought != tt.thought {
			t.Errorf("%s: max_tokens %d and %d for thinking, want %d and %d", tt.name, limit, thought, tt.limit, tt.thought)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name string
		opts Options
		want string
	}{
		{"no name", Options{BaseURL: "http://h"}, "anthropic: a provider needs a name"},
		{"no URL", Options{Name: "p"}, "p: base_url must be a URL"},
		{"a password in the URL", Options{Name: "p", BaseURL: "https://u:secret@h"}, "p: base_url holds a password"},
		{"a key of two lines", Options{Name: "p", BaseURL: "https://h", Key: "secret\nx", KeyFrom: "P_KEY"}, "p: the key holds characters that no key has: check P_KEY"},
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

// The limit is 2 ms from the last tool result to the first byte of the next
// request, for all that the loop does, at 16,000 messages. This is the part of
// building, checking and encoding, which must not grow with the session.
func BenchmarkNextRequest(b *testing.B) {
	p := newProvider(b, Options{})
	for _, messages := range []int{160, 1600, 16000} {
		b.Run(fmt.Sprintf("%d messages", messages), func(b *testing.B) {
			all := []llm.Node{{Message: user(message.Text("go on"))}}
			grow := func() {
				id := fmt.Sprintf("call_%d", len(all))
				for _, m := range []message.Message{thinks(message.Reasoning("hm"), message.ToolCall(id, "read", `{"path":"a"}`)), result(id, message.Text(strings.Repeat("a line of text\n", 40)))} {
					all = append(all, llm.Node{Seq: int64(len(all)), Message: m})
				}
			}
			for len(all) < messages {
				grow()
			}
			var builder llm.Builder
			var checker llm.Checker
			var cache llm.Cache
			next := func() {
				req := llm.Request{Config: llm.Config{Model: "claude"}, Messages: builder.Build(all), Cache: &cache}
				if err := checker.Check(req); err != nil {
					b.Fatal(err)
				}
				if _, failure := p.encode(b.Context(), &req); failure != nil {
					b.Fatal(failure)
				}
			}
			next()
			for b.Loop() {
				b.StopTimer()
				grow()
				b.StartTimer()
				next()
			}
		})
	}
}
