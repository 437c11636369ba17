package endpoint

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

// The wordings by which servers say that a prompt is too long.
func TestOverflowIsRecognised(t *testing.T) {
	e, err := New(Options{Name: "p", BaseURL: "https://h/v1"})
	if err != nil {
		t.Fatal(err)
	}
	c := e.Call(t.Context(), "m")
	defer c.End()
	object := func(message, code string) string {
		b, _ := json.Marshal(map[string]any{"error": map[string]string{"message": message, "code": code}})
		return string(b)
	}
	const none = "context too long (400)"
	tests := []struct {
		server, body string
		want         string
	}{
		{"OpenAI", object("This model's maximum context length is 128000 tokens. However, your messages resulted in 128412 tokens. Please reduce the length of the messages.", "context_length_exceeded"), "context too long (128,412 of 128,000)"},
		{"OpenAI, newer", object("Your input exceeds the context window of this model. Please adjust your input and try again.", "context_length_exceeded"), none},
		{"OpenAI, newest", object("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens.", ""), "context too long (300,123 of 272,000)"},
		{"DeepSeek", object("This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (135904 in the messages, 4096 in the completion).", "invalid_request_error"), "context too long (140,000 of 131,072)"},
		{"OpenRouter", object("This endpoint's maximum context length is 128000 tokens. However, you requested about 130,012 tokens (129000 of text input, 1012 in the output).", ""), "context too long (130,012 of 128,000)"},
		{"a server behind OpenRouter", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Input is too long for requested model.\"}}"}}}`, none},
		{"vLLM", object("'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000).", ""), none},
		{"vLLM, older", object("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", ""), "context too long (5,000 of 4,096)"},
		{"llama.cpp", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`, "context too long (9,000 of 8,192)"},
		{"Ollama", object("input length exceeds the context length", ""), none},
		{"LM Studio", object("The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 14000>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input", ""), "context too long (14,000 of 4,096)"},
		{"LM Studio, older", object("Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.", ""), "context too long (111,490 of 32,768)"},
		{"LM Studio, newer", `{"error":"Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"}`, "context too long (15,028 of 7,424)"},
		{"SGLang", object("The input (5000 tokens) is longer than the model's context length (4096 tokens).", ""), "context too long (5,000 of 4,096)"},
		{"text-generation-inference", object("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 20 `max_new_tokens`", ""), "context too long (9,000 of 8,193)"},
		{"xAI", object("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", ""), "context too long (537,812 of 131,072)"},
		{"Gemini", `[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`, "context too long (1,196,265 of 1,048,575)"},
		{"Mistral", object("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", ""), none},
		{"Kimi", object("Your request exceeded model token limit: 131072 (requested: 140000)", ""), "context too long (140,000 of 131,072)"},
		{"Qwen", object("Range of input length should be [1, 129024]", ""), none},
		{"Copilot", object("prompt token count of 140000 exceeds the limit of 128000", "model_max_prompt_tokens_exceeded"), "context too long (140,000 of 128,000)"},
		{"a limit a minute that no wait mends", `{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.","code":429}}`, "context too long"},
		{"Anthropic", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}`, "context too long (213,462 of 200,000)"},
	}
	for _, tt := range tests {
		got, ok := ParseError([]byte(tt.body))
		if got.Status == 0 {
			got.Status = 400
		}
		f := c.Reported(got)
		if !ok || f.Code != message.CodeContextWindow || !strings.HasPrefix(f.Message, "p: "+tt.want) {
			t.Errorf("%s: %s: %s, want %s", tt.server, f.Code, f.Message, tt.want)
		}
	}
}

func TestOtherErrorsAreNoOverflow(t *testing.T) {
	e, _ := New(Options{Name: "p", BaseURL: "https://h/v1", Key: "sk-1"})
	c := e.Call(t.Context(), "m")
	defer c.End()
	for _, tt := range []struct{ body, want string }{
		{`{"error":{"message":"max_tokens is too large: 120000. This model supports at most 16384 completion tokens","code":400}}`, "INVALID_REQUEST"},
		{`{"error":{"message":"Rate limit reached for m on tokens per min: Limit 30000, Used 29000, Requested 2000.","code":429}}`, "RATE_LIMIT"},
		{`{"error":{"message":"Your context window plan is not paid","code":401}}`, "AUTH"},
		{`{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream gone"}}}`, "SERVER"},
	} {
		got, _ := ParseError([]byte(tt.body))
		if f := c.Reported(got); f.Code != tt.want {
			t.Errorf("%s: %s, want %s", tt.body, f.Code, tt.want)
		}
	}
}

// A server's error may be anything.
func FuzzParseError(f *testing.F) {
	f.Add([]byte(`[{"error":{"message":"x","code":"429","metadata":{"raw":"{\"error\":\"y\"}"}}}]`))
	f.Add([]byte(`{"object":"error","detail":"9999999999999999999 > 1"}`))
	e, err := New(Options{Name: "p", BaseURL: "https://h/v1", Key: "sk-secret"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := e.Call(t.Context(), "m")
		defer c.End()
		got, _ := ParseError(body)
		fail := c.Reported(got)
		if fail.Code == "" || !strings.HasPrefix(fail.Message, "p: ") || strings.ContainsAny(fail.Message, "\n\r\x00") || strings.Contains(fail.Message, "sk-secret") {
			t.Fatalf("failure %+v", fail)
		}
	})
}
