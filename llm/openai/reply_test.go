package openai

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
	return o, chunks, f
}

// serve starts a strict server that gives one answer, and a provider for it.
func serve(t *testing.T, o Options, answer http.HandlerFunc) *Provider {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			bad := ""
			if refusal := strict(o.Quirks).Check(body); refusal != nil {
				bad = refusal.Error()
			}
			switch {
			case int64(len(body)) != r.ContentLength:
				bad = "content length"
			case err != nil:
				bad = err.Error()
			case r.URL.Path != "/v1/chat/completions":
				bad = "path " + r.URL.Path
			case r.Header.Get("Content-Type") != "application/json":
				bad = "content type " + r.Header.Get("Content-Type")
			}
			if bad != "" {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":{"message":%q}}`, bad)
				return
			}
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	o.BaseURL = s.URL + "/v1"
	return newProvider(t, o)
}

func sends(media, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if media != "" {
			w.Header().Set("Content-Type", media)
		}
		io.WriteString(w, text)
	}
}

// sse writes events, each in a chunk of the first choice.
func sse(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		switch {
		case strings.HasPrefix(d, "!"): // as it is
			b.WriteString(d[1:])
		case strings.HasPrefix(d, "finish "):
			fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n", d[7:])
		default:
			fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", d)
		}
	}
	return b.String()
}

const done = "!data: [DONE]\n\n"

func piece(index, rest string) string {
	return fmt.Sprintf(`{"tool_calls":[{%s%s}]}`, index, rest)
}

