package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/history"
)

// conversation is a session with a call, its result and what people said.
func conversation(t testing.TB, result string) *outcrop.Session {
	t.Helper()
	s, err := outcrop.New(outcrop.NewHeader("s", 1, "/"), outcrop.Options{Now: func() int64 { return 1 }, NewID: func() string { return "id" }})
	if err != nil {
		t.Fatal(err)
	}
	must := func(_ outcrop.Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Append(outcrop.TurnStart{Turn: 1}))
	must(s.Append(outcrop.StepStart{Turn: 1, Step: 1}))
	must(s.AppendSurface(outcrop.UserMessage{Message: message.Message{ID: "u", Role: message.User, Source: message.FromUser,
		Content: []message.Block{message.Text("Where is the Grüne Tür?")}}}, outcrop.Tail, outcrop.NoSources))
	must(s.AppendSurface(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{ID: "a", Role: message.Assistant,
		Source: message.FromModel("p", "m"), Content: []message.Block{message.Reasoning("look in the plan"), message.ToolCall("c1", "read", `{"path":"plan.txt"}`)}}},
		outcrop.Tail, outcrop.EmptySources))
	must(s.Append(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "c1", Name: "read", Arguments: `{"path":"plan.txt"}`}))
	must(s.AppendSurface(outcrop.NewToolResult(1, 1, "c1", false, message.Text(result)), outcrop.Tail, outcrop.SourcesOf(4)))
	must(s.Append(outcrop.StepEnd{Turn: 1, Step: 1}))
	must(s.Append(outcrop.TurnEnd{Turn: 1, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}))
	return s
}

func call(t testing.TB, s *outcrop.Session, name, args string) (string, bool) {
	t.Helper()
	tools, err := history.Tools(history.Options{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	reg, err := tool.NewRegistry(tool.Options{}, tools...)
	if err != nil {
		t.Fatal(err)
	}
	tl, c, bad := reg.Check("id", name, args)
	if bad != nil {
		return bad.Error(), true
	}
	out := reg.Run(context.Background(), tl, c)
	return message.PlainText(out.Content), out.IsError
}

// prune puts a shorter copy in the place of the result at seq 5, as history
// edits do.
func prune(t testing.TB, s *outcrop.Session) {
	t.Helper()
	ev := s.Log().At(5)
	var data map[string]any
	if err := json.Unmarshal(ev.Data, &data); err != nil {
		t.Fatal(err)
	}
	data["message"].(map[string]any)["content"].([]any)[0].(map[string]any)["content"] = []any{map[string]any{"type": "text", "text": "[cut]"}}
	raw, _ := json.Marshal(data)
	_, err := s.AppendRaw(outcrop.Event{Type: outcrop.TypeToolResult, Data: raw, Op: outcrop.Replace(5, 5), Sources: outcrop.SourcesOf(5)})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnEventIsReadByItsSeq(t *testing.T) {
	s := conversation(t, "The door is in the hall.")
	prune(t, s)
	for _, c := range []struct{ name, args, want string }{
		{"what a person said", `{"seq":2}`, "[event 2, user]\nWhere is the Grüne Tür?"},
		{"what the model said, thoughts and calls", `{"seq":3}`, "[event 3, assistant]\n[reasoning] look in the plan\n[call c1] read {\"path\":\"plan.txt\"}"},
		{"a result that was cut", `{"seq":5}`, "[event 5, result of read, no longer shown]\nThe door is in the hall."},
		{"its shorter copy", `{"seq":8}`, "[event 8, result of read]\n[cut]"},
		{"a part", `{"seq":5,"from":4,"to":8}`, "[event 5, result of read, no longer shown]\ndoor\n[characters 4 to 8 of 24; go on with from=8]"},
		{"a part beyond the end", `{"seq":5,"from":90}`, "[event 5, result of read, no longer shown]\n\n[characters 24 to 24 of 24]"},
		{"an event that is no message", `{"seq":7}`, "[event 7, turn/end]\n{\"turn\":1,\"reason\":{\"kind\":\"completed\"}}"},
	} {
		if got, failed := call(t, s, history.ReadName, c.args); got != c.want || failed {
			t.Errorf("%s: %q, failed %v", c.name, got, failed)
		}
	}
	for name, args := range map[string]string{
		"there is no event 99: this session has the events 0 to 8": `{"seq":99}`,
		"there is no event -1":                  `{"seq":-1}`,
		"to is greater than from":               `{"seq":5,"from":9,"to":3}`,
		"from and to are characters from 0 on":  `{"seq":5,"from":-9223372036854775808}`,
		"invalid arguments":                     `{"seq":"five"}`,
		"invalid arguments: ":                   `{}`,
		"there is no event 9223372036854775807": `{"seq":9223372036854775807}`,
	} {
		if got, failed := call(t, s, history.ReadName, args); !failed || !strings.Contains(got, name) {
			t.Errorf("%s: %q", args, got)
		}
	}
}

func TestALongTextIsReadInPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 40_000).Draw(rt, "characters")
		text := strings.Repeat("aé漢🙂", n/4+1)
		s := conversation(t, text)
		var all strings.Builder
		for from := 0; ; {
			got, failed := call(t, s, history.ReadName, fmt.Sprintf(`{"seq":5,"from":%d}`, from))
			if failed {
				rt.Fatal(got)
			}
			got = strings.TrimPrefix(got, "[event 5, result of read]\n")
			body, note, cut := strings.Cut(got, "\n[characters ")
			all.WriteString(body)
			_, next, more := strings.Cut(note, "go on with from=")
			if !cut || !more {
				break
			}
			if _, err := fmt.Sscanf(next, "%d", &from); err != nil {
				rt.Fatal(err)
			}
		}
		if all.String() != text {
			rt.Fatalf("the pages are not the text: %d bytes of %d", all.Len(), len(text))
		}
	})
}

