package handover_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/claudecode"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/exchange/handover"
	"github.com/outcrop-dev/outcrop/exchange/modelview"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// programs are those that sessions are handed to.
var programs = []struct {
	name   string
	write  func(context.Context, io.Writer, transcript.Source, handover.Options) (handover.Report, error)
	format exchange.Format
}{
	{"Claude Code", handover.ClaudeCode, claudecode.Format()},
	{"Codex", handover.Codex, codex.Format()},
}

func sample(t testing.TB) transcript.Source {
	t.Helper()
	st, err := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return transcript.Stored(st, "")
}

// spoken is what was said in messages: no reasoning, nothing that no person and
// no model said. Failed results count as results.
func spoken(msgs []message.Message) (out []string) {
	for _, m := range msgs {
		var parts []string
		for _, b := range m.Content {
			switch b.Type {
			case message.TextBlock:
				if m.Role == message.Assistant || m.Source.Kind == "user" {
					parts = append(parts, fmt.Sprintf("%s says %q", m.Role, b.Text))
				}
			case message.ToolCallBlock:
				parts = append(parts, fmt.Sprintf("call %s %s(%s)", b.ID, b.Name, jsonwire.Compact([]byte(b.Arguments))))
			case message.ToolResultBlock:
				parts = append(parts, fmt.Sprintf("result %s %q", b.ToolCallID, message.PlainText(b.Content)))
			case message.ImageBlock:
				parts = append(parts, "an image")
			}
		}
		out = append(out, parts...)
	}
	return out
}

// back writes a session for a program, reads it with that program's importer,
// and compares.
func back(t exchangetest.TB, dir string, src transcript.Source, o handover.Options) {
	t.Helper()
	ctx := context.Background()
	v, err := modelview.Read(ctx, src, o.Options)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var want []message.Message
	for _, m := range v.Messages() {
		if m.Source.CompactionID == "" {
			want = append(want, m)
		}
	}
	for _, p := range programs {
		var file bytes.Buffer
		rep, err := p.write(ctx, &file, src, o)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		for line := range strings.Lines(file.String()) {
			if jsonwire.Strict([]byte(strings.TrimSuffix(line, "\n"))) != nil {
				t.Fatalf("%s: not JSON: %s", p.name, line)
			}
		}
		path := filepath.Join(dir, strings.ReplaceAll(p.name, " ", ""), filepath.FromSlash(rep.Place))
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatalf("%v", err)
		}
		in := exchangetest.Import(t, p.format, path)
		sessions := in.Sessions()
		if len(sessions) != 1 {
			t.Fatalf("%s: %d sessions in\n%s", p.name, len(sessions), file.String())
		}
		got, err := modelview.Read(ctx, transcript.Stored(in.Store, sessions[0].ID), modelview.Options{Raw: true})
		if err != nil {
			t.Fatalf("%v", err)
		}
		var gotMessages []message.Message
		for _, n := range got.Nodes {
			if text := message.PlainText(n.Message.Content); p.name == "Codex" && strings.Contains(text, "<compacted-summary>") {
				continue
			}
			gotMessages = append(gotMessages, n.Message)
		}
		if diff := cmp.Diff(spoken(want), spoken(gotMessages)); diff != "" {
			t.Fatalf("%s: -handed over +read back\n%s\n%s", p.name, diff, file.String())
		}
	}
}

func TestTheSampleIsReadBackAtEveryPrefix(t *testing.T) {
	src := sample(t)
	for _, at := range []outcrop.Seq{0, 6, 20, 23, 34, 38, 44, 56, 61, 70, 78} {
		t.Run(fmt.Sprint("before ", at), func(t *testing.T) {
			back(t, t.TempDir(), src, handover.Options{Options: modelview.Options{Before: at}})
		})
	}
}

