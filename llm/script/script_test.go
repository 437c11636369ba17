package script

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

func noSleep(context.Context, time.Duration) {}

func request(turn, step int, texts ...string) llm.Request {
	req := llm.Request{Config: llm.Config{Provider: Provider, Model: "m"}, Purpose: llm.Turn, Turn: turn, Step: step, Attempt: 1}
	for _, t := range texts {
		req.Messages = append(req.Messages, message.Message{Role: message.User, Content: []message.Block{message.Text(t)}})
	}
	return req
}

func mustParse(t *testing.T, lines ...string) *Model {
	t.Helper()
	s, err := Parse("dir/demo.jsonl", []byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return &Model{Script: s, Sleep: noSleep}
}

// play returns the chunks as JSON, and the failure.
func play(ctx context.Context, m *Model, req llm.Request) (chunks []string, f *message.Failure) {
	for c, err := range m.Stream(ctx, req) {
		if err != nil {
			if !errors.As(err, &f) {
				f = &message.Failure{Code: "NOT_A_FAILURE", Message: err.Error()}
			}
			continue
		}
		chunks = append(chunks, string(c.AppendJSON(nil)))
	}
	return chunks, f
}

// answer returns the text of a reply, or its failure as CODE: message.
func answer(t *testing.T, m *Model, req llm.Request) string {
	t.Helper()
	var a message.Assembler
	for c, err := range m.Stream(t.Context(), req) {
		if err != nil {
			f := err.(*message.Failure)
			return f.Code + ": " + f.Message
		}
		a.Add(c)
	}
	return message.PlainText(a.Blocks())
}

func TestChunksOfAReply(t *testing.T) {
	const stop = `{"type":"finish","reason":{"kind":"stop"}}`
	const usage = `{"type":"usage","usage":{"inputTokens":9,"outputTokens":1}}`
	const u = `,"usage":{"input":9,"output":1}}`
	tests := []struct {
		name string
		line string
		want []string
		code string
	}{
		{"blocks come in the order reasoning, text, tools, a piece a delta", `{"text":"abcd","reasoning":"日本語!","tools":[{"name":"read","args":{"p":1}}]` + u, []string{
			`{"type":"block-start","index":0,"blockType":"reasoning"}`,
			`{"type":"reasoning-delta","index":0,"text":"日本語"}`,
			`{"type":"reasoning-delta","index":0,"text":"!"}`,
			`{"type":"block-end","index":0,"block":{"type":"reasoning","text":"日本語!"}}`,
			`{"type":"block-start","index":1,"blockType":"text"}`,
			`{"type":"text-delta","index":1,"text":"abc"}`,
			`{"type":"text-delta","index":1,"text":"d"}`,
			`{"type":"block-end","index":1,"block":{"type":"text","text":"abcd"}}`,
			`{"type":"block-start","index":2,"blockType":"tool-call"}`,
			`{"type":"tool-call-delta","index":2,"id":"call_3_2_1","name":"read","argumentsDelta":"{\"p"}`,
			`{"type":"tool-call-delta","index":2,"id":"call_3_2_1","name":"read","argumentsDelta":"\":1"}`,
			`{"type":"tool-call-delta","index":2,"id":"call_3_2_1","name":"read","argumentsDelta":"}"}`,
			`{"type":"block-end","index":2,"block":{"type":"tool-call","id":"call_3_2_1","name":"read","arguments":"{\"p\":1}"}}`,
			usage, `{"type":"finish","reason":{"kind":"tool-calls"}}`}, ""},
		{"a call of its own id and empty arguments", `{"tools":[{"id":"x","name":"a","raw":""}],"finish":"stop"` + u, []string{
			`{"type":"block-start","index":0,"blockType":"tool-call"}`,
			`{"type":"tool-call-delta","index":0,"id":"x","name":"a","argumentsDelta":""}`,
			`{"type":"block-end","index":0,"block":{"type":"tool-call","id":"x","name":"a","arguments":""}}`,
			usage, stop}, ""},
		{"blocks in their own order", `{"blocks":[{"type":"text","text":"a"},{"type":"reasoning","text":"b"}],"finish":"max-tokens"` + u, []string{
			`{"type":"block-start","index":0,"blockType":"text"}`, `{"type":"text-delta","index":0,"text":"a"}`, `{"type":"block-end","index":0,"block":{"type":"text","text":"a"}}`,
			`{"type":"block-start","index":1,"blockType":"reasoning"}`, `{"type":"reasoning-delta","index":1,"text":"b"}`, `{"type":"block-end","index":1,"block":{"type":"reasoning","text":"b"}}`,
			usage, `{"type":"finish","reason":{"kind":"max-tokens"}}`}, ""},
		{"an empty reply is usage and finish", `{"text":""` + u, []string{usage, stop}, ""},
		{"half a surrogate pair is one piece", `{"text":"ab\ud83dc"` + u, []string{
			`{"type":"block-start","index":0,"blockType":"text"}`, `{"type":"text-delta","index":0,"text":"ab\ud83d"}`, `{"type":"text-delta","index":0,"text":"c"}`,
			`{"type":"block-end","index":0,"block":{"type":"text","text":"ab\ud83dc"}}`, usage, stop}, ""},
		{"chunks are played as they are", `{"chunks":[{"type":"text-delta","index":4,"text":"a"},{"type":"usage","usage":{"inputTokens":1,"outputTokens":2}}]}`, []string{
			`{"type":"text-delta","index":4,"text":"a"}`, `{"type":"usage","usage":{"inputTokens":1,"outputTokens":2}}`}, ""},
		{"no chunks are a stream without any", `{"chunks":[]}`, nil, ""},
		{"a failure in chunks is an error", `{"chunks":[{"type":"text-delta","index":0,"text":"a"},{"type":"finish","reason":{"kind":"error","failure":{"message":"m","code":"SERVER","status":500}}}]}`,
			[]string{`{"type":"text-delta","index":0,"text":"a"}`}, "SERVER"},
		{"a cancelled reply in chunks is an error", `{"chunks":[{"type":"finish","reason":{"kind":"aborted"}}]}`, nil, "ABORTED"},
		{"an error comes before everything", `{"text":"abcd","error":{"code":"RATE_LIMIT","message":"m"}}`, nil, "RATE_LIMIT"},
		{"an error comes after the deltas", `{"text":"abcdef","error":{"code":"RATE_LIMIT"},"after":2}`, []string{
			`{"type":"block-start","index":0,"blockType":"text"}`, `{"type":"text-delta","index":0,"text":"abc"}`, `{"type":"text-delta","index":0,"text":"def"}`}, "RATE_LIMIT"},
		{"an error comes at the end when there are fewer deltas", `{"text":"a","error":{"code":"X"},"after":9}`, []string{
			`{"type":"block-start","index":0,"blockType":"text"}`, `{"type":"text-delta","index":0,"text":"a"}`, `{"type":"block-end","index":0,"block":{"type":"text","text":"a"}}`}, "X"},
		{"an end of the stream is a transport error without a finish", `{"text":"abcd","cut":"eof","after":1}`, []string{
			`{"type":"block-start","index":0,"blockType":"text"}`, `{"type":"text-delta","index":0,"text":"abc"}`}, "TRANSPORT"},
		{"a reset is a transport error", `{"cut":"reset"}`, nil, "TRANSPORT"},
		{"chunks can be cut too", `{"chunks":[{"type":"text-delta","index":0,"text":"a"},{"type":"text-delta","index":0,"text":"b"}],"cut":"eof","after":1}`,
			[]string{`{"type":"text-delta","index":0,"text":"a"}`}, "TRANSPORT"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mustParse(t, `{"script":1,"piece":3}`, tt.line)
			got, f := play(t.Context(), m, request(3, 2, "x"))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("chunks (-want +got):\n%s", d)
			}
			code := ""
			if f != nil {
				code = f.Code
			}
			if code != tt.code {
				t.Errorf("failure %v, want code %q", f, tt.code)
			}
		})
	}
}

