package anthropic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/endpoint"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/message"
)

// outcome is what a reply came to, in short form.
type outcome struct {
	Blocks  []string
	Finish  message.FinishKind
	Usage   string
	State   string
	Failure string // CODE: message
}

func run(ctx context.Context, p *Provider, req llm.Request) (o outcome, chunks []message.Chunk, f *message.Failure) {
	var a message.Assembler
	for c, err := range p.Stream(ctx, req) {
		if err != nil {
			f = err.(*message.Failure)
			o.Failure = f.Code + ": " + f.Message
			break
		}
		chunks = append(chunks, c)
		a.Add(c)
		if c.Type == message.FinishChunk {
			o.Finish = c.Reason.Kind
		}
	}
	for _, b := range a.Blocks() {
		s := string(b.Type) + " " + b.Text
		if b.Type == message.ToolCallBlock {
			s = b.ID + " " + b.Name + " " + b.Arguments
		}
		o.Blocks = append(o.Blocks, s)
	}
	if u := a.Usage(); u != nil {
		o.Usage = string(u.AppendJSON(nil))
	}
	o.State = string(a.ReplayState())
	return o, chunks, f
}

// serve starts a strict server that gives one answer, and a provider for it.
func serve(t *testing.T, o Options, answer http.HandlerFunc) *Provider {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		bad := ""
		if r.Method == http.MethodPost {
			refusal := (llmtest.Rules{Profile: llmtest.Anthropic}).Check(body)
			switch {
			case err != nil:
				bad = err.Error()
			case refusal != nil:
				bad = refusal.Error()
			case r.URL.Path != "/v1/messages":
				bad = "path " + r.URL.Path
			case r.Header.Get("Content-Type") != "application/json", int64(len(body)) != r.ContentLength:
				bad = fmt.Sprint(r.Header, r.ContentLength)
			}
		}
		if r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("X-Api-Key") != o.Key {
			bad = fmt.Sprint(r.Header)
		}
		if bad != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, bad)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	o.BaseURL = s.URL
	return newProvider(t, o)
}

func sends(media, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		io.WriteString(w, text)
	}
}

// sse writes events as the API does. Some have a short form.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		switch word, rest, _ := strings.Cut(e, " "); word {
		case "begin":
			e = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":3,"output_tokens":1}}}`
		case "start":
			e = fmt.Sprintf(`{"type":"content_block_start","index":%s,"content_block":%s}`, rest[:1], rest[2:])
		case "delta":
			e = fmt.Sprintf(`{"type":"content_block_delta","index":%s,"delta":%s}`, rest[:1], rest[2:])
		case "text":
			e = fmt.Sprintf(`{"type":"content_block_delta","index":%s,"delta":{"type":"text_delta","text":%q}}`, rest[:1], rest[2:])
		case "json":
			e = fmt.Sprintf(`{"type":"content_block_delta","index":%s,"delta":{"type":"input_json_delta","partial_json":%q}}`, rest[:1], rest[2:])
		case "stop":
			e = fmt.Sprintf(`{"type":"content_block_stop","index":%s}`, rest)
		case "finish":
			e = fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":15}}`, rest)
		case "end":
			e = `{"type":"message_stop"}`
		}
		fmt.Fprintf(&b, "event: x\ndata: %s\n\n", e)
	}
	return b.String()
}

const textBlock = `{"type":"text","text":""}`

