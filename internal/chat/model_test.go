package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
)

// screenOf is a model without colours that has seen events.
func screenOf(cols, rows int, events ...string) *model {
	m := newModel(false, cols, rows, ownActions())
	m.name = "deepseek:deepseek-chat"
	m.gauge.window = 128_000
	m.cost.price = &llm.Price{Input: 1_000_000, Output: 2_000_000}
	for _, e := range events {
		typ, data, _ := strings.Cut(e, " ")
		m.update(time.UnixMilli(1000), eventMsg{outcrop.Event{Type: outcrop.Type(typ), Data: []byte(data), Time: 1000, Seq: 1}})
	}
	return m
}

const calling = `assistant/message {"message":{"content":[{"type":"tool-call","id":"c1","name":"shell","arguments":"{\"command\":\"go test ./...\"}"},{"type":"tool-call","id":"c2","name":"read","arguments":"{\"path\":\"a.txt\"}"}],"source":{"kind":"model"},"role":"assistant","id":"m"}}`

func TestTheLineWithTheStateShowsWhatHasRoom(t *testing.T) {
	used := `assistant/chunk {"chunk":{"type":"usage","usage":{"inputTokens":12000,"outputTokens":300,"cacheReadTokens":0}}}`
	pending := `agent/inbox/spliced {"target":"next-step","start":0,"inserted":[{"content":[{"type":"text","text":"more"}],"source":{"kind":"user"},"role":"user","id":"p"}]}`
	for _, c := range []struct {
		cols int
		want string
	}{
		{80, "deepseek:deepseek-chat  ⠇ running  12.3k/128k 9%  1 pending  $0.0126"},
		{60, "deepseek-chat  ⠇ running  12.3k/128k 9%  1 pending  $0.0126"},
		{40, "⠇ running  12.3k/128k 9%  1 pending"},
		{24, "⠇ running  1 pending"},
		{8, "$0.0126"},
	} {
		m := screenOf(c.cols, 24, used, pending)
		m.update(time.UnixMilli(1000), busyMsg{true})
		m.update(time.UnixMilli(1000), tickMsg{agent.Status{Phase: agent.Running}})
		if got := m.statusLine(); got != c.want {
			t.Errorf("%d columns: %q, want %q", c.cols, got, c.want)
		}
	}
}

func TestCallsAreFoldedAndComeInTheOrderOfTheModel(t *testing.T) {
	m := screenOf(60, 24, calling, `tool/call {"callId":"c1","name":"shell","arguments":"{}"}`, `tool/call {"callId":"c2","name":"read","arguments":"{}"}`)
	m.update(time.UnixMilli(13_500), tickMsg{})
	if diff := cmp.Diff([]string{"⠇ shell go test ./... 12 s [1]", "⠇ read a.txt 12 s [2]"}, m.callLines()); diff != "" {
		t.Error(diff)
	}
	result := func(id string) any {
		return eventMsg{outcrop.Event{Type: outcrop.TypeToolResult, Time: 3200, Seq: 5,
			Data: []byte(`{"message":{"content":[{"type":"tool-result","toolCallId":"` + id + `","content":[{"type":"text","text":"no such file"}],"isError":` + map[string]string{"c1": "false", "c2": "true"}[id] + `}],"source":{"kind":"tool","callId":"` + id + `"},"role":"user","id":"r"}}`)}}
	}
	m.update(time.UnixMilli(13_500), result("c2"))
	if got := m.drain(); len(got) != 0 {
		t.Errorf("printed before the first call ended: %q", got)
	}
	m.update(time.UnixMilli(13_500), result("c1"))
	if diff := cmp.Diff([]string{"✓ shell go test ./... 2.2 s [1]", "✗ read a.txt  no such file 2.2 s [2]"}, m.drain()); diff != "" {
		t.Error(diff)
	}
}

func TestThinkingAndCallsThatAreWrittenAreOneLineEach(t *testing.T) {
	m := screenOf(60, 24, `assistant/chunk {"chunk":{"type":"reasoning-delta","index":0,"text":"The question is whether the file that was named is there at all"}}`)
	if diff := cmp.Diff([]string{"thinking, 63 characters: that was named is there at all"}, m.tail(5)); diff != "" {
		t.Error(diff)
	}
	m = screenOf(60, 24, `assistant/chunk {"chunk":{"type":"text-delta","index":0,"text":"I write."}}`,
		`assistant/chunk {"chunk":{"type":"tool-call-delta","index":1,"id":"c","name":"write","argumentsDelta":"`+strings.Repeat("x", 5000)+`"}}`)
	if diff := cmp.Diff([]string{"I write.", "writing a call: write, 5000 B"}, m.tail(5)); diff != "" {
		t.Error(diff)
	}
}

