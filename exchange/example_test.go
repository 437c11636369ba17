package exchange_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// A history of any program becomes a log when it is given to a builder in
// order. Here the program lost the result of a call.
func ExampleSession() {
	s := &exchange.Session{
		Program: "my-agent", Source: "session-2026-03-01-0001", CreatedAt: 1772359200000, Cwd: "/home/ada",
		Feed: func(b *exchange.Builder) error {
			b.Model(exchange.Model{Provider: "p", Model: "m"})
			if err := b.Prompt(exchange.Prompt{Content: []message.Block{message.Text("List the files.")}}); err != nil {
				return err
			}
			return b.Reply(exchange.Reply{Content: []message.Block{message.ToolCall("c1", "shell", `{"command":"ls"}`)}})
		},
	}
	ctx := context.Background()
	report := &exchange.Report{}
	o := exchange.Options{Report: report}
	h, err := s.Header(ctx, o)
	if err != nil {
		panic(err)
	}
	for r, err := range s.Records(ctx, h, o) {
		if err != nil {
			panic(err)
		}
		fmt.Println(r.Seq, r.Type)
	}
	for _, e := range report.Sorted() {
		fmt.Println(e)
	}
	// Output:
	// 0 turn/start
	// 1 step/start
	// 2 user/message
	// 3 request/header
	// 4 request/context
	// 5 assistant/message
	// 6 tool/call
	// 7 tool/result
	// 8 step/end
	// 9 turn/end
	// 10 outcrop/import
	// kept 1 prompt
	// kept 1 reply
	// mapped 1 call without a result: an error result that says so
}

// An importer stores what sources hold, and finds it there the second time.
func ExampleImporter() {
	src := exchange.Source{Path: "my.history", Stamp: func() (string, error) { return "", nil },
		Sessions: func(context.Context, *exchange.Report) iter.Seq2[*exchange.Session, error] {
			return func(yield func(*exchange.Session, error) bool) {
				yield(&exchange.Session{Program: "my-agent", Source: "session-2026-03-01-0001", Feed: func(b *exchange.Builder) error {
					return b.Prompt(exchange.Prompt{Content: []message.Block{message.Text("Hello")}})
				}}, nil)
			}
		}}
	im := &exchange.Importer{Store: memory.New()}
	for range 2 {
		r, err := im.Import(context.Background(), src)
		if err != nil {
			panic(err)
		}
		for _, o := range r.Sessions {
			fmt.Println(o.ID, o.Verdict, o.Messages, "message")
		}
	}
	// Output:
	// session-2026-03-01-0001 imported 1 message
	// session-2026-03-01-0001 present 1 message
}