func TestReplies(t *testing.T) {
	const usage = `{"inputTokens":10,"outputTokens":15,"cacheReadTokens":4,"cacheWriteTokens":3}`
	hello := []string{"text Hello"}
	call := func(n, id, name string) string {
		return fmt.Sprintf(`start %s {"type":"tool_use","id":%q,"name":%q,"input":{}}`, n, id, name)
	}
	tests := []struct {
		name string
		text string
		want outcome
	}{
		{"a plain answer", sse("begin", "start 0 "+textBlock, `{"type":"ping"}`, "text 0 Hel", "text 0 lo", "stop 0", "finish end_turn", "end"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: usage}},
		{"CR alone ends lines", strings.ReplaceAll(sse("begin", "start 0 "+textBlock, "text 0 Hello", "stop 0", "finish end_turn", "end"), "\n", "\r"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: usage}},
		{"no message_stop", sse("begin", "start 0 "+textBlock, "text 0 Hello", "stop 0", "finish stop_sequence"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: usage}},
		{"a block that is not stopped", sse("begin", "start 0 "+textBlock, "text 0 Hello", "finish end_turn", "end"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: usage}},
		{"text in the start of a block", sse("begin", `start 0 {"type":"text","text":"Hel"}`, "text 0 lo", "stop 0", "finish end_turn", "end"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: usage}},
		{"half an emoji at the end of a piece", sse("begin", "start 0 "+textBlock, `delta 0 {"type":"text_delta","text":"\ud83d"}`, `delta 0 {"type":"text_delta","text":"\ude00"}`, "stop 0", "finish end_turn", "end"),
			outcome{Blocks: []string{"text \U0001f600"}, Finish: message.Stop, Usage: usage}},
		{"calls with arguments in pieces, mixed", sse("begin", call("0", "a", "read"), call("1", "b", "now"), `json 0 {"path`, "json 0 \":\"a\"}", "stop 1", "stop 0", "finish tool_use", "end"),
			outcome{Blocks: []string{`a read {"path":"a"}`, "b now {}"}, Finish: message.ToolCalls, Usage: usage}},
		{"arguments in the start of a call", sse("begin", `start 0 {"type":"tool_use","id":"a","name":"read","input":{"path": "a"}}`, "stop 0", "finish end_turn", "end"),
			outcome{Blocks: []string{`a read {"path":"a"}`}, Finish: message.ToolCalls, Usage: usage}},
		{"calls without an id, or with one that is taken", sse("begin", call("0", "", "read"), "stop 0", call("1", "a", "read"), "stop 1", call("2", "a", "read"), "stop 2", "finish tool_use", "end"),
			outcome{Blocks: []string{"call_2_3_1 read {}", "a read {}", "call_2_3_3 read {}"}, Finish: message.ToolCalls, Usage: usage}},
		{"thinking with its signature", sse("begin", `start 0 {"type":"thinking","thinking":"","signature":""}`, `delta 0 {"type":"thinking_delta","thinking":"hm"}`, `delta 0 {"type":"signature_delta","signature":"S1"}`, `delta 0 {"type":"signature_delta","signature":"S2"}`, "stop 0",
			"start 1 "+textBlock, "text 1 Hello", "stop 1", "finish end_turn", "end"),
			outcome{Blocks: []string{"reasoning hm", "text Hello"}, Finish: message.Stop, Usage: usage, State: `{"anthropic":1,"blocks":[{"signature":"S1S2"},null]}`}},
		{"encrypted thinking", sse("begin", `start 0 {"type":"redacted_thinking","data":"XYZ"}`, "stop 0", call("1", "a", "read"), "stop 1", "finish tool_use", "end"),
			outcome{Blocks: []string{"reasoning ", "a read {}"}, Finish: message.ToolCalls, Usage: usage, State: `{"anthropic":1,"blocks":[{"redacted":"XYZ"},null]}`}},
		{"a call that the limit cut off is not kept, nor is its state", sse("begin", `start 0 {"type":"thinking","thinking":"hm","signature":"S"}`, "stop 0", call("1", "a", "read"), `json 1 {"pa`, "finish max_tokens", "end"),
			outcome{Blocks: []string{"reasoning hm"}, Finish: message.MaxTokens, Usage: usage, State: `{"anthropic":1,"blocks":[{"signature":"S"}]}`}},
		{"a window that is full", sse("begin", "start 0 "+textBlock, "text 0 Hello", "stop 0", "finish model_context_window_exceeded", "end"),
			outcome{Blocks: hello, Finish: message.MaxTokens, Usage: usage}},
		{"a pause is a stop", sse("begin", "start 0 "+textBlock, "text 0 Hello", "stop 0", "finish pause_turn", "end"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: usage}},
		{"blocks, deltas and events that are not known", sse("begin", `start 0 {"type":"server_tool_use","id":"x"}`, "json 0 {", "stop 0", "start 1 "+textBlock, "text 1 Hello", `delta 1 {"type":"citations_delta","citation":{}}`, "json 1 {", "text 7 lost", "stop 7", `{"type":"news"}`, "stop 1", "text 1 late", "stop 1", "finish end_turn", "end"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: usage}},
		{"a huge index", sse("begin") + "data: {\"type\":\"content_block_start\",\"index\":9007199254740991,\"content_block\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\n" + sse("finish end_turn", "end"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: usage}},
		{"usage that makes no sense", sse(`{"type":"message_start","message":{"usage":{"input_tokens":-5,"output_tokens":"many","cache_read_input_tokens":1.5}}}`, "start 0 "+textBlock, "text 0 Hello", "stop 0", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":null}`, "end"),
			outcome{Blocks: hello, Finish: message.Stop, Usage: `{"inputTokens":0,"outputTokens":0}`}},

		{"a refusal", sse("begin", "start 0 "+textBlock, "text 0 Hel", "stop 0", "finish refusal", "end"),
			outcome{Blocks: []string{"text Hel"}, Usage: usage, Failure: "CONTENT_FILTER: anthropic: the model refused to go on (refusal)"}},
		{"a stream that breaks off", sse("begin", "start 0 "+textBlock, "text 0 Hel"), outcome{Blocks: []string{"text Hel"}, Failure: "TRANSPORT: anthropic: the stream ended before the reply was complete"}},
		{"an empty stream", "", outcome{Failure: "TRANSPORT: anthropic: the stream ended before the reply was complete"}},
		{"[DONE] in the middle", sse("begin", "[DONE]"), outcome{Failure: "TRANSPORT: anthropic: the stream ended before the reply was complete"}},
		{"a stop without content", sse("begin", "finish end_turn", "end"), outcome{Usage: usage, Failure: "EMPTY_RESPONSE: anthropic: answered with nothing"}},
		{"an overload in the middle", sse("begin", "start 0 "+textBlock, "text 0 Hel", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
			outcome{Blocks: []string{"text Hel"}, Failure: "SERVER: anthropic: an error came in the middle of the reply: Overloaded"}},
		{"a rate limit in the middle", sse("begin", `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`), outcome{Failure: "RATE_LIMIT: anthropic: too many requests: slow down"}},
		{"a prompt that is too long, in the stream", sse(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}`), outcome{Failure: "CONTEXT_WINDOW_EXCEEDED: anthropic: context too long (213,462 of 200,000)"}},
		{"a key that is refused in the stream", sse(`{"type":"error","error":{"type":"authentication_error","message":"x"}}`), outcome{Failure: "AUTH: anthropic: a key is needed: set key_env or key_command"}},
		{"an error without a type", sse("begin", `{"error":{"message":"boom"}}`), outcome{Failure: "SERVER: anthropic: an error came in the middle of the reply: boom"}},
		{"NaN", sse("begin", `{"type":"message_delta","usage":{"output_tokens":NaN}}`), outcome{Failure: "MALFORMED_RESPONSE: anthropic: sent an event that is not a JSON object"}},
		{"deep nesting", sse("begin", `{"type":"ping","x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`), outcome{Failure: "MALFORMED_RESPONSE: anthropic: sent an event that is not a JSON object"}},
		{"a line without end", "data: " + strings.Repeat("x", endpoint.MaxEvent), outcome{Failure: "MALFORMED_RESPONSE: anthropic: sent an event over 16 MiB"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, chunks, _ := run(t.Context(), serve(t, Options{}, sends("text/event-stream", tt.text)), ask(user(message.Text("hi"))))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("outcome (-want +got):\n%s", d)
			}
			checkOrder(t, chunks, got.Finish != "")
		})
	}
}

// checkOrder holds chunks against the contract of llm.Provider.
func checkOrder(t *testing.T, chunks []message.Chunk, complete bool) {
	t.Helper()
	typ := map[int]message.BlockType{}
	ended := map[int]bool{}
	for i, c := range chunks {
		switch c.Type {
		case message.BlockStart:
			if _, ok := typ[c.Index]; ok || c.Index != len(typ) {
				t.Errorf("chunk %d starts block %d", i, c.Index)
			}
			typ[c.Index] = c.BlockType
		case message.TextDelta, message.ReasoningDelta, message.ToolCallDelta:
			want := map[message.ChunkType]message.BlockType{message.TextDelta: message.TextBlock, message.ReasoningDelta: message.ReasoningBlock, message.ToolCallDelta: message.ToolCallBlock}[c.Type]
			if typ[c.Index] != want || ended[c.Index] {
				t.Errorf("chunk %d is a %s of block %d (%s)", i, c.Type, c.Index, typ[c.Index])
			}
		case message.BlockEnd:
			if ended[c.Index] || c.Block == nil || typ[c.Index] != c.Block.Type {
				t.Errorf("chunk %d ends block %d", i, c.Index)
			}
			ended[c.Index] = true
		case message.UsageChunk:
			if complete && i != len(chunks)-2 {
				t.Errorf("usage is chunk %d of %d", i, len(chunks))
			}
		case message.FinishChunk:
			if i != len(chunks)-1 || len(ended) != len(typ) {
				t.Errorf("finish is chunk %d of %d, %d of %d blocks ended", i, len(chunks), len(ended), len(typ))
			}
		}
	}
}

// What a model thought goes back to it unchanged: from the stream through the
// log into the next request, which the strict server accepts.
func TestThinkingGoesBackAsItCame(t *testing.T) {
	server := llmtest.New(llmtest.Options{
		Rules:   llmtest.Rules{Profile: llmtest.Anthropic},
		Session: func(*http.Request, []byte) string { return "s" },
		Replies: func(n int, _ []byte) llmtest.Reply {
			if n < 2 {
				return llmtest.Reply{Reasoning: "I need \U0001f600 the \"file\".", Text: "Reading it. ", Calls: []llmtest.Call{{Name: "read", Arguments: `{"path":"a"}`}}}
			}
			return llmtest.Reply{Text: "done"}
		},
	})
	s := httptest.NewServer(server)
	defer s.Close()
	p := newProvider(t, Options{BaseURL: s.URL})
	nodes := []llm.Node{{Message: user(message.Text("hi"))}}
	for n := range 3 {
		req := llm.Request{Config: llm.Config{Provider: "anthropic", Model: "claude", ReasoningEffort: "low"}, Tools: []llm.Tool{{Name: "read"}}, Messages: llm.Build(nodes)}
		if budget := string(p.Body(req)); !strings.Contains(budget, `"thinking":{"type":"enabled","budget_tokens":4096}`) {
			t.Fatalf("request %d does not think: %s", n, budget)
		}
		var a message.Assembler
		for c, err := range p.Stream(t.Context(), req) {
			if err != nil {
				t.Fatalf("request %d: %v", n, err)
			}
			a.Add(c)
		}
		m := says("anthropic", "claude", a.Blocks()...)
		m.Source.ReplayState = a.ReplayState()
		nodes = append(nodes, llm.Node{Seq: int64(len(nodes)), Message: m})
		for _, b := range a.Blocks() {
			if b.Type == message.ToolCallBlock {
				nodes = append(nodes, llm.Node{Seq: int64(len(nodes)), Message: result(b.ID, message.Text("A"))})
			}
		}
	}
	if n := len(server.Exchanges()); n != 3 || server.Refused() != nil {
		t.Errorf("%d requests, refused: %v", n, server.Refused())
	}
}

// The strict server's faults, each as the failure or the reply that it should
// become.
func TestEveryFaultOfAServer(t *testing.T) {
	codes := map[llmtest.Fault]string{
		llmtest.Unauthorized: "AUTH", llmtest.Forbidden: "AUTH", llmtest.NoModel: "MODEL_NOT_FOUND", llmtest.RequestTimeout: "TIMEOUT",
		llmtest.TooLarge: "CONTEXT_WINDOW_EXCEEDED", llmtest.RateLimited: "RATE_LIMIT", llmtest.RateLimitedAfter: "RATE_LIMIT",
		llmtest.ServerError: "SERVER", llmtest.Unavailable: "SERVER", llmtest.HTML: "MALFORMED_RESPONSE", llmtest.Truncated: "TRANSPORT",
		llmtest.Silence: "TRANSPORT",
	}
	for _, fault := range llmtest.Faults() {
		t.Run(string(fault), func(t *testing.T) {
			s := httptest.NewServer(llmtest.New(llmtest.Options{
				Rules: llmtest.Rules{Profile: llmtest.Anthropic},
				Key:   "sk-secret",
				Replies: func(int, []byte) llmtest.Reply {
					return llmtest.Reply{Text: "Hello", Calls: []llmtest.Call{{ID: "a", Name: "read", Arguments: `{"path":"ä"}`}, {ID: "b", Name: "now", Arguments: `{}`}}, Fault: fault}
				},
				Silence: func(context.Context) { panic(http.ErrAbortHandler) },
			}))
			defer s.Close()
			got, chunks, failure := run(t.Context(), newProvider(t, Options{BaseURL: s.URL, Key: "sk-secret"}), ask(user(message.Text("hi"))))
			checkOrder(t, chunks, got.Finish != "")
			if fault.Complete() {
				want := []string{"text Hello", `a read {"path":"ä"}`, "b now {}"}
				if fault == llmtest.NoCallID {
					want[1], want[2] = `call_2_3_2 read {"path":"ä"}`, "call_2_3_3 now {}"
				}
				if d := cmp.Diff(want, got.Blocks); d != "" || got.Finish != message.ToolCalls {
					t.Errorf("%s\n%+v", d, got)
				}
				return
			}
			if failure == nil || failure.Code != codes[fault] || codes[fault] == "" {
				t.Fatalf("failure %+v, want %s", failure, codes[fault])
			}
			if (failure.RetryAfterMs > 0) != (fault == llmtest.RateLimitedAfter) {
				t.Errorf("a wait of %d ms", failure.RetryAfterMs)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	errorOf := func(typ, text string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_1"}`, typ, text)
	}
	tests := []struct {
		name, header string
		status       int
		body         string
		want         message.Failure
	}{
		{"a key that is wrong", "", 401, errorOf("authentication_error", "invalid x-api-key"), message.Failure{Code: "AUTH", Message: "anthropic: the key was refused (401): check ANTHROPIC_API_KEY"}},
		{"a key that may not", "", 403, errorOf("permission_error", "Your API key does not have permission"), message.Failure{Code: "AUTH", Message: "anthropic: the key was refused (403): check ANTHROPIC_API_KEY"}},
		{"a model that is not for everybody", "", 403, errorOf("permission_error", "not released"), message.Failure{Code: "AUTH", Message: "anthropic: access was refused (403): not released"}},
		{"no credit", "", 400, errorOf("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), message.Failure{Code: "QUOTA", Message: "anthropic: no balance or quota left (400): Your credit balance is too low to access the Anthropic API."}},
		{"an unknown model", "", 404, errorOf("not_found_error", "model: claude"), message.Failure{Code: "MODEL_NOT_FOUND", Message: `anthropic: no model "claude" (404): outcrop models anthropic lists them`}},
		{"a body that is too big", "", 413, errorOf("request_too_large", "Request exceeds the maximum size"), message.Failure{Code: "CONTEXT_WINDOW_EXCEEDED", Message: "anthropic: context too long (413): Request exceeds the maximum size"}},
		{"a prompt that is too long", "", 400, errorOf("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"), message.Failure{Code: "CONTEXT_WINDOW_EXCEEDED", Message: "anthropic: context too long (213,462 of 200,000)"}},
		{"prompt and output over the window", "", 400, errorOf("invalid_request_error", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"), message.Failure{Code: "CONTEXT_WINDOW_EXCEEDED", Message: "anthropic: context too long (400): input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"}},
		{"too many requests", "Retry-After: 7", 429, errorOf("rate_limit_error", "slow down"), message.Failure{Code: "RATE_LIMIT", Message: "anthropic: too many requests (429): slow down", RetryAfterMs: 7000}},
		{"an overload", "Retry-After: 1", 529, errorOf("overloaded_error", "Overloaded"), message.Failure{Code: "SERVER", Message: "anthropic: server error (529): Overloaded", RetryAfterMs: 1000}},
		{"a server error", "", 500, errorOf("api_error", "Internal server error"), message.Failure{Code: "SERVER", Message: "anthropic: server error (500): Internal server error"}},
		{"a bad request", "", 400, errorOf("invalid_request_error", "messages.1: odd"), message.Failure{Code: "INVALID_REQUEST", Message: "anthropic: the request was refused (400): messages.1: odd"}},
		{"JSON instead of a stream", "", 200, `{"type":"message"}`, message.Failure{Code: "MALFORMED_RESPONSE", Message: "anthropic: answered with one JSON value instead of a stream of events: does base_url end before /v1?"}},
		{"an error with success", "", 200, errorOf("overloaded_error", "Overloaded"), message.Failure{Code: "SERVER", Message: "anthropic: an error came in the middle of the reply: Overloaded"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, Options{Key: "sk-secret", KeyFrom: "ANTHROPIC_API_KEY"}, func(w http.ResponseWriter, _ *http.Request) {
				if name, value, ok := strings.Cut(tt.header, ": "); ok {
					w.Header().Set(name, value)
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Request-Id", "req_1")
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			_, chunks, f := run(t.Context(), p, ask(user(message.Text("hi"))))
			if f == nil || len(chunks) > 0 {
				t.Fatalf("failure %v, %d chunks", f, len(chunks))
			}
			tt.want.RequestID = "req_1"
			if tt.status != 200 {
				tt.want.Status = tt.status
			}
			if d := cmp.Diff(tt.want, *f); d != "" {
				t.Errorf("failure (-want +got):\n%s", d)
			}
		})
	}
}

func TestARequestThatIsNotFitIsNotSent(t *testing.T) {
	p := serve(t, Options{}, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	blank, effort := ask(user(message.Text("hi"))), ask(user(message.Text("hi")))
	blank.Messages[0].Content[0].Text = ""
	effort.Config.ReasoningEffort = "enormous"
	for want, req := range map[string]llm.Request{
		"INVALID_REQUEST: request refused: messages[0]: content[0]: text is empty or blank":                      blank,
		`INVALID_REQUEST: anthropic: no reasoning effort "enormous": use off, minimal, low, medium, high or max`: effort,
	} {
		if got, _, _ := run(t.Context(), p, req); got.Failure != want {
			t.Errorf("%s, want %s", got.Failure, want)
		}
	}
}

func TestACancelledCallIsAborted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		sends("text/event-stream", sse("begin", "start 0 "+textBlock, "text 0 Hel"))(w, r)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	if got, _, _ := run(ctx, p, ask(user(message.Text("hi")))); got.Failure != "ABORTED: anthropic: the call was cancelled" {
		t.Errorf("outcome %+v", got)
	}
}

func TestAConsumerMayStopEarly(t *testing.T) {
	p := serve(t, Options{}, sends("text/event-stream", sse("begin", `start 0 {"type":"thinking","thinking":"hm","signature":"S"}`, "stop 0", "start 1 "+textBlock, "text 1 Hello", "stop 1",
		`start 2 {"type":"tool_use","id":"a","name":"read","input":{}}`, "finish tool_use", "end")))
	_, all, _ := run(t.Context(), p, ask(user(message.Text("hi"))))
	if len(all) != 12 {
		t.Fatalf("%d chunks", len(all))
	}
	for stop := 1; stop <= len(all); stop++ {
		n := 0
		for range p.Stream(t.Context(), ask(user(message.Text("hi")))) {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("stopped after %d, want %d", n, stop)
		}
	}
}

// pump reads events from a function, most of them, and then a good end.
type pump struct {
	event func(i int) string
	most  int
	i     int
	rest  string
}

func (p *pump) Read(b []byte) (int, error) {
	if p.rest == "" {
		switch {
		case p.i < p.most:
			p.rest = sse(p.event(p.i))
		case p.i == p.most:
			p.rest = sse("finish end_turn", "end")
		default:
			return 0, io.EOF
		}
		p.i++
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// A server that never ends may not fill memory and log.
func TestAReplyWithoutEndIsEnded(t *testing.T) {
	some := strings.Repeat("x", 64<<10)
	for _, tt := range []struct {
		name  string
		begin string
		event func(i int) string
		want  string
		most  int // events
	}{
		{"text", "start 0 " + textBlock, func(int) string { return "text 0 " + some }, "sent a reply over 1 MiB", 20},
		{"small pieces", "start 0 " + textBlock, func(int) string { return "text 0 x" }, "sent a reply over 1 MiB", 20_000},
		{"arguments", `start 0 {"type":"tool_use","id":"a","name":"f","input":{}}`, func(int) string { return "json 0 " + some }, "sent a reply over 1 MiB", 20},
		{"signatures", `start 0 {"type":"thinking","thinking":""}`, func(int) string { return `delta 0 {"type":"signature_delta","signature":"` + some + `"}` }, "sent a reply over 1 MiB", 20},
		{"encrypted thinking", "begin", func(int) string { return `start 0 {"type":"redacted_thinking","data":"` + some + `"}` }, "sent a reply over 1 MiB", 20},
		{"arguments at the start of calls", "begin", func(int) string {
			return `start 0 {"type":"tool_use","id":"a","name":"f","input":{"a":"` + some + `"}}`
		}, "sent a reply over 1 MiB", 20},
		{"blocks", "begin", func(int) string { return "start 0 " + textBlock }, "sent more than 1000 blocks in one reply", 1100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProvider(t, Options{})
			c := p.at.Call(t.Context(), "m")
			defer c.End()
			var failure *message.Failure
			r := newReply(c, &llm.Request{}, func(_ message.Chunk, err error) bool {
				if err != nil {
					failure = err.(*message.Failure)
				}
				return true
			})
			r.Most = 1 << 20
			r.Event([]byte(strings.TrimPrefix(strings.TrimSpace(sse(tt.begin)), "event: x\ndata: ")))
			r.Stream(&pump{event: tt.event, most: tt.most}, r)
			if failure == nil || failure.Code != llm.CodeMalformed || !strings.HasSuffix(failure.Message, tt.want) {
				t.Errorf("got %v", failure)
			}
		})
	}
}

func TestModels(t *testing.T) {
	p := serve(t, Options{Key: "sk-1"}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		sends("application/json", `{"data":[{"type":"model","id":"b","max_input_tokens":200000},{"type":"model","id":"a"}],"has_more":false}`)(w, r)
	})
	got, err := p.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]llm.ModelInfo{{ID: "a"}, {ID: "b", Window: 200000}}, got); d != "" {
		t.Error(d)
	}
	p = serve(t, Options{}, sends("text/html", "<html>"))
	if _, err := p.Models(t.Context()); err == nil || err.Error() != "anthropic: answered text/html instead of JSON: does base_url end before /v1?" {
		t.Error(err)
	}
}

// answers is a transport that gives one text.
type answers string

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(sse("begin", "start 0 "+textBlock, "text 0 Hello", "stop 0", "finish end_turn", "end")))
	f.Add([]byte(sse("begin", `start 0 {"type":"thinking","thinking":"hm","signature":"S"}`, `delta 0 {"type":"signature_delta","signature":"T"}`, `start 1 {"type":"tool_use","id":"a","name":"f","input":{"a":1}}`, "json 1 {}", "finish max_tokens")))
	f.Add([]byte("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\r\r"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := newProvider(t, Options{Transport: answers(text)})
		got, chunks, _ := run(t.Context(), p, ask(user(message.Text("hi"))))
		checkOrder(t, chunks, got.Finish != "")
		if (got.Finish == "") == (got.Failure == "") {
			t.Fatalf("finish %q and failure %q", got.Finish, got.Failure)
		}
	})
}