func TestTheGaugeCountsWhatCameSince(t *testing.T) {
	m := screenOf(80, 24)
	m.gauge.measure = func() int64 { return 7000 }
	m.gauge.again()
	for _, c := range []struct{ event, want string }{
		{`session/title {}`, "7k/128k 5%"},
		{`assistant/chunk {"chunk":{"type":"usage","usage":{"inputTokens":1000,"outputTokens":20,"cacheReadTokens":4000,"cacheWriteTokens":0}}}`, "5k/128k 3%"},
		{`tool/result {"message":{"content":[{"type":"tool-result","toolCallId":"c","isError":false,"content":[{"type":"text","text":"` + strings.Repeat("x", 8000) + `"}]}],"source":{"kind":"tool"},"role":"user","id":"r"}}`, "7k/128k 5%"},
		{`assistant/chunk {"chunk":{"type":"text-delta","index":0,"text":"` + strings.Repeat("x", 8000) + `"}}`, "9k/128k 7%"},
		{`llm/retry {}`, "7k/128k 5%"},
	} {
		typ, data, _ := strings.Cut(c.event, " ")
		m.gauge.event(outcrop.Event{Type: outcrop.Type(typ), Data: []byte(data)})
		if got := m.gauge.String(); got != c.want {
			t.Errorf("after %.30s: %s, want %s", c.event, got, c.want)
		}
	}
	m.gauge.window = 0
	if got := m.gauge.String(); got != "7k tokens" {
		t.Error(got)
	}
}

func TestCompletionPutsInWhatAllNamesBeginWith(t *testing.T) {
	m := screenOf(60, 24)
	typeIn := func(s string) { m.update(m.now, keyMsg{tty.Key{Name: tty.Paste, Text: s}}) }
	tab := func() []any { return m.update(m.now, keyMsg{tty.Key{Name: tty.Tab}}) }
	typeIn("/cl")
	tab()
	if got := m.edit.Text(); got != "/clear-pending " {
		t.Errorf("%q", got)
	}
	m.edit.Set("/s")
	tab()
	if diff := cmp.Diff([]string{"/show", "/surface"}, m.choices); diff != "" || m.edit.Text() != "/s" {
		t.Error(diff, m.edit.Text())
	}
	m.edit.Set("see @src/ma")
	if diff := cmp.Diff([]any{completeEffect{"@src/ma"}}, tab(), cmp.AllowUnexported(completeEffect{})); diff != "" {
		t.Error(diff)
	}
	m.update(m.now, choiceOf("@src/ma", []string{"@src/main.go", "@src/make/"}))
	if got := m.edit.Text(); got != "see @src/ma" || len(m.choices) != 2 {
		t.Errorf("%q, %q", got, m.choices)
	}
	typeIn("k")
	m.update(m.now, choiceOf("@src/ma", []string{"@src/make/"})) // too late
	if got := m.edit.Text(); got != "see @src/mak" {
		t.Errorf("%q", got)
	}
	m.update(m.now, choiceOf("@src/mak", []string{"@src/make/"}))
	if got := m.edit.Text(); got != "see @src/make/" {
		t.Errorf("%q", got)
	}
}

func TestAPathThatBeginsWithASlashIsAMessage(t *testing.T) {
	m := screenOf(60, 24)
	m.edit.Set("/etc/hosts looks odd")
	effects := m.update(m.now, keyMsg{tty.Key{Name: tty.Enter}})
	if len(effects) != 2 {
		t.Fatalf("%+v", effects)
	}
	if s, ok := effects[1].(sendEffect); !ok || s.text != "/etc/hosts looks odd" || s.steer {
		t.Errorf("%+v", effects[1])
	}
}

