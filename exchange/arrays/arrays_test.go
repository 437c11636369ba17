package arrays_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/arrays"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
)

type object = map[string]any

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// file writes a file and gives its path.
func file(t exchangetest.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	return path
}

// all is a dialect's format that claims every file, as when a person says so.
func all(d arrays.Dialect) exchange.Format {
	f := d.Format()
	f.Claims = func(string, []byte) bool { return true }
	return f
}

// texts imports a file and gives its conversations and what the report says.
func texts(t *testing.T, d arrays.Dialect, name, text string) (string, string) {
	t.Helper()
	in := exchangetest.Import(t, all(d), file(t, t.TempDir(), name, text))
	var b, rep strings.Builder
	for _, o := range in.Sessions() {
		fmt.Fprintf(&b, "%s\n", exchangetest.Texts(t, in.Store, o.ID))
	}
	for _, r := range in.Reports {
		if r.Err != nil {
			fmt.Fprintf(&rep, "%v\n", r.Err)
		}
		for _, e := range r.Sorted() {
			fmt.Fprintf(&rep, "%s\n", e)
		}
	}
	return b.String(), rep.String()
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const openAIList = `[
	{"role":"system","content":"You are a bot."},
	{"role":"developer","content":[{"type":"text","text":"Be short."}]},
	{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},
		{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,aGVsbG8="}},{"type":"input_audio","input_audio":{"format":"wav","data":"aGVsbG8="}},{"type":"hologram","x":1}]},
	{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},{"id":"c2","type":"function","function":{"name":"bash","arguments":"{\"cmd\":"}},{"id":"c3","type":"custom","custom":{"name":"patch","input":"*** Begin"}}],
		"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":3}}},
	{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"no"}]},
	{"role":"tool","tool_call_id":"c1","content":"body"},
	{"role":"tool","tool_call_id":"c9","content":"late"},
	{"role":"system","content":"Now be long."},
	{"role":"user","content":"go on"},
	{"role":"assistant","content":"Well","refusal":"I will not","finish_reason":"length"},
	{"role":"user","content":"old style"},
	{"role":"assistant","content":"","function_call":{"name":"sum","arguments":"{}"}},
	{"role":"function","name":"sum","content":"42"},
	{"role":"assistant","content":[{"type":"text","text":"It is 42."},{"type":"refusal","refusal":"no more"}]},
	{"role":"critic","content":"?"},
	7
]`

const openAIText = `user: "What is this?" image(image/png, 70 bytes) "[image, https://example.com/a.png]" file(application/pdf, 5 bytes) file(audio/wav, 5 bytes) {"type":"hologram","x":1}
model: thinks("hm") call c1 read({"path":"a"}) call c2 bash({"input":"{\"cmd\":"}) call c3 patch({"input":"*** Begin"})
tool: result c2("no")
tool: result c1("body")
tool: error c3("No result of this tool call was recorded in the history that this session was imported from. It may have finished, partly finished, or not happened at all. Check before you repeat it.")
outcrop notice: "The result of tool call \"c9\", which came too late or has no call in this history:" "late"
outcrop notice: "Now be long."
user: "go on"
model: "Well" "I will not"
user: "old style"
model: call function-1 sum({})
tool: result function-1("42")
model: "It is 42." "no more"

`

const anthropicBody = `{"model":"claude-x","title":"A talk","created_at":"2026-03-01T10:00:00Z","system":[{"type":"text","text":"You are a bot.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Be short."}],
	"tools":[{"name":"read","description":"reads","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}},{"type":"web_search_20250305","name":"web_search"}],
	"messages":[
	{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}},{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]},
	{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"eHh4"},{"type":"text","text":"Reading."},{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"t2","name":"read","input":[1]}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"body"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}]},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"no"},{"type":"text","text":"and hurry"}]},
	{"role":"assistant","content":"Done."},
	{"role":"user","content":{"odd":true}},
	{"role":"assistant","content":[]}
	]}`

const anthropicText = `user: "What is this?" image(image/png, 70 bytes) "[image, https://example.com/a.png]"
model: thinks("hm") thinks("") "Reading." call t1 read({"path":"a"}) call t2 read({"input":"[1]"})
tool: result t1("body" image(image/png, 70 bytes))
tool: error t2("no")
user: "and hurry"
model: "Done."
user: "{\"odd\":true}"

`

func TestAListOfOpenAIBecomesASession(t *testing.T) {
	got, report := texts(t, arrays.OpenAI, "a.json", openAIList)
	if d := cmp.Diff(openAIText, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, want := range []string{"dropped 1 message of role \"critic\"", "dropped 1 message: it is no object", "mapped 2 arguments that are no object", "mapped 1 call without a result",
		"mapped 1 result without a call", "mapped 1 system message inside the conversation: a context message", "mapped 2 refusal", "kept 1 image", "kept 2 file"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

func TestABodyOfAnthropicBecomesASession(t *testing.T) {
	in := exchangetest.Import(t, arrays.Anthropic.Format(), file(t, t.TempDir(), "a.json", anthropicBody))
	id := in.Sessions()[0].ID
	if d := cmp.Diff(anthropicText, exchangetest.Texts(t, in.Store, id)+"\n"); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	dump := exchangetest.Dump(t, in.Store, id)
	for _, want := range []string{`"provider":"anthropic","model":"claude-x"`, `You are a bot.\n\nBe short.`, `"replayState":{"anthropic":1,"blocks":[{"signature":"c2ln"},{"redacted":"eHh4"},null,null,null]}`,
		`"name":"read","description":"reads"`, `"title":"A talk"`, `"createdAt":1772359200000`, "turn/end {\"turn\":1,\"reason\":{\"kind\":\"completed\"}}"} {
		if !strings.Contains(dump, want) {
			t.Errorf("the log lacks %s:\n%s", want, dump)
		}
	}
}

// TestEveryFileOfAConversationIsTheSame: as a list, a body, a line of a list, a
// line of a body, a line a message.
// A message that nests too deeply does not take the others with it.
func TestAMessageThatNestsTooDeeplyIsLeftOut(t *testing.T) {
	nest := func(n int) string { return strings.Repeat(`[{"a":`, n/2) + `"]}\""` + strings.Repeat("}]", n/2) }
	deep := `{"role":"assistant","content":` + nest(10_002) + `,"messages":[1,{}]}`
	few := `{"role":"user","content":"one"},{"role":"assistant","content":"1"}`
	want := "user: \"one\"\nmodel: \"1\"\n\n"
	const why = "its values are nested more than 10000 deep"
	for _, c := range []struct{ name, text, want, report string }{
		{"a.json", `[{"role":"user","content":"one"},` + deep + `,{"role":"assistant","content":"1"}, ` + deep + `]`, want, "dropped 2 message: " + why + "\n"},
		{"a.json", `{"messages":[` + deep + `,` + few + `],"tools":[],"x":"messages"}`, want, "dropped 1 message: " + why + "\n"},
		{"a.json", `{"metadata":` + nest(10_002) + `,"x":{"messages":[1,2]},"messages":[` + few + `,` + deep + `]}`, want,
			"dropped 1 member beside the messages: " + why + "\n" + "dropped 1 message: " + why + "\n"},
		{"a.jsonl", "[" + few + "," + deep + "]\n" + deep + "\n", want, "dropped 1 line: " + why + " (first in line 2)\n" + "dropped 1 message: " + why + " (first in line 1)\n"},
		{"a.json", deep, "", why},
		{"a.json", `[` + few + `,` + deep[:31_000], "", why},
		{"a.json", `[` + few + `,` + deep + `,{]`, "", why},
		// Within bounds, however deep, it is taken.
		{"a.json", `[` + few + `,{"role":"user","content":` + nest(9_990) + `},` + deep + `]`, "user: \"one\"\nmodel: \"1\"\nuser: ", "dropped 1 message: " + why + "\n"},
	} {
		got, report := texts(t, arrays.OpenAI, c.name, c.text)
		if c.want == want && got != want || !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%.60s gives\n%.200s\n%.400s", c.text, got, report)
		}
		if !strings.Contains(report, c.report) {
			t.Errorf("%.60s: the report has\n%.400s", c.text, report)
		}
	}
}

func TestEveryFileOfAConversationIsTheSame(t *testing.T) {
	list := []any{
		object{"role": "user", "content": "one"}, object{"role": "assistant", "content": "1"}, object{"role": "user", "content": "two"}, object{"role": "assistant", "content": "2"},
	}
	lines := ""
	for _, m := range list {
		lines += encode(m) + "\n"
	}
	want := "user: \"one\"\nmodel: \"1\"\nuser: \"two\"\nmodel: \"2\"\n\n"
	for _, d := range []arrays.Dialect{arrays.OpenAI, arrays.Anthropic} {
		for name, text := range map[string]string{
			"list.json": encode(list), "body.json": encode(object{"messages": list, "temperature": 1}), "bom.json": "\ufeff" + encode(list),
			"list.jsonl": encode(list) + "\n\n", "body.ndjson": encode(object{"messages": list}) + "\r\n", "messages.jsonl": lines,
		} {
			if got, report := texts(t, d, name, text); got != want {
				t.Errorf("%s %s:\n%s%s", d, name, got, report)
			}
		}
	}
}

func TestLinesAreSessionsAndAGrowingOneIsOne(t *testing.T) {
	u := func(s string) object { return object{"role": "user", "content": s} }
	a := func(s string) object { return object{"role": "assistant", "content": s} }
	cached := object{"role": "user", "content": []object{{"type": "text", "text": "one", "cache_control": object{"type": "ephemeral"}}}}
	bare := object{"role": "user", "content": []object{{"type": "text", "text": "one"}}}
	text := encode(object{"messages": []any{u("first")}}) + "\n" +
		"not json\n" +
		encode(object{"messages": []any{cached}}) + "\n" +
		encode(object{"messages": []any{bare, a("1"), u("two")}}) + "\n" +
		encode(object{"messages": []any{bare, a("1"), u("two"), a("2")}}) + "\n" +
		encode(object{"messages": []any{bare, a("other")}}) + "\n" +
		`{"level":"info"}` + "\n" +
		encode(object{"messages": []any{u("torn")}})[:20]
	got, report := texts(t, arrays.OpenAI, "a.jsonl", text)
	want := "user: \"first\"\n\nuser: \"one\"\nmodel: \"1\"\nuser: \"two\"\nmodel: \"2\"\n\nuser: \"one\"\nmodel: \"other\"\n\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	for _, want := range []string{"mapped 2 request: the later one that begins with its messages (first in line 3)", "dropped 1 line: it is no JSON (first in line 2)",
		"dropped 1 line: it is torn: the file ends in it (first in line 8)", "dropped 1 line: it is no message, and no list of them (first in line 7)"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

// Requests of two conversations come mixed, as they were made: each conversation is
// one session, and the second import finds every state of it there.
func TestStatesOfAConversationThatAreNotNeighboursAreOneSession(t *testing.T) {
	one := func(n int) string {
		list := []any{}
		for i := range n {
			list = append(list, object{"role": "user", "content": fmt.Sprint("ask ", i)}, object{"role": "assistant", "content": fmt.Sprint("say ", i)})
		}
		return encode(object{"id": "one", "messages": list})
	}
	other := encode(object{"id": "other", "messages": []any{object{"role": "user", "content": "else"}}})
	for _, lines := range [][]string{{one(1), other, one(2), other, one(3)}, {one(0), other, one(2)}} {
		in := exchangetest.Import(t, all(arrays.OpenAI), file(t, t.TempDir(), "a.jsonl", strings.Join(lines, "\n")+"\n"))
		ids := map[string]bool{}
		for _, o := range in.Sessions() {
			if ids[o.ID] = true; o.Verdict == exchange.Copied {
				t.Errorf("%+v", o)
			}
		}
		if len(ids) != 2 {
			t.Errorf("%d sessions", len(ids))
		}
		// So does the import of a file that holds an earlier state alone.
		for _, r := range in.Again(t, all(arrays.OpenAI), file(t, t.TempDir(), "b.jsonl", lines[0]+"\n")) {
			if len(r.Sessions) != 1 || r.Sessions[0].Verdict != exchange.Present {
				t.Errorf("%+v", r.Sessions)
			}
		}
	}
}

func TestAListThatHasGrownIsGoneOnWith(t *testing.T) {
	dir := t.TempDir()
	list := []any{object{"role": "user", "content": "one"}, object{"role": "assistant", "content": "1"}}
	path := file(t, dir, "a.json", encode(list))
	in := exchangetest.Import(t, arrays.OpenAI.Format(), path)
	id := in.Sessions()[0].ID
	file(t, dir, "a.json", encode(append(list, object{"role": "user", "content": "two"}, object{"role": "assistant", "content": "2"})))
	r := in.Again(t, arrays.OpenAI.Format(), path)
	if s := r[0].Sessions; len(s) != 1 || s[0].Verdict != exchange.Continued || s[0].ID != id {
		t.Errorf("%+v", s)
	}
	exchangetest.Check(t, in.Store, id)
	file(t, dir, "a.json", encode([]any{list[0], object{"role": "assistant", "content": "something else"}}))
	r = in.Again(t, arrays.OpenAI.Format(), path)
	if s := r[0].Sessions; len(s) != 1 || s[0].Verdict != exchange.Copied || s[0].ID == id {
		t.Errorf("%+v", s)
	}
}

func TestFilesAreToldApart(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       arrays.Dialect
	}{
		{"a.json", openAIList, arrays.OpenAI}, {"a.json", anthropicBody, arrays.Anthropic},
		{"a.json", `[{"role":"user","content":"x"}]`, arrays.OpenAI}, {"a.jsonl", `{"role":"user","content":"x"}`, arrays.OpenAI},
		{"a.jsonl", `{"messages":[{"content":"x","role":"user"}]}`, arrays.OpenAI}, {"a.json", `{"system":"s","messages":[{"role":"user","content":"x"}]}`, arrays.Anthropic},
		{"a.json", `[{"role":"user","content":[{"type" : "tool_result"}]}]`, arrays.Anthropic}, {"a.json", ` [ {"role":"user","content":"the word \"tool_use\" alone`, arrays.OpenAI},
		{"a.json", `{"role":"user","content":"x"}`, ""}, {"a.txt", `[{"role":"user","content":"x"}]`, ""}, {"a.json", `[{"name":"role"}]`, ""},
		{"a.json", `{"messages":["role"]}`, ""}, {"a.json", `{"messages":[{"id":1}],"role":"x"}`, ""}, {"a.json", `{"scripts":{"role":"x"}}`, ""},
		{"a.jsonl", `{"type":"user","message":{"role":"user","content":"x"},"uuid":"1"}`, ""}, {"a.jsonl", `{"role":"user","content":"x","uuid":"1"}`, ""}, {"a.json", "", ""}, {"a.json", "[", ""},
	} {
		for _, d := range []arrays.Dialect{arrays.OpenAI, arrays.Anthropic} {
			if got := d.Format().Claims(filepath.Join("dir", c.name), []byte(c.text)); got != (d == c.want) {
				t.Errorf("%s %q: claimed by %s: %v", c.name, c.text, d, got)
			}
		}
	}
}

func TestAFileThatIsNoListIsNamed(t *testing.T) {
	for name, text := range map[string]string{"a.json": `{"a":1}`, "b.json": `[{"role":`, "c.json": `[1,2]`, "d.json": ""} {
		path := file(t, t.TempDir(), name, text)
		for src, err := range exchange.Find(context.Background(), []exchange.Format{arrays.OpenAI.Format()}, path, "openai") {
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range src.Sessions(context.Background(), nil) {
				if n++; err == nil || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v", text, err)
				}
			}
			if n != 1 {
				t.Errorf("%s: %d sessions", text, n)
			}
		}
	}
}

func TestAnyListBecomesAValidSession(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := rapid.SampledFrom([]arrays.Dialect{arrays.OpenAI, arrays.Anthropic}).Draw(r, "dialect")
		var lines []string
		for range rapid.IntRange(1, 3).Draw(r, "sessions") {
			var list []any
			for range rapid.IntRange(0, 9).Draw(r, "messages") {
				list = append(list, anyMessage(r, d))
			}
			b := object{"messages": list, "model": "m"}
			if rapid.Bool().Draw(r, "system") {
				b["system"] = rapid.SampledFrom([]any{"s", []object{{"type": "text", "text": "s"}}, 7}).Draw(r, "prompt")
			}
			if rapid.Bool().Draw(r, "id") {
				b["id"] = rapid.SampledFrom([]any{"x", "", 7}).Draw(r, "name")
			}
			lines = append(lines, encode(b))
		}
		name, text := "a.jsonl", strings.Join(lines, "\n")
		if rapid.Bool().Draw(r, "one") {
			name, text = "a.json", lines[0]
		}
		if rapid.IntRange(0, 4).Draw(r, "torn") == 0 {
			text = text[:rapid.IntRange(0, len(text)).Draw(r, "at")]
		}
		path := file(r, t.TempDir(), name, text)
		exchangetest.Import(r, all(d), path)
	})
}

