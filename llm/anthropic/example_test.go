package anthropic_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/anthropic"
	"github.com/outcrop-dev/outcrop/message"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`,
			`{"type":"message_stop"}`,
		} {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}))
	defer server.Close()

	provider, err := anthropic.New(anthropic.Options{Name: "local", BaseURL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := llm.Request{
		Config:   llm.Config{Provider: "local", Model: "small"},
		Messages: llm.Build([]llm.Node{{Message: message.Message{Role: message.User, Content: []message.Block{message.Text("hi")}}}}),
	}
	var reply message.Assembler
	for chunk, err := range provider.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		reply.Add(chunk)
	}
	fmt.Println(message.PlainText(reply.Blocks()), reply.Finish().Kind)
	// Output: Hello stop
}