func TestReplies(t *testing.T) {
	piecewise := func(id string) []string {
		out := []string{piece(`"index":0,`, `"id":"`+id+`","function":{"name":"read","arguments":""}`)}
		for _, c := range `{"path":"ä"}` {
			out = append(out, piece(`"index":0,`, fmt.Sprintf(`"function":{"arguments":%q}`, string(c))))
		}
		return append(out, "finish tool_calls", done)
	}
	const hello = "text Hello"
	tests := []struct {
		name  string
		media string
		text  string
		want  outcome
	}{
		{"a plain answer", "", sse(`{"role":"assistant","content":""}`, `{"content":"Hel"}`, `{"content":"lo"}`, "finish stop",
			`!data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Finish: message.Stop, Usage: `{"inputTokens":6,"outputTokens":5,"cacheReadTokens":4,"reasoningTokens":2}`}},
		{"CRLF, comments, event names and ids", "", ": hi\r\n\r\nevent: message\r\nid: 1\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\r\n\r\n: bye\r\n\r\ndata: [DONE]\r\n\r\n",
			outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"CR alone ends lines", "", strings.ReplaceAll(sse(`{"content":"Hel"}`, `{"content":"lo"}`, "finish stop", done), "\n", "\r"),
			outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"no blank lines between events", "", strings.ReplaceAll(sse(`{"content":"Hel"}`, `{"content":"lo"}`, "finish stop", done), "\n\n", "\n"),
			outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"an event over several lines", "", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"Hello\"},\ndata: \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
			outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"no [DONE]", "", sse(`{"content":"Hello"}`, "finish stop"), outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"no newline at the end", "", strings.TrimSpace(sse(`{"content":"Hello"}`, "finish stop")), outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"[DONE] without a finish reason", "", sse(`{"content":"Hello"}`, done), outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"finish twice", "", sse(`{"content":"Hello"}`, "finish length", "finish stop", done), outcome{Blocks: []string{hello}, Finish: message.MaxTokens}},
		{"usage in every chunk, the last one counts", "", sse(`!data: {"choices":[{"delta":{"content":"Hello"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`+"\n\n",
			`!data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_cache_hit_tokens":3}}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Finish: message.Stop, Usage: `{"inputTokens":0,"outputTokens":2,"cacheReadTokens":3}`}},
		{"usage in the choice", "", sse(`{"content":"Hello"}`, `!data: {"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":2}}]}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Finish: message.Stop, Usage: `{"inputTokens":3,"outputTokens":2}`}},
		{"reasoning counted beside the completion, and cache writes", "", sse(`{"content":"Hello"}`, "finish stop", `!data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":1,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":5}}}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Finish: message.Stop, Usage: `{"inputTokens":5,"outputTokens":7,"cacheReadTokens":1,"cacheWriteTokens":3,"reasoningTokens":5}`}},
		{"another choice is passed over", "", sse(`{"content":"Hello"}`, `!data: {"choices":[{"index":1,"delta":{"content":"no"}}]}`+"\n\n", "finish stop", done), outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"reasoning, text and reasoning again are three blocks", "", sse(`{"reasoning_content":"a","reasoning":"a"}`, `{"reasoning":"b"}`, `{"content":"Hello"}`, `{"reasoning_content":"c"}`, "finish stop", done),
			outcome{Blocks: []string{"reasoning ab", hello, "reasoning c"}, Finish: message.Stop}},
		{"content in parts, and a refusal", "", sse(`{"content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]}`, `{"refusal":"!"}`, "finish stop", done), outcome{Blocks: []string{hello + "!"}, Finish: message.Stop}},
		{"half a surrogate pair in each delta", "", sse(`{"content":"a\ud83d"}`, `{"content":"\ude00b\ud83d"}`, "finish stop", done), outcome{Blocks: []string{"text a\U0001f600b\xed\xa0\xbd"}, Finish: message.Stop}},
		{"arguments in pieces of one character", "", sse(piecewise("call_a")...), outcome{Blocks: []string{`call_a read {"path":"ä"}`}, Finish: message.ToolCalls}},
		{"a call without an id gets one", "", sse(piecewise("")...), outcome{Blocks: []string{`call_2_3_1 read {"path":"ä"}`}, Finish: message.ToolCalls}},
		{"an id that comes late", "", sse(piece(`"index":0,`, `"function":{"name":"read"}`), piece(`"index":0,`, `"id":"x","function":{"arguments":"{}"}`), "finish tool_calls", done), outcome{Blocks: []string{"x read {}"}, Finish: message.ToolCalls}},
		{"calls mixed, told apart by index", "", sse(`{"content":"Hello"}`, piece(`"index":0,`, `"id":"a","function":{"name":"f","arguments":"{\"x\""}`), piece(`"index":1,`, `"id":"b","function":{"name":"g","arguments":"{"}`),
			piece(`"index":0,`, `"function":{"arguments":":1}"}`), piece(`"index":1,`, `"function":{"arguments":"}"}`), "finish tool_calls", done),
			outcome{Blocks: []string{hello, `a f {"x":1}`, "b g {}"}, Finish: message.ToolCalls}},
		{"calls all numbered 0", "", sse(piece(`"index":0,`, `"id":"a","function":{"name":"f","arguments":"{}"}`), piece(`"index":0,`, `"id":"b","function":{"name":"g","arguments":"{}"}`), "finish stop", done),
			outcome{Blocks: []string{"a f {}", "b g {}"}, Finish: message.ToolCalls}},
		{"calls without numbers", "", sse(piece("", `"id":"a","function":{"name":"f","arguments":"{"}`), piece("", `"function":{"arguments":"}"}`), piece("", `"id":"b","function":{"name":"g"}`), piece("", `"id":"b","function":{"name":"g","arguments":"{}"}`), "finish tool_calls", done),
			outcome{Blocks: []string{"a f {}", "b g {}"}, Finish: message.ToolCalls}},
		{"two calls of one id", "", sse(piece(`"index":0,`, `"id":"a","function":{"name":"f","arguments":"{}"}`), piece(`"index":1,`, `"id":"a","function":{"name":"g","arguments":"{}"}`), "finish tool_calls", done),
			outcome{Blocks: []string{"a f {}", "call_2_3_2 g {}"}, Finish: message.ToolCalls}},
		{"arguments as an object, and a call with none", "", sse(piece("", `"id":"a","function":{"name":"f","arguments":{"x": 1}}`), piece(`"index":5,`, `"function":{"name":"g"}`), piece(`"index":6`, ``), "finish tool_calls", done),
			outcome{Blocks: []string{`a f {"x":1}`, "call_2_3_2 g "}, Finish: message.ToolCalls}},
		{"calls cut off by the limit are not kept", "", sse(piece(`"index":0,`, `"id":"a","function":{"name":"f","arguments":"{\"x"}`), "finish length", done), outcome{Finish: message.MaxTokens}},
		{"an unknown finish reason", "", sse(`{"content":"Hello"}`, "finish eos", done), outcome{Blocks: []string{hello}, Finish: message.Stop}},
		{"a plain JSON answer", "application/json; charset=utf-8", `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
			outcome{Blocks: []string{hello, "a f {}", "b g {}"}, Finish: message.ToolCalls, Usage: `{"inputTokens":1,"outputTokens":2}`}},
		{"a stream that calls itself text", "text/plain", sse(`{"content":"Hello"}`, "finish stop", done), outcome{Blocks: []string{hello}, Finish: message.Stop}},

		{"DeepSeek's counts of the cache", "", sse(`{"content":"Hello"}`, "finish stop", `!data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":2}}}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Finish: message.Stop, Usage: `{"inputTokens":6,"outputTokens":5,"cacheReadTokens":4,"reasoningTokens":2}`}},
		{"what was written to a cache", "", sse(`{"content":"Hello"}`, "finish stop", `!data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3}}}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Finish: message.Stop, Usage: `{"inputTokens":3,"outputTokens":5,"cacheReadTokens":4,"cacheWriteTokens":3}`}},
		{"reasoning that is counted beside the completion", "", sse(`{"content":"Hello"}`, "finish stop", `!data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}}}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Finish: message.Stop, Usage: `{"inputTokens":10,"outputTokens":12,"reasoningTokens":7}`}},
		{"counts that make no sense", "", sse(`{"content":"Hello"}`, "finish stop", `!data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":-5,"prompt_tokens_details":{"cached_tokens":99},"completion_tokens_details":null}}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Finish: message.Stop, Usage: `{"inputTokens":0,"outputTokens":0,"cacheReadTokens":10}`}},
		{"counts that are no numbers", "", sse(`{"content":"Hello"}`, "finish stop", `!data: {"choices":[],"usage":{"prompt_tokens":NaN}}`+"\n\n", done),
			outcome{Blocks: []string{hello}, Failure: "MALFORMED_RESPONSE: deepseek: sent an event that is not a JSON object"}},
		{"a huge index", "", sse(piece(`"index":9007199254740991,`, `"id":"a","function":{"name":"f","arguments":"{}"}`), "finish tool_calls", done),
			outcome{Blocks: []string{"a f {}"}, Finish: message.ToolCalls}},
		{"deep nesting", "", sse(`{"content":"Hello"}`, `{"x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`), outcome{Blocks: []string{"text Hello"}, Failure: "MALFORMED_RESPONSE: deepseek: sent an event that is not a JSON object"}},
		{"a content filter says what it cost", "", sse(`{"content":"Hel"}`, "finish content_filter", `!data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`+"\n\n", done),
			outcome{Blocks: []string{"text Hel"}, Usage: `{"inputTokens":3,"outputTokens":1}`, Failure: "CONTENT_FILTER: deepseek: the reply was stopped by a content filter"}},

		{"a stream that breaks off", "", sse(`{"content":"Hel"}`), outcome{Blocks: []string{"text Hel"}, Failure: "TRANSPORT: deepseek: the stream ended before the reply was complete"}},
		{"a stream that breaks off inside an event", "", sse(`{"content":"Hel"}`) + `data: {"choi`, outcome{Blocks: []string{"text Hel"}, Failure: "TRANSPORT: deepseek: the stream ended before the reply was complete"}},
		{"an empty stream", "", "", outcome{Failure: "TRANSPORT: deepseek: the stream ended before the reply was complete"}},
		{"a stop without content", "", sse(`{"content":""}`, "finish stop", done), outcome{Failure: "EMPTY_RESPONSE: deepseek: answered with nothing"}},
		{"a content filter", "", sse(`{"content":"Hel"}`, "finish content_filter", done), outcome{Blocks: []string{"text Hel"}, Failure: "CONTENT_FILTER: deepseek: the reply was stopped by a content filter"}},
		{"a server that gives up", "", sse(`{"content":"Hel"}`, "finish insufficient_system_resource", done), outcome{Blocks: []string{"text Hel"}, Failure: "SERVER: deepseek: the server gave up in the middle of the reply (insufficient_system_resource)"}},
		{"an error object in the stream", "", sse(`{"content":"Hel"}`, `!data: {"error":{"message":"Overloaded,\n try later","code":502}}`+"\n\n"), outcome{Blocks: []string{"text Hel"}, Failure: "SERVER: deepseek: server error (502): Overloaded, try later"}},
		{"an error event", "", "event: error\ndata: {\"error\":\"boom\"}\n\n", outcome{Failure: "SERVER: deepseek: an error came in the middle of the reply: boom"}},
		{"a bare error object in the stream", "", `{"object":"error","message":"the prompt is too long: reduce the length","code":400}` + "\n", outcome{Failure: "CONTEXT_WINDOW_EXCEEDED: deepseek: context too long (400): the prompt is too long: reduce the length"}},
		{"a rate limit in the stream", "", `data: {"error":{"message":"slow down","type":"rate_limit_exceeded"}}` + "\n\n", outcome{Failure: "RATE_LIMIT: deepseek: too many requests: slow down"}},
		{"an error as the whole answer", "application/json", `{"error":{"message":"no","type":"invalid_request_error"}}`, outcome{Failure: "INVALID_REQUEST: deepseek: the request was refused: no"}},
		{"an event that is not JSON", "", "data: hello\n\n" + sse(done), outcome{Failure: "MALFORMED_RESPONSE: deepseek: sent an event that is not a JSON object"}},
		{"JSON that is no reply", "application/json", `{"ok":true}`, outcome{Failure: "MALFORMED_RESPONSE: deepseek: answered with JSON that is no reply: does base_url end in /v1?"}},
		{"HTML that calls itself a stream", "text/event-stream", "<!doctype html>\n<p>hi", outcome{Failure: "MALFORMED_RESPONSE: deepseek: answered with something that is no event stream: does base_url end in /v1?"}},
		{"a line without end", "", "data: " + strings.Repeat("x", endpoint.MaxEvent), outcome{Failure: "MALFORMED_RESPONSE: deepseek: sent an event over 16 MiB"}},
		{"an event without end", "", strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17), outcome{Failure: "MALFORMED_RESPONSE: deepseek: sent an event over 16 MiB"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			media := tt.media
			if media == "" {
				media = "text/event-stream"
			}
			got, chunks, _ := run(t.Context(), serve(t, Options{}, sends(media, tt.text)), ask(user(message.Text("hi"))))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("outcome (-want +got):\n%s", d)
			}
			checkOrder(t, chunks, got.Finish != "")
		})
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
	for _, profile := range []llmtest.Profile{llmtest.OpenAI, llmtest.DeepSeek} {
		for _, fault := range llmtest.Faults() {
			t.Run(string(profile)+" "+string(fault), func(t *testing.T) {
				s := httptest.NewServer(llmtest.New(llmtest.Options{
					Rules: llmtest.Rules{Profile: profile},
					Key:   key,
					Replies: func(int, []byte) llmtest.Reply {
						return llmtest.Reply{Text: "Hello", Calls: []llmtest.Call{{ID: "a", Name: "read", Arguments: `{"path":"ä"}`}, {ID: "b", Name: "now", Arguments: `{}`}}, Fault: fault}
					},
					Silence: func(context.Context) { panic(http.ErrAbortHandler) },
				}))
				defer s.Close()
				got, chunks, failure := run(t.Context(), newProvider(t, Options{BaseURL: s.URL + "/v1", Key: key}), ask(user(message.Text("hi"))))
				checkOrder(t, chunks, got.Finish != "")
				if fault.Complete() {
					want := []string{"text Hello", `a read {"path":"ä"}`, "b now {}"}
					if fault == llmtest.NoCallID {
						want[1], want[2] = `call_2_3_1 read {"path":"ä"}`, "call_2_3_2 now {}"
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

func TestReasoningQuirkReadsItsMember(t *testing.T) {
	text := sse(`{"reasoning_content":"a","reasoning":"b"}`, `{"content":"c"}`, "finish stop", done)
	for quirk, want := range map[Reasoning]string{ReasoningNone: "reasoning a", ReasoningContent: "reasoning a", ReasoningPlain: "reasoning b"} {
		got, _, _ := run(t.Context(), serve(t, Options{Quirks: Quirks{Reasoning: quirk}}, sends("text/event-stream", text)), ask(user(message.Text("hi"))))
		if d := cmp.Diff([]string{want, "text c"}, got.Blocks); d != "" {
			t.Errorf("quirk %s: %s", quirk, d)
		}
	}
}

func TestACallOfManyDeltasNamesItselfInEach(t *testing.T) {
	text := sse(piece(`"index":0,`, `"id":"a","function":{"name":"f","arguments":"{"}`), piece(`"index":0,`, `"function":{"arguments":"}"}`), "finish tool_calls", done)
	_, chunks, _ := run(t.Context(), serve(t, Options{}, sends("text/event-stream", text)), ask(user(message.Text("hi"))))
	n := 0
	for _, c := range chunks {
		if c.Type == message.ToolCallDelta {
			n++
			if c.ID != "a" || c.Name != "f" {
				t.Errorf("delta %s", c.AppendJSON(nil))
			}
		}
	}
	if n != 2 {
		t.Errorf("%d deltas, want 2", n)
	}
}

func TestAConsumerMayStopEarly(t *testing.T) {
	p := serve(t, Options{}, sends("text/event-stream", sse(`{"reasoning":"a"}`, `{"content":"b"}`, piece(`"index":0,`, `"id":"a","function":{"name":"f","arguments":"{}"}`), "finish tool_calls",
		`!data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`+"\n\n", done)))
	_, all, _ := run(t.Context(), p, ask(user(message.Text("hi"))))
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

func FuzzStream(f *testing.F) {
	f.Add([]byte(sse(`{"content":"a"}`, piece(`"index":0,`, `"id":"a","function":{"name":"f","arguments":"{}"}`), "finish stop", done)))
	f.Add([]byte("data: {\"error\":{\"code\":429}}\r\n\r\n"))
	f.Add([]byte(": c\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}],\ndata: \"usage\":{\"prompt_tokens\":1}}\n\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := newProvider(t, Options{Transport: answers(func(*http.Request) *http.Response {
			return response(200, "text/event-stream", io.NopCloser(strings.NewReader(string(text))))
		})})
		got, chunks, _ := run(t.Context(), p, ask(user(message.Text("hi"))))
		checkOrder(t, chunks, got.Finish != "")
		if (got.Finish == "") == (got.Failure == "") {
			t.Fatalf("finish %q and failure %q", got.Finish, got.Failure)
		}
	})
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
			p.rest = "data: " + p.event(p.i) + "\n\n"
		case p.i == p.most:
			p.rest = sse("finish stop", done)
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
		event func(i int) string
		want  string
		most  int // events
	}{
		{"text", func(int) string { return `{"choices":[{"delta":{"content":"` + some + `"}}]}` }, "sent a reply over 1 MiB", 20},
		{"reasoning", func(int) string { return `{"choices":[{"delta":{"reasoning_content":"` + some + `"}}]}` }, "sent a reply over 1 MiB", 20},
		{"arguments", func(int) string {
			return `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"` + some + `"}}]}}]}`
		}, "sent a reply over 1 MiB", 20},
		{"small pieces", func(int) string { return `{"choices":[{"delta":{"content":"x"}}]}` }, "sent a reply over 1 MiB", 20_000},
		{"calls", func(i int) string {
			return fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f","arguments":"{}"}}]}}]}`, i, i)
		}, "asked for more than 1000 calls in one reply", 1100},
		{"calls without anything", func(i int) string {
			return fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":%d,"function":{"name":"f"}}]}}]}`, i)
		}, "asked for more than 1000 calls in one reply", 1100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProvider(t, Options{})
			c := p.at.Call(t.Context(), "m")
			defer c.End()
			var failure *message.Failure
			r := &reply{Reply: c.Reply(func(_ message.Chunk, err error) bool {
				if err != nil {
					failure = err.(*message.Failure)
				}
				return true
			})}
			r.Most = 1 << 20
			r.Stream(&pump{event: tt.event, most: tt.most}, r)
			if failure == nil || failure.Code != llm.CodeMalformed || !strings.HasSuffix(failure.Message, tt.want) {
				t.Errorf("got %v", failure)
			}
		})
	}
}