// TestConversationsAreReadBack makes conversations of all that a session may
// hold, in any order.
func TestConversationsAreReadBack(t *testing.T) {
	text := rapid.StringMatching(`[a-z<>&"\\ ]{0,12}[a-z]`)
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		st := memory.New()
		var dot bytes.Buffer
		if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
			rt.Fatal(err)
		}
		picture, err := st.Objects().Put(ctx, dot.Bytes())
		if err != nil {
			rt.Fatal(err)
		}
		now, ids := int64(1_800_000_000_000), 0
		s, err := outcrop.New(outcrop.NewHeader("s1", now, "/home/dev/notes"), outcrop.Options{Now: func() int64 { now += 1000; return now }, NewID: func() string { ids++; return fmt.Sprint("m", ids) }})
		if err != nil {
			rt.Fatal(err)
		}
		must := func(ev outcrop.Event, err error) outcrop.Event {
			if err != nil {
				rt.Fatal(err)
			}
			return ev
		}
		calls := 0
		must(s.Append(outcrop.RequestHeader{Header: []byte(`{"config":{"provider":"p","model":"m"},"tools":[]}`), Reason: "initial"}))
		for turn := 1; turn <= rapid.IntRange(1, 3).Draw(rt, "turns"); turn++ {
			must(s.Append(outcrop.TurnStart{Turn: turn}))
			content := []message.Block{message.Text(text.Draw(rt, "prompt"))}
			if rapid.IntRange(0, 4).Draw(rt, "picture") == 0 {
				content = append(content, message.Block{Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"` + picture + `","mediaType":"image/png","bytes":23,"width":1,"height":1}`)})
			}
			must(s.AppendSurface(outcrop.UserMessage{Message: message.Message{Role: message.User, Source: message.FromUser, Content: content}}, outcrop.Tail, outcrop.NoSources))
			if rapid.Bool().Draw(rt, "context") {
				must(s.AppendSurface(outcrop.ContextMessage{Message: message.Message{Role: message.User, Source: message.Source{Kind: "outcrop", Form: "runtime"}, Content: []message.Block{message.Text("today")}}}, outcrop.Tail, outcrop.NoSources))
			}
			steps := rapid.IntRange(1, 3).Draw(rt, "steps")
			for step := 1; step <= steps; step++ {
				must(s.Append(outcrop.StepStart{Turn: turn, Step: step}))
				var blocks []message.Block
				if rapid.Bool().Draw(rt, "thinks") {
					blocks = append(blocks, message.Reasoning(text.Draw(rt, "thought")))
				}
				if step == steps || rapid.Bool().Draw(rt, "says") {
					blocks = append(blocks, message.Text(text.Draw(rt, "said")))
				}
				var open []string
				if step < steps {
					for range rapid.IntRange(1, 2).Draw(rt, "calls") {
						calls++
						id := fmt.Sprint("call_", calls)
						open = append(open, id)
						blocks = append(blocks, message.ToolCall(id, "read", string(jsonwire.AppendString([]byte(`{"path":`), text.Draw(rt, "path")))+"}"))
					}
				}
				must(s.AppendSurface(outcrop.AssistantMessage{Turn: turn, Step: step, Usage: &message.Usage{InputTokens: 3, OutputTokens: 2},
					Message: message.Message{Role: message.Assistant, Source: message.FromModel("p", "m"), Content: blocks}}, outcrop.Tail, outcrop.SourcesOf()))
				for _, id := range open {
					call := must(s.Append(outcrop.ToolCall{Turn: turn, Step: step, CallID: id, Name: "read", Arguments: "{}"}))
					must(s.AppendSurface(outcrop.NewToolResult(turn, step, id, rapid.Bool().Draw(rt, "failed"), message.Text(text.Draw(rt, "result"))), outcrop.Tail, outcrop.SourcesOf(call.Seq)))
				}
				must(s.Append(outcrop.StepEnd{Turn: turn, Step: step}))
			}
			must(s.Append(outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}))
		}
		if err := st.Put(ctx, s.Header(), func(yield func(outcrop.Record, error) bool) {
			for r := range s.Log().Records(0) {
				if !yield(r, nil) {
					return
				}
			}
		}); err != nil {
			rt.Fatal(err)
		}
		dir, err := os.MkdirTemp("", "handover")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		back(rt, dir, transcript.Stored(st, "s1"), handover.Options{Options: modelview.Options{Raw: true}})
	})
}

func TestTheSameSessionGivesTheSameFile(t *testing.T) {
	for _, p := range programs {
		var one, two bytes.Buffer
		rep, err := p.write(t.Context(), &one, sample(t), handover.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.write(t.Context(), &two, sample(t), handover.Options{}); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("%s: two files", p.name)
		}
		if !strings.HasSuffix(rep.Place, rep.ID+".jsonl") || !strings.HasSuffix(rep.Resume, rep.ID) {
			t.Errorf("%+v", rep)
		}
	}
}

// A workspace whose name holds a key is masked like everything else.
func TestTheWorkspaceIsMasked(t *testing.T) {
	const key = "ghp_1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S"
	path := filepath.Join(t.TempDir(), "session.jsonl")
	text := `{"type":"session","version":0,"id":"s1","createdAt":1,"cwd":"/home/` + key + `","delegationDepth":0}
{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}
{"type":"user/message","seq":1,"time":1,"data":{"id":"u1","role":"user","source":{"kind":"user"},"content":[{"type":"text","text":"hi"}]},"surfaceOp":"append"}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := jsonl.File(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		for _, raw := range []bool{false, true} {
			var out bytes.Buffer
			rep, err := p.write(t.Context(), &out, transcript.Stored(st, ""), handover.Options{Options: modelview.Options{Raw: raw}})
			if err != nil {
				t.Fatal(err)
			}
			all := out.String() + rep.Place + rep.Resume
			if strings.Contains(all, key[4:]) != raw || (rep.Masked > 0) == raw {
				t.Errorf("%s, raw %v: %d masked\n%s", p.name, raw, rep.Masked, all)
			}
		}
	}
}

// ExampleClaudeCode hands a log file over.
func ExampleClaudeCode() {
	st, _ := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	rep, err := handover.ClaudeCode(context.Background(), io.Discard, transcript.Stored(st, ""), handover.Options{})
	fmt.Println(rep.Messages, err)
	fmt.Println(rep.Place)
	fmt.Println(rep.Resume)
	// Output:
	// 7 <nil>
	// .claude/projects/-home-dev-notes/dbbce95a-987f-8a74-b5da-4bebd528bdc3.jsonl
	// claude --resume dbbce95a-987f-8a74-b5da-4bebd528bdc3
}

// ExampleCodex hands a log file over.
func ExampleCodex() {
	st, _ := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	rep, err := handover.Codex(context.Background(), io.Discard, transcript.Stored(st, ""), handover.Options{})
	fmt.Println(rep.Messages, strings.HasPrefix(rep.Place, ".codex/sessions/2027/01/15/rollout-2027-01-15T08-00-00-"), err)
	// Output: 7 true <nil>
}