func TestAnErrorCarriesWhatTheScriptSays(t *testing.T) {
	m := mustParse(t, `{"error":{"code":"RATE_LIMIT","message":"slow down","status":429,"retryAfterMs":50}}`)
	_, f := play(t.Context(), m, request(1, 1, "x"))
	if d := cmp.Diff(&message.Failure{Code: "RATE_LIMIT", Message: "slow down", Status: 429, RetryAfterMs: 50}, f); d != "" {
		t.Error(d)
	}
}

func TestChoice(t *testing.T) {
	call := func(turn, step, attempt int, purpose llm.Purpose, text string) llm.Request {
		r := request(turn, step, text)
		r.Attempt, r.Purpose = attempt, purpose
		return r
	}
	tests := []struct {
		name  string
		lines []string
		calls []llm.Request
		want  []string
	}{
		{"replies come in order, each once", []string{`{"text":"a"}`, `{"text":"b"}`},
			[]llm.Request{request(1, 1, "x"), request(1, 2, "x"), request(2, 1, "x")},
			[]string{"a", "b", "SCRIPT_END: demo.jsonl: no reply for turn 2 step 1 (purpose turn); 2 of 2 used"}},
		{"a reply with a turn or step goes before those without", []string{`{"text":"a"}`, `{"when":{"step":2},"text":"s2"}`, `{"when":{"turn":1},"text":"t1"}`},
			[]llm.Request{request(1, 1, "x"), request(1, 2, "x"), request(2, 1, "x")},
			[]string{"t1", "s2", "a"}},
		{"a purpose has its own replies", []string{`{"text":"a"}`, `{"when":{"purpose":"compaction"},"text":"c"}`, `{"when":{"purpose":"title"},"text":"t"}`},
			[]llm.Request{call(1, 1, 1, llm.Title, "x"), call(0, 0, 1, llm.Compaction, "x"), call(1, 1, 1, "", "x"), call(2, 1, 1, llm.Compaction, "x")},
			[]string{"t", "c", "a", "SCRIPT_END: demo.jsonl: no reply for turn 2 step 1 (purpose compaction); 3 of 3 used"}},
		{"an attempt is a condition, but no place", []string{`{"text":"a"}`, `{"when":{"attempt":2},"text":"second"}`, `{"text":"b"}`},
			[]llm.Request{call(1, 1, 1, llm.Turn, "x"), call(1, 1, 2, llm.Turn, "x"), call(1, 2, 1, llm.Turn, "x")},
			[]string{"a", "second", "b"}},
		{"contains looks at the last message", []string{`{"when":{"contains":"blue"},"text":"is blue"}`, `{"text":"other"}`},
			[]llm.Request{request(1, 1, "blue", "red"), request(1, 2, "red", "so blue")},
			[]string{"other", "is blue"}},
		{"unused replies that do not fit are not used", []string{`{"when":{"turn":9},"text":"a"}`, `{"text":"b"}`},
			[]llm.Request{request(1, 1, "x"), request(1, 2, "x")},
			[]string{"b", "SCRIPT_END: demo.jsonl: no reply for turn 1 step 2 (purpose turn); 1 of 2 used"}},
		{"the end can repeat the last reply of the purpose", []string{`{"script":1,"end":"last"}`, `{"text":"a"}`, `{"when":{"purpose":"title"},"text":"t"}`, `{"text":"b"}`},
			[]llm.Request{request(1, 1, "x"), request(1, 2, "x"), call(1, 1, 1, llm.Title, "x"), request(1, 3, "x"), call(1, 1, 1, llm.Title, "x"), call(1, 1, 1, llm.Compaction, "x")},
			[]string{"a", "b", "t", "b", "t", "SCRIPT_END: demo.jsonl: no reply for turn 1 step 1 (purpose compaction); 3 of 3 used"}},
		{"the end can be a stop", []string{`{"script":1,"end":"stop"}`, `{"text":"a"}`},
			[]llm.Request{request(1, 1, "x"), request(2, 1, "x"), request(3, 1, "x")},
			[]string{"a", "(end of script)", "(end of script)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mustParse(t, tt.lines...)
			var got []string
			for _, req := range tt.calls {
				got = append(got, answer(t, m, req))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("answers (-want +got):\n%s", d)
			}
		})
	}
}

