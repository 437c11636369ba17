package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/openai"
	"github.com/outcrop-dev/outcrop/message"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()

	provider, err := openai.New(openai.Options{Name: "local", BaseURL: server.URL + "/v1"})
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
