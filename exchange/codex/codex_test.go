package codex_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	imagepng "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
)

const (
	thread = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	name   = "rollout-2026-03-01T10-00-00-" + thread + ".jsonl"
)

// rollout numbers lines: line n has a time n seconds after the start, unless it
// has one.
func rollout(lines ...string) string {
	var b strings.Builder
	for n, l := range lines {
		if !strings.HasPrefix(l, `{"timestamp"`) && strings.HasPrefix(l, `"`) {
			l = fmt.Sprintf(`{"timestamp":"2026-03-01T10:00:%02d.000Z",%s}`, n, l)
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func meta(more string) string {
	return `"type":"session_meta","payload":{"id":"` + thread + `","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/home/ada/calc","originator":"codex_cli_rs","cli_version":"0.80.0","source":"cli","model_provider":"openai"` + more + `}`
}

func item(v string) string  { return `"type":"response_item","payload":` + v }
func event(v string) string { return `"type":"event_msg","payload":` + v }

const (
	turnContext = `"type":"turn_context","payload":{"cwd":"/home/ada/calc","approval_policy":"never","model":"gpt-a","effort":"high"}`
	started     = `"type":"event_msg","payload":{"type":"task_started","model_context_window":200000}`
	complete    = `"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"x"}`
)

func user(s string) string {
	return item(fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, s))
}

func says(s string) string {
	return item(fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, s))
}

func call(id string) string {
	return item(fmt.Sprintf(`{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\",\"%s\"]}","call_id":%q}`, id, id))
}

func gives(id string) string {
	return item(fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"out of %s"}`, id, id))
}

func tokens(total, in, cached, out int) string {
	return event(fmt.Sprintf(`{"type":"token_count","info":{"total_token_usage":{"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":2,"total_tokens":%d},"model_context_window":200000},"rate_limits":null}`, total, in, cached, out, in+out))
}

// png is a picture of 2 by 3 pixels.
var png = func() string {
	var b bytes.Buffer
	if err := imagepng.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 3))); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}()

func TestWhatAModelWouldReadIsTheSame(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  string
		notes string // of the report
	}{
		{"a turn with a call", []string{
			meta(""), started, turnContext,
			user("<environment_context>\n<cwd>/home/ada/calc</cwd>\n</environment_context>"),
			user("list"), event(`{"type":"user_message","message":"list"}`),
			item(`{"type":"reasoning","summary":[{"type":"summary_text","text":"I look."}],"content":null,"encrypted_content":"gAAA"}`),
			call("c1"), tokens(10, 8, 3, 2), gives("c1"), tokens(10, 8, 3, 2),
			says("There."), event(`{"type":"agent_message","message":"There."}`), tokens(30, 15, 5, 4), complete,
		}, `outcrop snapshot: "<environment_context>\n<cwd>/home/ada/calc</cwd>\n</environment_context>"
user: "list"
model: thinks("I look.") call c1 shell({"command":["ls","c1"]})
tool: result c1("out of c1")
model: "There."
`, ""},
		{"two calls at once, a prompt that steers, a turn that was cut off", []string{
			meta(""), started, turnContext, user("go"), call("c1"), call("c2"), tokens(1, 1, 0, 1),
			gives("c2"), user("faster"), gives("c1"), says("half"), event(`{"type":"turn_aborted","reason":"interrupted"}`),
			started, user("again"), says("done"), complete,
		}, `user: "go"
model: call c1 shell({"command":["ls","c1"]}) call c2 shell({"command":["ls","c2"]})
tool: result c2("out of c2")
tool: result c1("out of c1")
user: "faster"
model: "half"
user: "again"
model: "done"
`, ""},
		{"kinds of calls and outputs", []string{
			meta(""), started, turnContext, user("all"),
			item(`{"type":"local_shell_call","id":"l0","call_id":"l1","status":"completed","action":{"type":"exec","command":["pwd"]}}`),
			item(`{"type":"custom_tool_call","status":"completed","call_id":"p1","name":"apply_patch","input":"*** Begin\n*** End"}`),
			item(`{"type":"web_search_call","status":"completed","action":{"type":"search","query":"go"}}`),
			item(`{"type":"function_call","name":"view_image","arguments":"{}","call_id":"v1"}`),
			item(`{"type":"function_call_output","call_id":"l1","output":{"content":"no","success":false}}`),
			item(`{"type":"custom_tool_call_output","call_id":"p1","output":"patched"}`),
			item(`{"type":"function_call_output","call_id":"v1","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,` + png + `"}]}`),
			says("ok"), complete,
		}, `user: "all"