func anyMessage(r *rapid.T, d arrays.Dialect) any {
	if rapid.IntRange(0, 30).Draw(r, "odd") == 0 {
		return rapid.SampledFrom([]any{nil, 7, "text", []any{}}).Draw(r, "value")
	}
	m := object{"role": rapid.SampledFrom([]string{"user", "assistant", "assistant", "tool", "function", "system", "developer", "critic", ""}).Draw(r, "role")}
	str := rapid.SampledFrom([]string{"", "text", "\u2028 \x00 näher", " ", "{}"})
	id := rapid.SampledFrom([]string{"", "c1", "c2"})
	block := func() any {
		switch rapid.IntRange(0, 9).Draw(r, "block") {
		case 0:
			return object{"type": "tool_use", "id": id.Draw(r, "id"), "name": rapid.SampledFrom([]string{"", "read"}).Draw(r, "name"), "input": rapid.SampledFrom([]any{object{"a": 1}, nil, "x", 7}).Draw(r, "input")}
		case 1:
			return object{"type": "tool_result", "tool_use_id": id.Draw(r, "id"), "content": rapid.SampledFrom([]any{"x", nil, []any{}, 7, []object{{"type": "text", "text": "y"}}}).Draw(r, "content")}
		case 2:
			return object{"type": "thinking", "thinking": str.Draw(r, "thought"), "signature": "c2ln"}
		case 3:
			return object{"type": "image_url", "image_url": object{"url": rapid.SampledFrom([]string{"data:image/png;base64," + pixel, "data:,", "https://x"}).Draw(r, "url")}}
		case 4:
			return rapid.SampledFrom([]any{nil, 7, "text", object{}, object{"type": "?"}, object{"type": "tool-call"}}).Draw(r, "any")
		}
		return object{"type": "text", "text": str.Draw(r, "text")}
	}
	switch rapid.IntRange(0, 6).Draw(r, "content") {
	case 0:
	case 1:
		m["content"] = rapid.SampledFrom([]any{nil, 7, object{"a": 1}, true}).Draw(r, "odd content")
	case 2, 3, 4:
		var blocks []any
		for range rapid.IntRange(0, 4).Draw(r, "blocks") {
			blocks = append(blocks, block())
		}
		m["content"] = blocks
	default:
		m["content"] = str.Draw(r, "said")
	}
	if d == arrays.OpenAI {
		if rapid.IntRange(0, 2).Draw(r, "calls") == 0 {
			m["tool_calls"] = []any{object{"id": id.Draw(r, "id"), "function": object{"name": "read", "arguments": rapid.SampledFrom([]any{"{}", "{", "", object{"a": 1}, nil, 7}).Draw(r, "arguments")}}, 7}
		}
		if rapid.IntRange(0, 9).Draw(r, "function") == 0 {
			m["function_call"] = object{"name": "sum", "arguments": "{}"}
		}
		m["tool_call_id"], m["name"] = id.Draw(r, "answers"), "sum"
	}
	return m
}

