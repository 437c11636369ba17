package brief_test

import (
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
)

func TestAnEventIsOneSafeLine(t *testing.T) {
	for _, c := range []struct {
		name string
		typ  outcrop.Type
		data string
		want string
	}{
		{"a prompt", outcrop.TypeUserMessage, `{"content":[{"type":"text","text":"one\ntwo\u001b"}],"source":{"kind":"user"}}`, `user one two\e`},
		{"what the program adds", outcrop.TypeUserMessage, `{"content":[{"type":"text","text":"x"}],"source":{"kind":"outcrop"}}`, "context x"},
		{"a summary", outcrop.TypeUserMessage, `{"content":[{"type":"text","text":"x"}],"source":{"kind":"y","compactionId":"c"}}`, "checkpoint x"},
		{"a call in a reply", outcrop.TypeAssistantMessage, `{"message":{"content":[{"type":"tool-call","name":"read","arguments":"{\"path\":\"a.txt\"}"}]}}`, "assistant [read a.txt]"},
		{"an empty reply", outcrop.TypeAssistantMessage, `{"message":{"content":[]}}`, "assistant (empty)"},
		{"a failed result", outcrop.TypeToolResult, `{"message":{"content":[{"type":"tool-result","isError":true,"content":[{"type":"text","text":"no"}]}]}}`, "result (error) no"},
		{"a block of a later version", outcrop.TypeUserMessage, `{"content":[{"type":"video"}]}`, "user [video]"},
		{"a call", outcrop.TypeToolCall, `{"name":"shell","arguments":"{\"command\":\"ls\",\"timeout\":1}"}`, `shell {"command":"ls","timeout":1}`},
		{"the end of a turn that failed", outcrop.TypeTurnEnd, `{"turn":2,"reason":{"kind":"error","error":{"message":"too\tlong"}}}`, "turn 2 error: too long"},
		{"the end of a turn that was stopped", outcrop.TypeTurnEnd, `{"turn":2,"reason":{"kind":"aborted","reason":{"kind":"user"}}}`, "turn 2 aborted: user"},
		{"a piece of a reply", outcrop.TypeAssistantChunk, `{"chunk":{"type":"text-delta","text":"a"}}`, `text-delta "a"`},
		{"the end of a reply", outcrop.TypeAssistantChunk, `{"chunk":{"type":"finish","reason":{"kind":"stop"}}}`, "finish stop"},
		{"a request header", outcrop.TypeRequestHeader, `{"reason":"initial","header":{"config":{"provider":"p","model":"m"}}}`, "initial p:m"},
		{"an unknown type", "x/y", "{\"a\":\"\u202e\"}", `{"a":"\u{202e}"}`},
		{"no data at all", outcrop.TypeTurnEnd, ``, "turn  "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := brief.Event(outcrop.Event{Type: c.typ, Data: []byte(c.data)}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestACallIsItsPathOrCommand(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a.txt","content":"x"}`: "a.txt",
		`{"command":"ls\n-l"}`:           "ls -l",
		`{"n":1}`:                        `{"n":1}`,
		`{"path":`:                       `{"path":`,
	} {
		if got := brief.Call(args); got != want {
			t.Errorf("%s gives %q, want %q", args, got, want)
		}
	}
	for args, want := range map[string]string{`{"a":"b"}`: "b", `{}`: "", `{"a":1,"b":2}`: `{"a":1,"b":2}`, `{"a"`: `{"a"`, `{"a":[1]}`: "[1]"} {
		if got := brief.Arguments(args); got != want {
			t.Errorf("%s gives %q, want %q", args, got, want)
		}
	}
}