func TestExpect(t *testing.T) {
	tool := llm.Tool{Name: "read"}
	other := llm.Tool{Name: "list"}
	result := message.Message{Role: message.User, Content: []message.Block{message.ToolResult("c", false, message.Text("alpha"))}}
	reply := message.Message{Role: message.Assistant, Content: []message.Block{message.ToolCall("c", "read", `{"path":"beta"}`)}}
	req := request(1, 2, "first")
	req.Messages = append(req.Messages, reply, result)
	req.Tools = []llm.Tool{other, tool}
	req.System = "be brief"
	bare := request(1, 2, "first")
	tests := []struct {
		name   string
		expect string
		req    llm.Request
		want   string // of the miss
	}{
		{"text in a result", `{"contains":"alpha"}`, req, ""},
		{"text in arguments", `{"contains":"beta"}`, req, ""},
		{"text in the system prompt", `{"contains":"brief"}`, req, ""},
		{"text that is missing", `{"contains":"gamma"}`, req, `the request does not contain "gamma"`},
		{"text that must not be there", `{"absent":"first"}`, req, `the request contains "first"`},
		{"text that is absent", `{"absent":"gamma"}`, req, ""},
		{"a tool among others", `{"tools":["read"]}`, req, ""},
		{"a tool that is not offered", `{"tools":["read","write"]}`, req, `the request does not offer the tool "write" (offered: list read)`},
		{"no tools", `{"tools":[]}`, bare, ""},
		{"no tools where there are some", `{"tools":[]}`, req, "the request offers tools: list read"},
		{"a tool where there are none", `{"tools":["read"]}`, bare, `the request does not offer the tool "read" (offered: none)`},
		{"the number of messages", `{"messages":3}`, req, ""},
		{"another number of messages", `{"messages":7}`, req, "the request has 3 messages, not 7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mustParse(t, "# one", `{"text":"ok","expect":`+tt.expect+`}`)
			want := "ok"
			if tt.want != "" {
				want = "SCRIPT_EXPECT: SCRIPT_EXPECT demo.jsonl:2: " + tt.want
			}
			if got := answer(t, m, tt.req); got != want {
				t.Errorf("answer %q, want %q", got, want)
			}
		})
	}
}

