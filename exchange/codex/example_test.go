package codex_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
)

// The records of a session come while its file is read.
func ExampleRead() {
	const file = `{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{"id":"0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee","cwd":"/home/ada"}}
{"timestamp":"2026-03-01T10:00:01Z","type":"turn_context","payload":{"model":"gpt-a"}}
{"timestamp":"2026-03-01T10:00:02Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"2+2?"}]}}
{"timestamp":"2026-03-01T10:00:03Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"4"}]}}
`
	s, err := codex.Read("rollout.jsonl", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file)), nil })
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	h, err := s.Header(ctx, exchange.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println("session", h.ID)
	for r, err := range s.Records(ctx, h, exchange.Options{}) {
		if err != nil {
			panic(err)
		}
		if r.Type == outcrop.TypeUserMessage || r.Type == outcrop.TypeAssistantMessage {
			fmt.Println(r.Seq, r.Type, r.Time)
		}
	}
	// Output:
	// session 0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee
	// 2 user/message 1772359202000
	// 5 assistant/message 1772359203000
}
