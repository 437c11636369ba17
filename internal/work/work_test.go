package work_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/message"
)

// place is a folder with a script and a configuration.
func place(t *testing.T, config string) (d *desk.Desk, dir string, said *strings.Builder) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"s.jsonl": `{"text":"One."}` + "\n", "config.toml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said = &strings.Builder{}
	ids := 0
	d = desk.New(desk.Env{
		Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: said, Dir: dir, Program: "outcrop",
		Getenv: func(n string) string { return map[string]string{"OUTCROP_HOME": filepath.Join(dir, "home")}[n] },
		NewID:  func() string { ids++; return fmt.Sprintf("id-%d", ids) },
	})
	d.Flags.Config = "config.toml"
	return d, dir, said
}

func open(t *testing.T, d *desk.Desk, f work.Flags) *work.Work {
	t.Helper()
	w, err := work.Prepare(t.Context(), d, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// logOf is a log of payloads, as a crash leaves it.
func logOf(t *testing.T, add func(s *outcrop.Session) error) outcrop.Log {
	t.Helper()
	s, err := outcrop.New(outcrop.NewHeader("s", 1, "/w"), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := add(s); err != nil {
		t.Fatal(err)
	}
	r, err := outcrop.Restore(s.Header(), func(yield func(outcrop.Record, error) bool) {
		for rec := range s.Log().Records(0) {
			if !yield(rec, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Log()
}

func TestACutTurnIsKnownByWhatItLeft(t *testing.T) {
	start := func(s *outcrop.Session) error {
		_, err := s.AppendAll(outcrop.LogCandidate(outcrop.TurnStart{Turn: 1}), outcrop.LogCandidate(outcrop.StepStart{Turn: 1, Step: 1}),
			outcrop.SurfaceCandidate(outcrop.UserMessage{Message: message.Message{ID: "m", Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text("go")}}}, outcrop.Tail, outcrop.NoSources))
		return err
	}
	text := func(s *outcrop.Session) error {
		if err := start(s); err != nil {
			return err
		}
		for _, c := range []message.Chunk{{Type: message.BlockStart, BlockType: message.TextBlock}, {Type: message.TextDelta, Text: "Half of"}, {Type: message.TextDelta, Text: " it"}} {
			if _, err := s.Append(outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: c}); err != nil {
				return err
			}
		}
		return nil
	}
	calls := func(s *outcrop.Session) error {
		if err := start(s); err != nil {
			return err
		}
		_, err := s.AppendAll(outcrop.SurfaceCandidate(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{Role: message.Assistant, ID: "a", Source: message.FromModel("p", "m"),
			Content: []message.Block{message.ToolCall("c1", "shell", `{"command":"make"}`), message.ToolCall("c2", "read", `{"path":"\u001b"}`)}}}, outcrop.Tail, outcrop.SourcesOf()),
			outcrop.LogCandidate(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "c1", Name: "shell", Arguments: `{"command":"make"}`}))
		return err
	}
	whole := func(s *outcrop.Session) error {
		if err := start(s); err != nil {
			return err
		}
		_, err := s.AppendAll(outcrop.LogCandidate(outcrop.StepEnd{Turn: 1, Step: 1}), outcrop.LogCandidate(outcrop.TurnEnd{Turn: 1, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}))
		return err
	}
	const cutOff = "turn 1 was cut off when the program that ran it stopped"
	for _, c := range []struct {
		name string
		log  func(*outcrop.Session) error
		want string
		cut  work.Cut
	}{
		{"an empty log", func(*outcrop.Session) error { return nil }, "", work.Cut{}},
		{"a turn that ended", whole, "", work.Cut{}},
		{"a turn in which nothing came", start, cutOff, work.Cut{Turn: 1}},
		{"a reply", text, cutOff + "; of the reply 10 characters had come", work.Cut{Turn: 1, Text: "Half of it"}},
		{"calls, one of which was started", calls, cutOff + `; outcome unknown: shell make; not started: read \e`,
			work.Cut{Turn: 1, Unknown: []string{"shell make"}, NotStarted: []string{`read \e`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := work.LastCut(logOf(t, c.log))
			if ok != (c.want != "") || ok && got.String() != c.want {
				t.Errorf("%v: %s", ok, got)
			}
			if diff := cmp.Diff(c.cut, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const priced = `
[providers.local]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
[providers.local.models."cheap"]
window = 9000
price = { input = 1, output = 1 }
`

func TestTheModelCanBeChangedWhileTheAgentLives(t *testing.T) {
	d, _, _ := place(t, priced)
	w := open(t, d, work.Flags{Script: "s.jsonl"})
	if _, err := w.Engage(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.SetModel(t.Context(), "nobody:x"); exit.Code(err) != 2 || w.Model().Name() != "script:s.jsonl" {
		t.Errorf("%v, %s", err, w.Model().Name())
	}
	if err := w.SetModel(t.Context(), "local:cheap"); err != nil || w.Model().Name() != "local:cheap" || w.Model().Window != 9000 {
		t.Errorf("%v, %+v", err, w.Model())
	}
	if err := w.SetPolicy(t.Context(), "none"); err != nil || w.Policy() != "none" {
		t.Errorf("%v, %s", err, w.Policy())
	}
}

func TestAModelWithoutAPriceIsRefusedWhereALimitOfCostIsSet(t *testing.T) {
	d, _, said := place(t, priced+"[limits]\ncost_usd = 1.0\n")
	w := open(t, d, work.Flags{Script: "s.jsonl"})
	if !strings.Contains(said.String(), "limits.cost_usd cannot be kept") {
		t.Error(said)
	}
	if err := w.SetModel(t.Context(), "local:dear"); exit.Code(err) != 2 || !strings.Contains(err.Error(), "the price of local:dear is unknown") {
		t.Error(err)
	}
	if err := w.SetModel(t.Context(), "local:cheap"); err != nil {
		t.Error(err)
	}
}

func TestAServerThatDoesNotComeUpIsSaidAndTheRestIsThere(t *testing.T) {
	d, _, said := place(t, "[mcp.gone]\ncommand = [\"./no-such-program\"]\n")
	w := open(t, d, work.Flags{Script: "s.jsonl"})
	ag, err := w.Engage(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "gone") || !strings.Contains(said.String(), "its tools are not there") {
		t.Errorf("said %q", said)
	}
	if _, err := ag.Send(t.Context(), message.Message{Content: []message.Block{message.Text("go")}}); err != nil {
		t.Fatal(err)
	}
	if out, err := ag.Wait(t.Context()); err != nil || out.Reason.Kind != outcrop.Completed {
		t.Errorf("%+v, %v", out, err)
	}
	if got := w.GoOn(); got != "session id-1 | outcrop chat --session id-1 --script s.jsonl" {
		t.Error(got)
	}
}

func TestWhatPeopleLeftForAgentsIsTold(t *testing.T) {
	d, dir, _ := place(t, "")
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Speak plainly.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, d, work.Flags{Script: "s.jsonl"})
	ag, err := w.Engage(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ag.Send(t.Context(), message.Message{Content: []message.Block{message.Text("go")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ag.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := false
	for ev := range outcrop.Events(w.Session().Log(), 0) {
		found = found || ev.Type == outcrop.TypeContextMessage && strings.Contains(string(ev.Data), "Speak plainly.")
	}
	if !found {
		t.Error("AGENTS.md is not in the log")
	}
}

func TestAForkIsTheSessionFromThenOn(t *testing.T) {
	d, _, _ := place(t, "")
	w := open(t, d, work.Flags{Script: "s.jsonl"})
	if _, err := w.Fork(t.Context(), -1); exit.Code(err) != 1 {
		t.Errorf("an empty session was forked: %v", err)
	}
	if _, err := w.Session().Append(outcrop.SessionTitle{Title: "one"}); err != nil {
		t.Fatal(err)
	}
	cut, err := w.Fork(t.Context(), -1)
	if err != nil || cut.Header.ID != w.Session().ID() || w.Session().ID() == "id-1" || w.Session().Len() < 1 {
		t.Fatalf("%+v, %v, now in %s", cut, err, w.Session().ID())
	}
	// The parent is free.
	f := work.Flags{Script: "s.jsonl", Session: "id-1"}
	if got := open(t, d, f).Session().ID(); got != "id-1" {
		t.Error(got)
	}
}