model: call l1 local_shell({"type":"exec","command":["pwd"]}) call p1 apply_patch({"input":"*** Begin\n*** End"}) {"type":"web_search_call","status":"completed","action":{"type":"search","query":"go"}} call v1 view_image({})
tool: error l1("no")
tool: result p1("patched")
tool: result v1("see" image(image/png, 74 bytes))
model: "ok"
`, "mapped 1 call of a free-form tool: its text as the argument input (first in line 6)"},
		{"a compaction with the history that it leaves, and one without", []string{
			meta(""), started, turnContext, user("one"), says("1"), complete,
			`"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"SUMMARY"}]},{"type":"compaction","encrypted_content":"x"}]}`,
			event(`{"type":"context_compacted"}`), started, user("two"), says("2"), complete,
			`"type":"compacted","payload":{"message":"SHORT"}`, started, user("three"), says("3"), complete,
		}, `plugin compact: "SHORT"
user: "three"
model: "3"
`, "dropped 1 item compaction that a compaction left: it is encrypted, or no message (first in line 7)"},
		{"turns that were taken back", []string{
			meta(""), started, turnContext, user("one"), says("1"), complete, started, user("two"), says("2"), complete,
			started, user("three"), says("3"), complete, event(`{"type":"thread_rolled_back","num_turns":2}`),
			started, user("four"), says("4"), complete,
		}, `user: "one"
model: "1"
user: "four"
model: "4"
`, ""},
		{"what faults leave", []string{
			meta(""), `not json`, turnContext, user("one"), call("c1"), call(""), call("c1"), gives("c1"), gives("lost"),
			`"type":"new_kind","payload":{"a":1}`, event(`{"type":"new_event"}`), says("end"), `{"timestamp":"2026-03-01T10:00:59.000Z","type":"response_item","payl`,
		}, `user: "one"
model: call c1 shell({"command":["ls","c1"]}) call call-5-1 shell({"command":["ls",""]}) call c1-2 shell({"command":["ls","c1"]})
tool: result c1("out of c1")
tool: error call-5-1("No result of this tool call was recorded in the history that this session was imported from. It may have finished, partly finished, or not happened at all. Check before you repeat it.")
tool: error c1-2("No result of this tool call was recorded in the history that this session was imported from. It may have finished, partly finished, or not happened at all. Check before you repeat it.")
outcrop notice: "The result of tool call \"lost\", which came too late or has no call in this history:" "out of lost"
model: "end"
`, ""},
		{"a line that nests too deeply is named so", []string{
			meta(""), turnContext, user("one"), item(`{"deep":` + strings.Repeat("[", 10_002) + strings.Repeat("]", 10_002) + `}`), says("1"),
			`{"timestamp":"2026-03-01T10:00:59.000Z","type":"response_item","payload":` + strings.Repeat("[", 20_000),
		}, `user: "one"
model: "1"
`, "dropped 2 record: a line whose values are nested more than 10000 deep (first in line 4)"},
		{"the older form, without a frame", []string{
			`{"id":"` + thread + `","timestamp":"2025-08-01T10:00:00.000Z","instructions":"Be good.","git":null}`,
			`{"record_type":"state"}`,
			`{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"hi"}]}`,
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null}`,
			`{"type":"function_call","id":"fc","name":"shell","arguments":"{}","call_id":"c1"}`,
			`{"record_type":"state"}`,
			`{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"x\",\"metadata\":{\"exit_code\":0}}"}`,
			`{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"yes"}]}`,
		}, `user: "hi"