// FuzzList gives both readers any bytes: they never panic, and what they make is
// a valid session.
func FuzzList(f *testing.F) {
	f.Add([]byte(openAIList), true, false)
	f.Add([]byte(anthropicBody), false, false)
	f.Add([]byte(`{"role":"user","content":"x"}`+"\n"+`{"messages":[{"role":"user","content":"y"}]}`+"\n{"), true, true)
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"q","n":-0},{"type":"q","n":1e999},"\ud83d"]}],"tools":[{"name":"t","input_schema":{"n":-0}}]}`), false, true)
	f.Fuzz(func(t *testing.T, b []byte, openAI, lines bool) {
		d := arrays.Anthropic
		if openAI {
			d = arrays.OpenAI
		}
		read := d.List
		if lines {
			read = d.Lines
		}
		o := exchange.Options{Objects: exchange.Measure}
		for s, err := range read(t.Context(), strings.NewReader(string(b)), nil) {
			if err != nil {
				return
			}
			h, err := s.Header(t.Context(), o)
			if err != nil {
				continue // a member of the body is out of contract
			}
			if _, err := outcrop.Restore(h, s.Records(t.Context(), h, o), outcrop.Options{}); err != nil {
				t.Fatalf("%v\n%s", err, b)
			}
		}
	})
}

func ExampleDialect_List() {
	text := `{"id":"example","model":"m","messages":[{"role":"user","content":"What is 2+2?"},{"role":"assistant","content":"4"}]}`
	ctx := context.Background()
	for s, err := range arrays.OpenAI.List(ctx, strings.NewReader(text), nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		h, err := s.Header(ctx, exchange.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for r, err := range s.Records(ctx, h, exchange.Options{}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(r.Seq, r.Type)
		}
	}
	// Output:
	// 0 turn/start
	// 1 step/start
	// 2 user/message
	// 3 request/header
	// 4 request/context
	// 5 assistant/message
	// 6 step/end
	// 7 turn/end
	// 8 outcrop/import
}

func ExampleDialect_Lines() {
	text := `{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi."}]}
{"messages":[{"role":"user","content":"Bye"},{"role":"assistant","content":"Bye."}]}
`
	var r exchange.Report
	for s, err := range arrays.Anthropic.Lines(context.Background(), strings.NewReader(text), &r) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Program, len(s.ID()))
	}
	// Output:
	// anthropic 37
	// anthropic 37
}
