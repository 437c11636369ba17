package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// grow adds a step to a log: a call and its result.
func grow(all []llm.Node) []llm.Node {
	id := fmt.Sprintf("call_%d", len(all))
	for _, m := range []message.Message{model(message.Text("Reading it."), message.ToolCall(id, "read", `{"path":"a"}`)), result(id, strings.Repeat("a line of text\n", 40))} {
		all = append(all, llm.Node{Seq: int64(len(all)), Message: m})
	}
	return all
}

// The limit is 2 ms from the last tool result to the first byte of the next
// request, for all that the loop does, at 16,000 messages. This is the part of
// building, checking and encoding, which must not grow with the session.
func BenchmarkNextRequest(b *testing.B) {
	p := newProvider(b, Options{Quirks: Quirks{Reasoning: ReasoningContent}})
	for _, messages := range []int{160, 1600, 16000} {
		b.Run(fmt.Sprintf("%d messages", messages), func(b *testing.B) {
			all := []llm.Node{{Message: user(message.Text("go on"))}}
			for len(all) < messages {
				all = grow(all)
			}
			var builder llm.Builder
			var checker llm.Checker
			var cache llm.Cache
			next := func() {
				req := llm.Request{Config: llm.Config{Model: "m"}, Messages: builder.Build(all), Cache: &cache}
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
				all = grow(all)
				b.StartTimer()
				next()
			}
		})
	}
}