func TestRequestsAreCheckedBeforeAReplyIsUsed(t *testing.T) {
	m := mustParse(t, `{"script":1,"window":1000}`, `{"text":"ok"}`)
	bad := request(1, 1, "x")
	bad.Messages[0].Content[0].Text = ""
	if got := answer(t, m, bad); !strings.HasPrefix(got, "INVALID_REQUEST: request refused: messages[0]") {
		t.Errorf("a blank prompt: %s", got)
	}
	if got := answer(t, m, request(1, 1, strings.Repeat("a", 4000))); got != "CONTEXT_WINDOW_EXCEEDED: script: context too long (1,008 of 1,000)" {
		t.Errorf("a long prompt: %s", got)
	}
	if got := answer(t, m, request(1, 1, strings.Repeat("a", 3968))); got != "ok" {
		t.Errorf("a prompt that just fits: %s", got)
	}
}

func TestUsageIsTheEstimate(t *testing.T) {
	usage := func(m *Model, req llm.Request) message.Usage {
		var a message.Assembler
		for c, err := range m.Stream(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			a.Add(c)
		}
		return *a.Usage()
	}
	n := func(v int64) *int64 { return &v }
	m := mustParse(t, `{"reasoning":"1234","text":"12345678"}`, `{"text":"1"}`, `{"text":"1"}`, `{"text":"1"}`)
	first := request(1, 1, "1234", "12345678")
	first.System = "1234"
	first.Tools = []llm.Tool{{Name: "a"}}
	header := llm.EstimateHeader(first.System, first.Tools)
	grown := first
	grown.Messages = append(request(1, 1, "1234", "12345678").Messages, request(1, 1, "1").Messages...)
	edited := grown
	edited.Messages = request(1, 1, "1234", "x", "1").Messages
	moved := edited
	moved.System = "another"
	steps := []struct {
		name string
		req  llm.Request
		want message.Usage
	}{
		{"nothing is cached at first", first, message.Usage{InputTokens: header + 9 + 10, OutputTokens: 5 + 6, CacheReadTokens: n(0), ReasoningTokens: n(5)}},
		{"what the request before had is read from the cache", grown, message.Usage{InputTokens: header + 9, OutputTokens: 5, CacheReadTokens: n(19)}},
		{"only up to the first difference", edited, message.Usage{InputTokens: header + 9 + 9, OutputTokens: 5, CacheReadTokens: n(9)}},
		{"and nothing under another system prompt", moved, message.Usage{InputTokens: llm.EstimateRequest(moved), OutputTokens: 5, CacheReadTokens: n(0)}},
	}
	for _, s := range steps {
		if d := cmp.Diff(s.want, usage(m, s.req)); d != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, d)
		}
	}
}

