package script_test

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
)

func Example() {
	s, err := script.Parse("demo.jsonl", []byte(`
{"script":1,"model":"demo"}
{"text":"Reading it.","tools":[{"name":"read","args":{"path":"a.txt"}}]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var provider llm.Provider = &script.Model{Script: s}
	req := llm.Request{Purpose: llm.Turn, Turn: 1, Step: 1, Attempt: 1, Messages: []message.Message{
		{Role: message.User, Content: []message.Block{message.Text("What does a.txt say?")}},
	}}
	var reply message.Assembler
	for chunk, err := range provider.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		reply.Add(chunk)
	}
	for _, b := range reply.Blocks() {
		fmt.Println(b.Type, b.Text+b.Arguments)
	}
	fmt.Println(reply.Finish().Kind)
	// Output:
	// text Reading it.
	// tool-call {"path":"a.txt"}
	// tool-calls
}
