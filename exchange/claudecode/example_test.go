package claudecode_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/claudecode"
)

// The records of a session come while its file is read.
func ExampleRead() {
	file := strings.NewReader(`{"parentUuid":null,"type":"user","message":{"role":"user","content":"2+2?"},"uuid":"u1","sessionId":"1111aaaa-2222-4333-8444-555555555555","timestamp":"2026-03-01T10:00:00Z"}
{"parentUuid":"u1","type":"assistant","message":{"id":"m1","role":"assistant","model":"claude-a-1","content":[{"type":"text","text":"4"}]},"uuid":"u2","sessionId":"1111aaaa-2222-4333-8444-555555555555","timestamp":"2026-03-01T10:00:01Z"}
`)
	ctx := context.Background()
	for s, err := range claudecode.Read(ctx, file, "session.jsonl", nil) {
		if err != nil {
			panic(err)
		}
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
	}
	// Output:
	// session 1111aaaa-2222-4333-8444-555555555555
	// 2 user/message 1772359200000
	// 5 assistant/message 1772359201000
}
