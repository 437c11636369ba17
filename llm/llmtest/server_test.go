package llmtest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/anthropic"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/llm/openai"
	"github.com/outcrop-dev/outcrop/message"
)

// served starts a server for one test.
func served(t *testing.T, o llmtest.Options) (*llmtest.Server, string) {
	t.Helper()
	s := llmtest.New(o)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

// post sends a body and returns status and answer.
func post(t *testing.T, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp, readAll(t, resp.Body)
}

func TestARefusalIsAnErrorOfTheDialectAndIsRemembered(t *testing.T) {
	s, url := served(t, llmtest.Options{})
	resp, text := post(t, url+"/chat/completions", chat(user, reply))
	want := `{"error":{"code":"invalid_request_error","message":"rule 1: messages[1]: the last message cannot be the assistant's","param":null,"type":"invalid_request_error"}}` + "\n"
	if resp.StatusCode != 400 || text != want {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if f := s.Refused(); f == nil || f.Rule != 1 {
		t.Errorf("remembered %v", f)
	}
	s, url = served(t, llmtest.Options{Rules: llmtest.Rules{Profile: llmtest.Anthropic, Window: 1}})
	resp, text = post(t, url+"/v1/messages", claude(user))
	want = `{"error":{"message":"rule 11: prompt is too long: 9 tokens and max_tokens 100 exceed the context limit of 1","type":"invalid_request_error"},"type":"error"}` + "\n"
	if resp.StatusCode != 400 || text != want {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	ex := s.Exchanges()
	if len(ex) != 1 || ex[0].Status != 400 || string(ex[0].Body) != claude(user) {
		t.Errorf("%+v", ex)
	}
}

func TestTheSessionOfARequestStandsInItsHeader(t *testing.T) {
	s, url := served(t, llmtest.Options{})
	other := chat(`{"role":"user","content":"Other."}`)
	for _, c := range []struct {
		session, body string
		status        int
	}{{"a", chat(user), 200}, {"b", other, 200}, {"a", other, 400}, {"", other, 200}, {"a", chat(user, reply, user), 200}} {
		if resp, text := post(t, url+"/chat/completions", c.body, llmtest.SessionHeader, c.session); resp.StatusCode != c.status {
			t.Errorf("session %q: %d %s", c.session, resp.StatusCode, text)
		}
	}
	s.Announce("a", "a rewind")
	if resp, text := post(t, url+"/chat/completions", other, llmtest.SessionHeader, "a"); resp.StatusCode != 200 {
		t.Errorf("announced: %d %s", resp.StatusCode, text)
	}
}

func TestWhatIsNotServedSaysSo(t *testing.T) {
	_, url := served(t, llmtest.Options{Key: "k1", Model: "small"})
	for _, c := range []struct {
		method, path, key string
		status            int
		contains          string
	}{
		{"GET", "/models", "Bearer k1", 200, `"id":"small"`},
		{"GET", "/models", "Bearer k2", 401, "authentication_error"},
		{"GET", "/chat/completions", "Bearer k1", 404, "not served"},
		{"POST", "/messages", "Bearer k1", 404, "not served"},
	} {
		req, err := http.NewRequest(c.method, url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", c.key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text := readAll(t, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(text, c.contains) {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, text)
		}
	}
	_, url = served(t, llmtest.Options{Rules: llmtest.Rules{Profile: llmtest.Anthropic}, Key: "k1"})
	if resp, _ := post(t, url+"/v1/messages", claude(user), "X-Api-Key", "k1"); resp.StatusCode != 200 {
		t.Errorf("with the key: %d", resp.StatusCode)
	}
	if resp, _ := post(t, url+"/v1/messages", claude(user)); resp.StatusCode != 401 {
		t.Errorf("without the key: %d", resp.StatusCode)
	}
}

func TestAnUnknownProfileIsAMistakeInTheTest(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	llmtest.New(llmtest.Options{Rules: llmtest.Rules{Profile: "gpt"}})
}

var full = llmtest.Reply{
	Reasoning: "Let me see.", Text: "Looking at it: \u00e4\U0001f600.",
	Calls: []llmtest.Call{{ID: "a", Name: "look", Arguments: `{"path":"\u00e4.txt"}`}, {Name: "edit", Arguments: `{}`}, {Name: "list"}},
	Usage: &llmtest.Usage{Input: 100, CacheRead: 50, Output: 20, Reasoning: 5},
}

// The clients read every odd stream as the reply that was meant, and every
// failure as what it is.
func TestEveryFaultIsServed(t *testing.T) {
	for _, fault := range append(llmtest.Faults(), "") {
		t.Run("openai "+string(fault), func(t *testing.T) {
			faultIsServed(t, llmtest.OpenAI, fault, func(url string) (llm.Provider, error) {
				return openai.New(openai.Options{Name: "mock", BaseURL: url})
			})
		})
		t.Run("anthropic "+string(fault), func(t *testing.T) {
			faultIsServed(t, llmtest.Anthropic, fault, func(url string) (llm.Provider, error) {
				return anthropic.New(anthropic.Options{Name: "mock", BaseURL: url})
			})
		})
	}
}

func faultIsServed(t *testing.T, profile llmtest.Profile, fault llmtest.Fault, client func(url string) (llm.Provider, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rep := full
	rep.Fault = fault
	s, url := served(t, llmtest.Options{
		Rules:   llmtest.Rules{Profile: profile},
		Replies: func(int, []byte) llmtest.Reply { return rep },
		Silence: func(ctx context.Context) { cancel(); <-ctx.Done() },
	})
	p, err := client(url)
	if err != nil {
		t.Fatal(err)
	}
	var asm message.Assembler
	var got *message.Failure
	for c, err := range p.Stream(ctx, request()) {
		if err != nil && !errors.As(err, &got) {
			t.Fatal(err)
		}
		asm.Add(c)
	}
	if s.Refused() != nil {
		t.Fatal(s.Refused())
	}
	want := map[llmtest.Fault]string{
		llmtest.Unauthorized: message.CodeAuth, llmtest.Forbidden: message.CodeAuth, llmtest.NoModel: message.CodeModelNotFound,
		llmtest.RequestTimeout: message.CodeTimeout, llmtest.TooLarge: message.CodeContextWindow,
		llmtest.RateLimited: message.CodeRateLimit, llmtest.RateLimitedAfter: message.CodeRateLimit,
		llmtest.ServerError: message.CodeServer, llmtest.Unavailable: message.CodeServer, llmtest.HTML: llm.CodeMalformed,
		llmtest.Truncated: message.CodeTransport, llmtest.Silence: message.CodeAborted,
	}[fault]
	if (want == "") != fault.Complete() {
		t.Errorf("Complete is %v", fault.Complete())
	}
	if want != "" {
		if got == nil || got.Code != want {
			t.Errorf("failure %+v, want %s", got, want)
		} else if fault == llmtest.RateLimitedAfter && got.RetryAfterMs != 2000 || fault == llmtest.RateLimited && got.RetryAfterMs != 0 {
			t.Errorf("retry after %d ms", got.RetryAfterMs)
		}
		return
	}
	if got != nil {
		t.Fatalf("failure %+v", got)
	}
	none := "" // what no arguments at all are
	if profile == llmtest.Anthropic {
		none = "{}"
	}
	wantBlocks := []message.Block{
		message.Reasoning(full.Reasoning), message.Text(full.Text),
		message.ToolCall("a", "look", full.Calls[0].Arguments), message.ToolCall("call_0_1", "edit", `{}`), message.ToolCall("call_0_2", "list", none),
	}
	if blocks := asm.Blocks(); fault == llmtest.NoCallID && len(blocks) == len(wantBlocks) {
		seen := map[string]bool{"": true}
		for i := range wantBlocks[2:] {
			if id := blocks[2+i].ID; !seen[id] { // any id will do that is one
				seen[id], wantBlocks[2+i].ID = true, id
			}
		}
	}
	if diff := cmp.Diff(wantBlocks, asm.Blocks()); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	u := asm.Usage()
	if u == nil || u.InputTokens != 100 || u.OutputTokens != 20 || u.CacheReadTokens == nil || *u.CacheReadTokens != 50 {
		t.Errorf("usage %+v", u)
	}
	if asm.Finish().Kind != message.ToolCalls {
		t.Errorf("finish %+v", asm.Finish())
	}
	if profile == llmtest.Anthropic && !strings.Contains(string(asm.ReplayState()), llmtest.Sign(full.Reasoning)) {
		t.Errorf("the signature is lost: %s", asm.ReplayState())
	}
}

func request() llm.Request {
	return llm.Request{
		Config:   llm.Config{Provider: "mock", Model: "mock-1"},
		Messages: []message.Message{{ID: "m", Role: message.User, Content: []message.Block{message.Text("Hi.")}, Source: message.FromUser}},
		Turn:     1, Step: 1, Attempt: 1,
	}
}

// The whole stream of each dialect, as it goes over the line.
func TestStreamsAreThoseOfTheDialect(t *testing.T) {
	small := llmtest.Reply{Reasoning: "Hm.", Text: "Hi.", Calls: []llmtest.Call{{Name: "look", Arguments: `{"x":1}`}, {ID: "b", Name: "edit", Arguments: `{}`}}}
	chunk := func(delta, finish string) string {
		return `data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1700000000,"model":"mock-1","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n"
	}
	usage := `data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1700000000,"model":"mock-1","choices":[],` +
		`"usage":{"prompt_tokens":9,"completion_tokens":6,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n\n"
	ev := func(name, rest string) string {
		return "event: " + name + "\ndata: {\"type\":\"" + name + "\"," + rest + "}\n\n"
	}
	begin := chunk(`{"role":"assistant","content":""}`, "null") + chunk(`{"reasoning_content":"Hm."}`, "null") + chunk(`{"content":"Hi."}`, "null")
	calls := chunk(`{"tool_calls":[{"index":0,"id":"call_0_0","type":"function","function":{"name":"look","arguments":""}}]}`, "null") +
		chunk(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"edit","arguments":""}}]}`, "null")
	args := chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}`, "null") + chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`, "null")
	finish := chunk(`{}`, `"tool_calls"`)
	done := "data: [DONE]\n\n"
	start := ev("message_start", `"message":{"id":"msg_0","type":"message","role":"assistant","model":"mock-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}`)
	blocks := ev("content_block_start", `"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`) +
		ev("content_block_delta", `"index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}`) +
		ev("content_block_delta", `"index":0,"delta":{"type":"signature_delta","signature":"`+llmtest.Sign("Hm.")+`"}`) +
		ev("content_block_stop", `"index":0`) +
		ev("content_block_start", `"index":1,"content_block":{"type":"text","text":""}`) +
		ev("content_block_delta", `"index":1,"delta":{"type":"text_delta","text":"Hi."}`) +
		ev("content_block_stop", `"index":1`)
	look := ev("content_block_start", `"index":2,"content_block":{"type":"tool_use","id":"call_0_0","name":"look","input":{}}`)
	lookArgs := ev("content_block_delta", `"index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}`)
	edit := ev("content_block_start", `"index":3,"content_block":{"type":"tool_use","id":"b","name":"edit","input":{}}`)
	editArgs := ev("content_block_delta", `"index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}`)
	stop2, stop3 := ev("content_block_stop", `"index":2`), ev("content_block_stop", `"index":3`)
	end := ev("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":6}`)
	messageStop := "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	ping := ": keep-alive\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"
	commented := func(s string) string {
		return ": keep-alive\n\n" + strings.ReplaceAll(strings.TrimSuffix(s, "\n\n"), "\n\n", "\n\n: keep-alive\n\n") + "\n\n"
	}
	for _, c := range []struct {
		profile llmtest.Profile
		fault   llmtest.Fault
		want    string
	}{
		{llmtest.OpenAI, "", begin + calls + args + finish + usage + done},
		{llmtest.DeepSeek, llmtest.NoDone, begin + calls + args + finish + usage},
		{llmtest.OpenAI, llmtest.FinishTwice, begin + calls + args + finish + finish + usage + done},
		{llmtest.OpenAI, llmtest.UsageOnly, begin + usage + calls + args + finish + usage + done},
		{llmtest.OpenAI, llmtest.CRLF, strings.ReplaceAll(begin+calls+args+finish+usage+done, "\n", "\r\n")},
		{llmtest.OpenAI, llmtest.Comments, commented(begin + calls + args + finish + usage + done)},
		{llmtest.OpenAI, llmtest.NoCallID, begin + strings.NewReplacer(`"id":"call_0_0",`, "", `"id":"b",`, "").Replace(calls) + args + finish + usage + done},
		{llmtest.Anthropic, "", start + blocks + look + lookArgs + stop2 + edit + editArgs + stop3 + end + messageStop},
		{llmtest.Anthropic, llmtest.NoDone, start + blocks + look + lookArgs + stop2 + edit + editArgs + stop3 + end},
		{llmtest.Anthropic, llmtest.FinishTwice, start + blocks + look + lookArgs + stop2 + edit + editArgs + stop3 + end + end + messageStop},
		{llmtest.Anthropic, llmtest.UsageOnly, start + blocks + ev("message_delta", `"delta":{},"usage":{"output_tokens":6}`) + look + lookArgs + stop2 + edit + editArgs + stop3 + end + messageStop},
		{llmtest.Anthropic, llmtest.IndexOnly, start + blocks + look + edit + lookArgs + editArgs + stop2 + stop3 + end + messageStop},
		{llmtest.Anthropic, llmtest.NoCallID, start + blocks + strings.Replace(look, "call_0_0", "", 1) + lookArgs + stop2 + strings.Replace(edit, `"id":"b"`, `"id":""`, 1) + editArgs + stop3 + end + messageStop},
		{llmtest.Anthropic, llmtest.Comments, commented(start) + ping + commented(blocks) + ping + commented(look+lookArgs+stop2+edit+editArgs+stop3+end+messageStop)},
	} {
		t.Run(string(c.profile)+" "+string(c.fault), func(t *testing.T) {
			rep := small
			rep.Fault = c.fault
			_, url := served(t, llmtest.Options{Rules: llmtest.Rules{Profile: c.profile}, Replies: func(int, []byte) llmtest.Reply { return rep }})
			path, body := "/chat/completions", chat(user)
			if c.profile == llmtest.Anthropic {
				path, body = "/messages", claude(user)
			}
			_, got := post(t, url+path, body)
			if diff := cmp.Diff(strings.SplitAfter(c.want, "\n"), strings.SplitAfter(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStreamGoesOnWhenSilenceIsOver(t *testing.T) {
	quiet := 0
	_, url := served(t, llmtest.Options{
		Replies: func(int, []byte) llmtest.Reply { return llmtest.Reply{Text: "Hello.", Fault: llmtest.Silence} },
		Silence: func(context.Context) { quiet++ },
	})
	if _, text := post(t, url+"/chat/completions", chat(user)); quiet != 1 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("%d pauses, %s", quiet, text)
	}
}
