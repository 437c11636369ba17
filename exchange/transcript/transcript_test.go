package transcript_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// known are sources of which there are none.
var known = []outcrop.Seq{}

// recording writes a session for a test.
type recording struct {
	t testing.TB
	s *outcrop.Session
}

func record(t testing.TB) *recording {
	t.Helper()
	now, ids := int64(1_800_000_000_000), 0
	s, err := outcrop.New(outcrop.NewHeader("s1", now, "/home/dev"), outcrop.Options{Now: func() int64 { now += 1000; return now }, NewID: func() string { ids++; return fmt.Sprint("m", ids) }})
	if err != nil {
		t.Fatal(err)
	}
	return &recording{t, s}
}

func (r *recording) log(p outcrop.LogPayload) outcrop.Seq {
	r.t.Helper()
	ev, err := r.s.Append(p)
	if err != nil {
		r.t.Fatal(err)
	}
	return ev.Seq
}

func (r *recording) add(p outcrop.SurfacePayload, op outcrop.SurfaceOp, sources ...outcrop.Seq) outcrop.Seq {
	r.t.Helper()
	from := outcrop.NoSources
	if sources != nil {
		from = outcrop.SourcesOf(sources...)
	}
	ev, err := r.s.AppendSurface(p, op, from)
	if err != nil {
		r.t.Fatal(err)
	}
	return ev.Seq
}

func (r *recording) prompt(text string) outcrop.Seq {
	r.t.Helper()
	return r.add(outcrop.UserMessage{Message: message.Message{Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text(text)}}}, outcrop.Tail)
}

func (r *recording) reply(turn int, blocks ...message.Block) outcrop.Seq {
	r.t.Helper()
	return r.add(outcrop.AssistantMessage{Turn: turn, Step: 1, Message: message.Message{Role: message.Assistant, Source: message.FromModel("p", "m"), Content: blocks}}, outcrop.Tail, known...)
}

func (r *recording) source() transcript.Source {
	r.t.Helper()
	st := memory.New()
	if err := st.Put(context.Background(), r.s.Header(), func(yield func(outcrop.Record, error) bool) {
		for rec := range r.s.Log().Records(0) {
			if !yield(rec, nil) {
				return
			}
		}
	}); err != nil {
		r.t.Fatal(err)
	}
	return transcript.Stored(st, "s1")
}

// read is a transcript in short, one item a line.
func read(t testing.TB, src transcript.Source, o transcript.Options) []string {
	t.Helper()
	tr, err := transcript.Read(context.Background(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for it, err := range tr.Items(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		line := ""
		switch it.Kind {
		case transcript.Turn:
			line = fmt.Sprint("turn ", it.Turn)
		case transcript.TurnEnd:
			line = "ended " + it.Text
		case transcript.Gone:
			line = fmt.Sprint(it.Count, " gone")
		case transcript.Edit:
			line = it.Text + blocks(it.Blocks)
		case transcript.Message:
			line = string(it.Who) + blocks(it.Blocks)
		}
		out = append(out, line)
	}
	return out
}

func blocks(in []transcript.Block) string {
	var b strings.Builder
	for _, k := range in {
		switch {
		case k.Type != message.ToolCallBlock:
			fmt.Fprintf(&b, " %q", k.Text)
		case k.Result == nil:
			fmt.Fprintf(&b, " call %s", k.CallID)
		default:
			fmt.Fprintf(&b, " call %s gave%s", k.CallID, blocks(k.Result.Blocks))
		}
	}
	return b.String()
}

func TestResultsStandAtTheirCallsAndRewindsAreOneItem(t *testing.T) {
	r := record(t)
	done := outcrop.TurnReason{Kind: outcrop.Completed}
	r.log(outcrop.TurnStart{Turn: 1})
	r.log(outcrop.StepStart{Turn: 1, Step: 1})
	r.prompt("one")
	r.reply(1, message.ToolCall("a", "read", "{}"), message.ToolCall("b", "read", "{}"))
	b := r.log(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "b", Name: "read", Arguments: "{}"})
	a := r.log(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "a", Name: "read", Arguments: "{}"})
	r.add(outcrop.NewToolResult(1, 1, "b", false, message.Text("B")), outcrop.Tail, b)
	r.add(outcrop.NewToolResult(1, 1, "a", false, message.Text("A")), outcrop.Tail, a)
	r.log(outcrop.TurnEnd{Turn: 1, Reason: done})
	r.log(outcrop.TurnStart{Turn: 2})
	two := r.prompt("two")
	said := r.reply(2, message.Text("wrong"))
	r.log(outcrop.TurnEnd{Turn: 2, Reason: outcrop.TurnReason{Kind: outcrop.MaxTokens}})
	rw := r.log(outcrop.OutcropRewind{To: 8})
	r.add(outcrop.ContextMessage{Message: message.Message{Role: message.User, Source: message.Source{Kind: "outcrop", Form: "rewind"}, Content: []message.Block{}}}, outcrop.Replace(two, said), two, said, rw)
	r.log(outcrop.TurnStart{Turn: 3})
	r.prompt("three")
	src := r.source()
	one := []string{"turn 1", `user "one"`, `assistant call a gave "A" call b gave "B"`}
	edit := fmt.Sprintf("rewound: nodes %d to %d, now %d", two, said, rw+1)
	for _, c := range []struct {
		name string
		o    transcript.Options
		want []string
	}{
		{"all of it", transcript.Options{}, append(one[:3:3], "2 gone", edit, "turn 3", `user "three"`)},
		{"with what was taken back", transcript.Options{Rewound: true}, append(one[:3:3], "turn 2", `user "two"`, `assistant "wrong"`, "ended max-tokens", edit, "turn 3", `user "three"`)},
		{"one turn", transcript.Options{FirstTurn: 3, LastTurn: 3}, []string{"turn 3", `user "three"`}},
		{"from an event on", transcript.Options{From: rw}, []string{edit, "turn 3", `user "three"`}},
		{"up to an event", transcript.Options{Before: 4}, []string{"turn 1", `user "one"`, "assistant call a call b"}},
		{"since a time", transcript.Options{Since: 1_900_000_000_000}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, read(t, src, c.o)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestEveryCutOfALogIsATranscript cuts a log at many bytes and damages it at
// many: what is good is read, and the rest is said.
func TestEveryCutOfALogIsATranscript(t *testing.T) {
	good, err := os.ReadFile(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.jsonl")
	whole := 14 // items of the whole log
	for at := 400; at < len(good); at += 311 {
		for _, b := range [][]byte{good[:at], append(append(append([]byte{}, good[:at]...), 0), good[at+1:]...)} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			st, err := jsonl.File(path, jsonl.Options{})
			if err != nil {
				t.Fatal(err)
			}
			src := transcript.Stored(st, "")
			tr, err := transcript.Read(t.Context(), src, transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			n := len(read(t, src, transcript.Options{}))
			if n < whole && tr.Damage == nil && !tr.Tail.Torn {
				t.Errorf("byte %d: %d items, and nothing is said of damage", at, n)
			}
		}
	}
}

// ExampleRead prints who speaks in a log file.
func ExampleRead() {
	ctx := context.Background()
	st, _ := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	t, err := transcript.Read(ctx, transcript.Stored(st, ""), transcript.Options{LastTurn: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for it := range t.Items(ctx) {
		if it.Kind == transcript.Message {
			fmt.Println(it.Seq, it.Who)
		}
	}
	// Output:
	// 4 user
	// 5 context
	// 19 assistant
	// 33 assistant
}