// Whatever happens, the live lines fit the screen and the cursor stands in them.
func TestTheLiveLinesFitAnyScreen(t *testing.T) {
	event := rapid.SampledFrom([]string{
		calling, `tool/call {"callId":"c1"}`, `step/end {}`, `turn/end {"turn":1,"reason":{"kind":"completed"}}`,
		`assistant/chunk {"chunk":{"type":"text-delta","index":0,"text":"some words and **more** of them\n\n"}}`,
		`assistant/chunk {"chunk":{"type":"text-delta","index":0,"text":"| a | b |\n"}}`,
		`assistant/chunk {"chunk":{"type":"reasoning-delta","index":0,"text":"hm, 漢字 and so on"}}`,
		`assistant/chunk {"chunk":{"type":"tool-call-delta","index":1,"id":"c","name":"write","argumentsDelta":"{"}}`,
		`agent/inbox/spliced {"target":"next-step","start":0,"inserted":[{"content":[{"type":"text","text":"waiting words"}],"source":{"kind":"user"},"role":"user","id":"p"}]}`,
		`llm/retry {"delayMs":500,"failure":{"message":"busy","code":"SERVER"}}`,
		`approval/asked {"id":"q","callId":"c1"}`,
	})
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := rapid.IntRange(12, 120).Draw(t, "cols"), rapid.IntRange(3, 30).Draw(t, "rows")
		m := screenOf(cols, rows)
		now := time.UnixMilli(1000)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now = now.Add(300 * time.Millisecond)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				m.update(now, keyMsg{tty.Key{Name: tty.Paste, Text: rapid.StringMatching(`[a-z漢 \n]{0,40}`).Draw(t, "paste")}})
			case 1:
				m.update(now, busyMsg{rapid.Bool().Draw(t, "busy")})
			case 2:
				m.update(now, askMsg{&question{Question: agent.Question{ID: "q", Tool: "shell", Arguments: "{}"}, answer: make(chan agent.Answer, 1)}})
			case 3:
				m.update(now, tickMsg{})
			case 4:
				m.update(now, keyMsg{tty.Key{Name: tty.Tab}})
			default:
				typ, data, _ := strings.Cut(event.Draw(t, "event"), " ")
				m.update(now, eventMsg{outcrop.Event{Type: outcrop.Type(typ), Data: []byte(data), Time: now.UnixMilli(), Seq: 1}})
			}
			m.drain()
			f := m.view()
			if len(f.Lines) > max(rows-1, m.inputRows()+1) || f.Row < 0 || f.Row >= len(f.Lines) || f.Col < 0 {
				t.Fatalf("%d lines of %d, cursor %d,%d", len(f.Lines), rows, f.Row, f.Col)
			}
			for _, l := range f.Lines {
				if term.Visible(l) > cols {
					t.Fatalf("%q is wider than %d", l, cols)
				}
			}
		}
	})
}

// inputRows is how many rows the input takes, which come before all else.
func (m *model) inputRows() int {
	lines, _, _ := m.input()
	return len(lines)
}

// A log may hold anything that is JSON: no event makes the screen panic or
// print what is not safe.
func FuzzEvents(f *testing.F) {
	types := []outcrop.Type{outcrop.TypeAssistantChunk, outcrop.TypeInboxSpliced, outcrop.TypeUserMessage, outcrop.TypeAssistantMessage, outcrop.TypeToolCall,
		outcrop.TypeToolResult, outcrop.TypeStepEnd, outcrop.TypeLLMRetry, outcrop.TypeApprovalAsked, outcrop.TypeApprovalDecided, outcrop.TypeOutcropEdit, outcrop.TypeTurnEnd}
	f.Add(uint8(3), strings.TrimPrefix(calling, "assistant/message "), uint8(5), `{"message":{"content":[{"type":"tool-result","toolCallId":"c1","content":[],"isError":true}]}}`)
	f.Add(uint8(1), `{"target":"next-step","start":-5,"removedCount":99,"inserted":[{"role":"user","content":[]}]}`, uint8(11), `{"reason":{"kind":"error","error":{"message":"\u001b[2J"}}}`)
	f.Add(uint8(0), `{"chunk":{"type":"text-delta","text":"\u001b]0;x\u0007"}}`, uint8(2), `{"content":[{"type":"image","attachment":{"name":"\u001b"}}],"source":{"kind":"user"},"role":"user","id":"\u001b"}`)
	f.Fuzz(func(t *testing.T, typ1 uint8, data1 string, typ2 uint8, data2 string) {
		if !json.Valid([]byte(data1)) || !json.Valid([]byte(data2)) {
			return
		}
		m := screenOf(40, 12)
		var all []string
		for range 2 {
			for _, e := range []struct {
				typ  uint8
				data string
			}{{typ1, data1}, {typ2, data2}} {
				m.update(time.UnixMilli(5000), eventMsg{outcrop.Event{Type: types[int(e.typ)%len(types)], Data: []byte(e.data), Seq: 1, Time: 1000}})
				all = append(append(all, m.drain()...), m.view().Lines...)
			}
		}
		for _, l := range all {
			if strings.ContainsAny(l, "\x1b\x07\r\n\u009b") {
				t.Errorf("not safe: %q", l)
			}
		}
	})
}