func TestACheckpointListsWhatItStandsFor(t *testing.T) {
	s := conversation(t, "The door is in the hall.")
	_, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{ID: "c", Role: message.User,
		Content: []message.Block{message.Text("They looked for a door.")},
		Source:  message.Source{Kind: "plugin", Plugin: "compact", CompactionID: "cmp"}}},
		outcrop.Replace(2, 5), outcrop.SourcesOf(2, 3, 5))
	if err != nil {
		t.Fatal(err)
	}
	want := "[event 8, checkpoint]\nThey looked for a door.\n[it stands for these events]\n" +
		"2 user Where is the Grüne Tür?\n3 assistant [read plan.txt]\n5 result The door is in the hall."
	if got, _ := call(t, s, history.ReadName, `{"seq":8}`); got != want {
		t.Errorf("%q", got)
	}
	if got, _ := call(t, s, history.SearchName, `{"query":"hall"}`); got != "5 result of read (no longer shown): The door is in the hall." {
		t.Errorf("%q", got)
	}
}

func TestSearchFindsWhatWasSaid(t *testing.T) {
	s := conversation(t, strings.Repeat("x ", 100)+"the door\nis in the hall"+strings.Repeat(" y", 100))
	prune(t, s)
	for _, c := range []struct{ name, args, want string }{
		{"in any case, beyond ASCII", `{"query":"grüne TÜR"}`, "2 user: Where is the Grüne Tür?"},
		{"reasoning and calls", `{"query":"plan"}`, "3 assistant: [reasoning] look in the plan [call c1] read {\"path\":\"plan.txt\"}"},
		{"a cut result, once", `{"query":"door hall"}`, "5 result of read (no longer shown): ...x x x x x x x x x x x x x x x x x x the door is in the hall y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y..."},
		{"a phrase that is there", `{"query":"\"in the hall\""}`, "5 result"},
		{"a phrase that is not", `{"query":"\"hall the in\""}`, "nothing found"},
		{"all words", `{"query":"door window"}`, "nothing found"},
		{"of one role", `{"query":"the","role":"user"}`, "2 user: Where"},
		{"of another", `{"query":"door","role":"assistant"}`, "nothing found"},
		{"the newest first, and no more than asked", `{"query":"the","limit":2}`, "5 result of read (no longer shown): "},
	} {
		got, failed := call(t, s, history.SearchName, c.args)
		if !strings.HasPrefix(got, c.want) || failed || c.want == "nothing found" && got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if got, _ := call(t, s, history.SearchName, `{"query":"the","limit":1}`); !strings.HasSuffix(got, "\n... and more: narrow the query, or raise limit") {
		t.Errorf("%q", got)
	}
	for _, args := range []string{`{"query":" \"\" "}`, `{"query":"a","role":"nobody"}`, `{"query":"a","limit":-1}`} {
		if got, failed := call(t, s, history.SearchName, args); !failed {
			t.Errorf("%s is taken: %q", args, got)
		}
	}
}

// What the tools themselves were asked and gave would be found each time.
func TestSearchDoesNotFindItself(t *testing.T) {
	s := conversation(t, "nothing")
	for _, err := range []error{
		second(s.Append(outcrop.TurnStart{Turn: 2})), second(s.Append(outcrop.StepStart{Turn: 2, Step: 1})),
		second(s.AppendSurface(outcrop.AssistantMessage{Turn: 2, Step: 1, Message: message.Message{ID: "b", Role: message.Assistant,
			Source: message.FromModel("p", "m"), Content: []message.Block{message.ToolCall("h", history.SearchName, `{"query":"unicorn"}`)}}}, outcrop.Tail, outcrop.EmptySources)),
		second(s.Append(outcrop.ToolCall{Turn: 2, Step: 1, CallID: "h", Name: history.SearchName, Arguments: `{"query":"unicorn"}`})),
		second(s.AppendSurface(outcrop.NewToolResult(2, 1, "h", false, message.Text("no unicorn")), outcrop.Tail, outcrop.SourcesOf(11))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := call(t, s, history.SearchName, `{"query":"unicorn"}`); got != "nothing found" {
		t.Errorf("%q", got)
	}
}

func second(_ outcrop.Event, err error) error { return err }

func TestASearchEndsWhenItIsCancelled(t *testing.T) {
	s := conversation(t, "x")
	for range 2000 {
		if _, err := s.Append(outcrop.OutcropTag{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := (history.Scan{Log: s.Log}).Search(ctx, history.Query{Text: "x"}); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
