package llm

import (
	"math"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

func TestCost(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	price := &Price{Input: 270_000, CacheRead: 70_000, CacheWrite: 300_000, Output: 1_100_000}
	tests := []struct {
		name  string
		usage *message.Usage
		price *Price
		want  int64
		ok    bool
	}{
		{"each class has its price", &message.Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000, CacheReadTokens: n(1_000_000), CacheWriteTokens: n(1_000_000)}, price, 1_740_000, true},
		{"reasoning is a part of the output", &message.Usage{OutputTokens: 1_000_000, ReasoningTokens: n(900_000)}, price, 1_100_000, true},
		{"the sum is rounded, not its parts", &message.Usage{InputTokens: 1, OutputTokens: 1}, price, 1, true},
		{"half rounds up", &message.Usage{InputTokens: 1}, &Price{Input: 500_000}, 1, true},
		{"less than half rounds down", &message.Usage{InputTokens: 1}, &Price{Input: 499_999}, 0, true},
		{"a free model costs 0", &message.Usage{InputTokens: 10}, &Price{}, 0, true},
		{"an unknown price is no cost", &message.Usage{InputTokens: 10}, nil, 0, false},
		{"an unknown usage is no cost", nil, price, 0, false},
		{"a negative count is no cost", &message.Usage{InputTokens: -1}, price, 0, false},
		{"a sum beyond the range is no cost", &message.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}, &Price{Input: math.MaxInt64, Output: math.MaxInt64}, 0, false},
		{"big figures do not overflow on the way", &message.Usage{InputTokens: 1 << 40}, &Price{Input: 1 << 40}, 1208925819614629175, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := Cost(tt.usage, tt.price); got != tt.want || ok != tt.ok {
				t.Errorf("Cost = %d, %t, want %d, %t", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestEstimate(t *testing.T) {
	tests := []struct {
		name string
		got  int64
		want int64
	}{
		{"a message without content costs nothing", EstimateTokens(says()), 0},
		{"text is a quarter of its code points, rounded up", EstimateTokens(asks("12345")), 4 + 4 + 2},
		{"a code point counts once", EstimateTokens(asks("日本語\U0001f600")), 4 + 4 + 1},
		{"reasoning is text", EstimateTokens(says(message.Reasoning("1234"))), 4 + 4 + 1},
		{"a call counts name and arguments", EstimateTokens(says(message.ToolCall("id", "read", `{"a":1}`))), 4 + 4 + 1 + 2},
		{"a result counts what is in it", EstimateTokens(gives("c", "1234", "1")), 4 + 4 + 5 + 5},
		{"another block counts its JSON", EstimateBlocks([]message.Block{{Type: message.ImageBlock}}), 4 + 9},
		{"an empty header costs nothing", EstimateHeader("", nil), 0},
		{"a header counts system and tools", EstimateHeader("1234", []Tool{{Name: "a", Parameters: []byte(`{}`)}}), 5 + 4 + 12},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, tt.got, tt.want)
		}
	}
	req := Request{System: "1234", Messages: []message.Message{asks("12345"), asks("1")}}
	if got := EstimateRequest(req); got != 5+10+9 {
		t.Errorf("a request is %d, want 24", got)
	}
}
