package llm_test

import (
	"fmt"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// A session was cut off while a tool ran; its request is valid all the same.
func ExampleBuild() {
	surface := []llm.Node{
		{Seq: 4, Message: message.Message{Role: message.User, Content: []message.Block{message.Text("How long is the report?")}}},
		{Seq: 9, Message: message.Message{Role: message.Assistant, Content: []message.Block{message.ToolCall("c1", "shell", `{"command":"wc -l`)}}},
		{Seq: 12, Message: message.Message{Role: message.User, Content: []message.Block{message.Text("go on")}}},
	}
	req := llm.Request{Messages: llm.Build(surface)}
	fmt.Println(llm.Check(req))
	for _, m := range req.Messages {
		fmt.Println(m.Role, m.Content[0].Type)
	}
	fmt.Println(req.Messages[1].Content[0].Arguments)
	// Output:
	// <nil>
	// user text
	// assistant tool-call
	// user tool-result
	// user text
	// {"_raw":"{\"command\":\"wc -l"}
}
