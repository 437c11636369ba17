package agent_test

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/workspace"
)

// A whole turn with a scripted model, on a session in memory. With a store it
// is the same: a store's live session is a Live.
func Example() {
	played, err := script.Parse("hello.jsonl", []byte(`{"text":"Hello, Ada."}`))
	if err != nil {
		panic(err)
	}
	s, err := outcrop.New(outcrop.NewHeader("s1", 1000, "/srv/demo"), outcrop.Options{})
	if err != nil {
		panic(err)
	}
	a, err := agent.New(agent.Options{
		Live:     &memoryLive{s: s},
		Provider: &script.Model{Script: played},
		Config:   llm.Config{Model: "hello"},
		System:   "You greet people.",
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	stop := a.Observe(func(ev outcrop.Event) {
		if ev.Type == outcrop.TypeTurnStart || ev.Type == outcrop.TypeTurnEnd {
			fmt.Printf("%s %s\n", ev.Type, ev.Data)
		}
	})
	if _, err := a.Send(ctx, message.Message{Content: []message.Block{message.Text("Hello, I am Ada.")}}); err != nil {
		panic(err)
	}
	out, err := a.Wait(ctx)
	if err != nil {
		panic(err)
	}
	stop()
	fmt.Println(out.Reason.Kind)
	for _, m := range s.Messages() {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", m.Role, message.PlainText(parsed.Content))
	}
	if err := a.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// turn/start {"turn":1}
	// turn/end {"turn":1,"reason":{"kind":"completed"}}
	// completed
	// user: Hello, I am Ada.
	// assistant: Hello, Ada.
}

// greeting is a hook that tells the model something before each step.
type greeting struct{}

func (greeting) Contribute(_ context.Context, st agent.Stage) ([]workspace.Context, error) {
	return []workspace.Context{{Name: "greeting", Text: "Greet in Welsh."}}, nil
}

// A contributor adds what the model should know; it is appended when it is new
// or has changed, and after an edit that took it away.
func ExampleHooks() {
	played, err := script.Parse("hello.jsonl", []byte(`{"script":1,"model":"hello","end":"last"}
{"text":"Helo, Ada."}`))
	if err != nil {
		panic(err)
	}
	s, err := outcrop.New(outcrop.NewHeader("s1", 1000, "/srv/demo"), outcrop.Options{})
	if err != nil {
		panic(err)
	}
	a, err := agent.New(agent.Options{
		Live:     &memoryLive{s: s},
		Provider: &script.Model{Script: played},
		Config:   llm.Config{Model: "hello"},
		Hooks:    agent.Hooks{Contributors: []agent.Contributor{greeting{}}},
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, text := range []string{"Hello, I am Ada.", "Again, please."} {
		if _, err := a.Send(ctx, message.Message{Content: []message.Block{message.Text(text)}}); err != nil {
			panic(err)
		}
		if _, err := a.Wait(ctx); err != nil {
			panic(err)
		}
	}
	for _, m := range s.Messages() {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", m.Role, message.PlainText(parsed.Content))
	}
	if err := a.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// user: Hello, I am Ada.
	// user: Greet in Welsh.
	// assistant: Helo, Ada.
	// user: Again, please.
	// assistant: Helo, Ada.
}