func TestResumeGoesOnWithTheReplyThatIsDue(t *testing.T) {
	text, err := os.ReadFile("testdata/hello.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name     string
		attempts []Attempt
		next     llm.Request
		want     string
	}{
		{"nothing was done", nil, request(1, 1, "x"), "Reading it."},
		{"a step was done", []Attempt{{Turn: 1, Step: 1, Attempt: 1, Purpose: llm.Turn}}, request(1, 2, "alpha"), "The file says alpha."},
		{"a failed attempt used its reply",
			[]Attempt{{1, 1, 1, "", ""}, {1, 2, 1, llm.Turn, CodeExpect}, {2, 1, 1, llm.Turn, "SERVER"}},
			func() llm.Request { r := request(2, 1, "x"); r.Attempt = 2; return r }(), "Done."},
		{"a refused attempt used none", []Attempt{{1, 1, 1, llm.Turn, message.CodeContextWindow}, {0, 0, 1, llm.Compaction, ""}},
			request(1, 1, "x"), "Reading it."},
		{"an attempt beyond the end used none", []Attempt{{0, 0, 1, llm.Title, CodeEnd}}, request(1, 1, "x"), "Reading it."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse("hello.jsonl", text)
			if err != nil {
				t.Fatal(err)
			}
			m := &Model{Script: s}
			m.Resume(tt.attempts)
			if got := answer(t, m, tt.next); got != tt.want {
				t.Errorf("answer %q, want %q", got, tt.want)
			}
		})
	}
}

func TestResumeCountsAScriptedRefusalOfTheSameCode(t *testing.T) {
	lines := []string{`{"error":{"code":"CONTEXT_WINDOW_EXCEEDED"}}`, `{"text":"b"}`}
	m := mustParse(t, lines...)
	m.Resume([]Attempt{{1, 1, 1, llm.Turn, message.CodeContextWindow}})
	if got := answer(t, m, request(1, 1, "x")); got != "b" {
		t.Errorf("answer %q, want b", got)
	}
	m = mustParse(t, `{"when":{"contains":"never"},"text":"a"}`, `{"text":"b"}`)
	m.Resume([]Attempt{{1, 1, 1, llm.Turn, ""}})
	if got := answer(t, m, request(1, 1, "x")); got != "b" {
		t.Errorf("contains counts as found: answer %q, want b", got)
	}
}

// A run that stops after any call and goes on in another process plays the
// same replies as one that does not stop.
func TestResumeAgreesWithARunInOnePiece(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Script
		for range rapid.IntRange(0, 8).Draw(t, "replies") {
			r := Reply{Text: rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "text")}
			r.When.Turn = rapid.IntRange(0, 2).Draw(t, "turn")
			r.When.Step = rapid.IntRange(0, 2).Draw(t, "step")
			r.When.Attempt = rapid.IntRange(0, 2).Draw(t, "attempt")
			r.When.Purpose = rapid.SampledFrom([]llm.Purpose{"", llm.Turn, llm.Compaction}).Draw(t, "purpose")
			if rapid.Bool().Draw(t, "fails") {
				r.Error = &message.Failure{Code: rapid.SampledFrom([]string{"SERVER", message.CodeContextWindow}).Draw(t, "code")}
			}
			s.Replies = append(s.Replies, r)
		}
		whole := &Model{Script: &s}
		var log []Attempt
		for range rapid.IntRange(0, 10).Draw(t, "calls") {
			req := request(rapid.IntRange(1, 2).Draw(t, "turn"), rapid.IntRange(1, 2).Draw(t, "step"), "x")
			req.Attempt = rapid.IntRange(1, 2).Draw(t, "attempt")
			req.Purpose = rapid.SampledFrom([]llm.Purpose{llm.Turn, llm.Compaction}).Draw(t, "purpose")
			resumed := &Model{Script: &s}
			resumed.Resume(log)
			want, failure := play(context.Background(), whole, req)
			got, failure2 := play(context.Background(), resumed, req)
			if !cmp.Equal(failure, failure2) || len(want) != len(got) {
				t.Fatalf("after %v: resumed %v %v, in one piece %v %v", log, got, failure2, want, failure)
			}
			a := Attempt{Turn: req.Turn, Step: req.Step, Attempt: req.Attempt, Purpose: req.Purpose}
			if failure != nil {
				a.Code = failure.Code
			}
			log = append(log, a)
		}
	})
}

func TestDelayAndHangWaitByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mustParse(t, `{"script":1,"delayMs":60000}`, `{"text":"a"}`, `{"text":"abc","cut":"hang","after":1}`)
		m.Sleep = nil
		start := time.Now()
		if got := answer(t, m, request(1, 1, "x")); got != "a" || time.Since(start) != time.Minute {
			t.Errorf("answer %q after %v, want a after a minute", got, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		chunks, f := play(ctx, m, request(1, 2, "x"))
		if len(chunks) != 2 || f == nil || f.Code != message.CodeAborted || time.Since(start) != time.Hour+time.Minute {
			t.Errorf("%d chunks, failure %v after %v", len(chunks), f, time.Since(start))
		}
	})
}

func TestACancelledCallIsAborted(t *testing.T) {
	for name, line := range map[string]string{
		"before the first chunk": `{"text":"a"}`,
		"before an error":        `{"error":{"code":"SERVER"}}`,
		"with no chunks":         `{"chunks":[]}`,
		"while it hangs":         `{"cut":"hang"}`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if chunks, f := play(ctx, mustParse(t, line), request(1, 1, "x")); len(chunks) != 0 || f == nil || f.Code != message.CodeAborted {
				t.Errorf("chunks %v, failure %v", chunks, f)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := mustParse(t, `{"text":"a long text of many deltas"}`)
	var last error
	n := 0
	for _, err := range m.Stream(ctx, request(1, 1, "x")) {
		last = err
		if n++; n == 2 {
			cancel()
		}
	}
	var f *message.Failure
	if !errors.As(last, &f) || f.Code != message.CodeAborted || n != 3 {
		t.Errorf("ended after %d with %v", n, last)
	}
}

func TestAConsumerMayStopEarly(t *testing.T) {
	m := mustParse(t, `{"reasoning":"abc","text":"a long text of many deltas","tools":[{"name":"a"}]}`, `{"text":"b"}`)
	total := 0
	for range m.Stream(t.Context(), request(1, 1, "x")) {
		total++
	}
	for stop := 1; stop <= total; stop++ {
		m := mustParse(t, `{"reasoning":"abc","text":"a long text of many deltas","tools":[{"name":"a"}]}`)
		n := 0
		for range m.Stream(t.Context(), request(1, 1, "x")) {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("stopped after %d, want %d", n, stop)
		}
	}
}

func TestAFunctionAnswers(t *testing.T) {
	m := &Model{Reply: func(req llm.Request) Reply {
		return Reply{Text: "step of " + message.PlainText(req.Messages[0].Content), Expect: Expect{Absent: "bad"}}
	}}
	if got := answer(t, m, request(1, 1, strings.Repeat("long ", 100_000))); !strings.HasPrefix(got, "step of long") {
		t.Errorf("answer %.40q", got)
	}
	if got := answer(t, m, request(1, 1, "bad")); got != `SCRIPT_EXPECT: SCRIPT_EXPECT reply: the request contains "bad"` {
		t.Errorf("answer %q", got)
	}
	m.Resume([]Attempt{{1, 1, 1, llm.Turn, ""}})
	if got := answer(t, &Model{}, request(1, 1, "x")); got != "SCRIPT_END: script: no script was given" {
		t.Errorf("answer %q", got)
	}
}