model: thinks("hm") call c1 shell({})
tool: result c1("{\"output\":\"x\",\"metadata\":{\"exit_code\":0}}")
model: "yes"
`, "dropped 2 record state: what the program remembered of itself (first in line 2)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, name, strings.TrimSuffix(rollout(c.lines...), "\n"))
			in := exchangetest.Import(t, codex.Format(), dir)
			all := in.Sessions()
			if len(all) != 1 || all[0].ID != thread {
				t.Fatalf("sessions: %+v, %v", all, in.Reports[0].Err)
			}
			if got := exchangetest.Texts(t, in.Store, thread); got != c.want {
				t.Errorf("got\n%s\nwant\n%s\n%s", got, c.want, exchangetest.Dump(t, in.Store, thread))
			}
			if got := exchangetest.Notes(in.Reports[0]); got != c.notes && c.name != "what faults leave" {
				t.Errorf("report:\n%s\nwant\n%s", got, c.notes)
			}
		})
	}
}

func TestTheSameSessionCompressedIsPresent(t *testing.T) {
	text := rollout(meta(""), started, turnContext, user("one"), says("1"), tokens(9, 7, 3, 2), complete)
	dir := t.TempDir()
	write(t, dir, name, text)
	in := exchangetest.Import(t, codex.Format(), dir)
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, name+".zst", string(enc.EncodeAll([]byte(text), nil)))
	for _, r := range in.Again(t, codex.Format(), dir) {
		if len(r.Sessions) != 1 || r.Sessions[0].Verdict != exchange.Present {
			t.Errorf("%+v %v", r.Sessions, r.Err)
		}
	}
	dump := exchangetest.Dump(t, in.Store, thread)
	if !strings.Contains(dump, `"usage":{"inputTokens":4,"outputTokens":2,"cacheReadTokens":3,"reasoningTokens":2}`) ||
		!strings.Contains(dump, `{"provider":"openai","model":"gpt-a","contextWindow":200000}`) {
		t.Errorf("usage or window is missing:\n%s", dump)
	}
}

func TestTheOldestFormIsOneObject(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rollout-2025-04-20-"+thread+".json", `{"session":{"timestamp":"2025-04-20T10:00:00.000Z","id":"`+thread+`","instructions":"x"},
 "items":[{"role":"user","content":[{"type":"input_text","text":"hi"}],"type":"message"},
 {"id":"m1","type":"message","status":"completed","content":[{"type":"output_text","text":"yes","annotations":[]}],"role":"assistant"}]}`)
	in := exchangetest.Import(t, codex.Format(), dir)
	if got, want := exchangetest.Texts(t, in.Store, thread), "user: \"hi\"\nmodel: \"yes\"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAForkInheritsWhatWasCopied(t *testing.T) {
	const parent = "0199aaaa-0000-7000-8000-000000000000"
	at := func(s string) string { return `{"timestamp":"2026-03-02T09:00:00.100Z",` + s + `}` }
	dir := t.TempDir()
	write(t, dir, name, rollout(
		at(meta(`,"forked_from_id":"`+parent+`"`)),
		at(strings.Replace(meta(""), thread, parent, 1)), at(turnContext), at(user("one")), at(says("1")), at(tokens(9, 7, 3, 2)),
		`{"timestamp":"2026-03-02T09:05:00.000Z",`+started+`}`,
		`{"timestamp":"2026-03-02T09:05:01.000Z",`+user("two")+`}`,
		`{"timestamp":"2026-03-02T09:05:02.000Z",`+says("2")+`}`,
	))
	in := exchangetest.Import(t, codex.Format(), dir)
	s := exchangetest.Session(t, in.Store, thread)
	h := s.Header()
	if h.ParentSession == nil || *h.ParentSession != parent || h.SeedLength == nil {
		t.Fatalf("header %s", h.Line())
	}
	dump := exchangetest.Dump(t, in.Store, thread)
	lines := strings.Split(dump, "\n")
	if !strings.Contains(lines[*h.SeedLength], "assistant/message") || !strings.Contains(dump, "session/end-seed") {
		t.Errorf("the seed of %d events ends elsewhere:\n%s", *h.SeedLength, dump)
	}
}
