package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/replay"
	"github.com/outcrop-dev/outcrop/message"
)

// recording writes a log event by event.
type recording struct {
	t *testing.T
	s *outcrop.Session
}

func record(t *testing.T) *recording {
	t.Helper()
	h := outcrop.NewHeader("s1", 1000, "/srv/demo")
	h.Outcrop = 1
	s, err := outcrop.New(h, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &recording{t, s}
}

func (r *recording) log(p outcrop.LogPayload) *recording {
	r.t.Helper()
	if _, err := r.s.Append(p); err != nil {
		r.t.Fatal(err)
	}
	return r
}

func (r *recording) surface(p outcrop.SurfacePayload, sources outcrop.Sources) *recording {
	r.t.Helper()
	if _, err := r.s.AppendSurface(p, outcrop.Tail, sources); err != nil {
		r.t.Fatal(err)
	}
	return r
}

// begin opens turn 1 step 1 with a prompt and a header.
func (r *recording) begin() *recording {
	header := llm.HeaderJSON(llm.Config{Provider: "p", Model: "m"}, "Be kind.", nil)
	return r.log(outcrop.TurnStart{Turn: 1}).log(outcrop.StepStart{Turn: 1, Step: 1}).
		surface(outcrop.UserMessage{Message: message.Message{ID: "u", Role: message.User, Content: []message.Block{message.Text("Hi.")}, Source: message.FromUser}}, outcrop.NoSources).
		log(outcrop.RequestHeader{Header: header, Reason: "initial"})
}

func (r *recording) request(attempt int) *recording {
	return r.log(outcrop.OutcropRequest{Turn: 1, Step: 1, Attempt: attempt, Purpose: "turn", Prefix: outcrop.Seq(r.s.Len() - 1), Digest: r.s.RequestDigest(), Encoder: "x/1"})
}

func (r *recording) text(s string) *recording {
	return r.log(outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: s}})
}

func (r *recording) finish(kind message.FinishKind, f *message.Failure) *recording {
	return r.log(outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: kind, Failure: f}}})
}

func (r *recording) retry(n int, f *message.Failure) *recording {
	return r.log(outcrop.LLMRetry{RetryID: "r", Turn: 1, Step: 1, Provider: "p", PolicyKey: "k", Retry: n, MaxRetries: 5, DelayMs: 1, Failure: f})
}

func (r *recording) started(n int) *recording {
	return r.log(outcrop.LLMRetryStarted{RetryID: "r", Turn: 1, Step: 1, Retry: n})
}

func (r *recording) answer(interrupted bool, text string) *recording {
	var content []message.Block
	if text != "" {
		content = []message.Block{message.Text(text)}
	}
	return r.surface(outcrop.AssistantMessage{Turn: 1, Step: 1, Interrupted: interrupted, Message: message.Message{
		Role: message.Assistant, Content: content, Source: message.FromModel("p", "m")}}, outcrop.EmptySources)
}

func (r *recording) end(reason outcrop.TurnReason) *recording {
	return r.log(outcrop.StepEnd{Turn: 1, Step: 1}).log(outcrop.TurnEnd{Turn: 1, Reason: reason})
}

var busy = &message.Failure{Code: message.CodeServer, Message: "busy", Status: 503}

// play makes one call and tells what came of it, in one line. A call that
// waits to be cancelled is.
func play(m *replay.Model, req llm.Request) string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out []string
	for a := range m.Attempts() {
		if a.Cut && a.Turn == req.Turn && a.Step == req.Step && a.N == req.Attempt && a.Chunks == 0 {
			cancel()
		}
	}
	played := 0
	for c, err := range m.Stream(ctx, req) {
		if err != nil {
			var f *message.Failure
			if !errors.As(err, &f) {
				return err.Error()
			}
			return strings.Join(append(out, f.Code), " ")
		}
		s := c.Text
		if c.Type == message.FinishChunk {
			s = "finish " + string(c.Reason.Kind)
		}
		out = append(out, s)
		played++
		for a := range m.Attempts() {
			if a.Cut && a.N == req.Attempt && a.Chunks == played {
				cancel() // it would wait for that
			}
		}
	}
	return strings.Join(out, " ")
}

func at(attempt int) llm.Request {
	return llm.Request{Turn: 1, Step: 1, Attempt: attempt, Purpose: llm.Turn}
}

func TestAnAttemptIsPlayedAsItWasRecorded(t *testing.T) {
	completed := outcrop.TurnReason{Kind: outcrop.Completed}
	failed := outcrop.TurnReason{Kind: outcrop.TurnError, Error: busy}
	cancelled := outcrop.TurnReason{Kind: outcrop.TurnAborted, Abort: outcrop.AbortReason{Kind: "user"}}
	crashed := outcrop.TurnReason{Kind: outcrop.TurnInterrupted}
	for _, c := range []struct {
		name string
		make func(r *recording)
		want []string // one for each attempt
	}{
		{"a reply", func(r *recording) {
			r.begin().request(1).text("a").text("b").finish(message.Stop, nil).answer(false, "ab").end(completed)
		}, []string{"a b finish stop"}},
		{"a reply without outcrop/request", func(r *recording) {
			r.begin().text("a").text("b").finish(message.Stop, nil).answer(false, "ab").end(completed)
		}, []string{"a b finish stop"}},
		{"a reply without a finish", func(r *recording) {
			r.begin().text("a").answer(false, "a").end(completed)
		}, []string{"a"}},
		{"an empty reply", func(r *recording) {
			r.begin().answer(false, "").end(completed)
		}, []string{""}},
		{"an empty reply that was announced", func(r *recording) {
			r.begin().request(1).answer(false, "").end(completed)
		}, []string{""}},
		{"a retry", func(r *recording) {
			r.begin().request(1).text("a").finish(message.Errored, busy).retry(1, busy).started(1).
				request(2).text("b").finish(message.Stop, nil).answer(false, "b").end(completed)
		}, []string{"a SERVER", "b finish stop"}},
		{"a retry without outcrop/request", func(r *recording) {
			r.begin().text("a").finish(message.Errored, busy).retry(1, busy).started(1).
				text("b").finish(message.Stop, nil).answer(false, "b").end(completed)
		}, []string{"a SERVER", "b finish stop"}},
		{"retries after nothing at all", func(r *recording) {
			r.begin().retry(1, busy).started(1).retry(2, busy).started(2).text("b").answer(false, "b").end(completed)
		}, []string{"SERVER", "SERVER", "b"}},
		{"a retry after a reply that came to nothing", func(r *recording) {
			r.begin().finish(message.Stop, nil).retry(1, &message.Failure{Code: message.CodeEmptyResponse}).started(1).text("b").answer(false, "b").end(completed)
		}, []string{"finish stop", "b"}},
		{"a failure that ended the turn", func(r *recording) {
			r.begin().request(1).finish(message.Errored, busy).end(failed)
		}, []string{"SERVER"}},
		{"a failure that only the turn's end tells of", func(r *recording) {
			r.begin().text("a").end(failed)
		}, []string{"a SERVER"}},
		{"a failure before the first chunk that only the turn's end tells of", func(r *recording) {
			r.begin().end(failed)
		}, []string{"SERVER"}},
		{"a failure that says nothing", func(r *recording) {
			r.begin().finish(message.Errored, nil).end(completed)
		}, []string{"UNKNOWN"}},
		{"an error that came after the reply", func(r *recording) {
			r.begin().text("a").answer(false, "a").end(failed)
		}, []string{"a"}},
		{"a cancel", func(r *recording) {
			r.begin().request(1).text("a").answer(true, "a").end(cancelled)
		}, []string{"a ABORTED"}},
		{"a cancel that left nothing to see", func(r *recording) {
			r.begin().request(1).end(cancelled)
		}, []string{"ABORTED"}},
		{"a cancel with a finish chunk", func(r *recording) {
			r.begin().text("a").finish(message.Aborted, nil).answer(true, "a").end(cancelled)
		}, []string{"a ABORTED"}},
		{"a cancel while the next attempt was awaited", func(r *recording) {
			r.begin().finish(message.Errored, busy).retry(1, busy).end(cancelled)
		}, []string{"SERVER"}},
		{"a cancel in the second attempt before its first chunk", func(r *recording) {
			r.begin().finish(message.Errored, busy).retry(1, busy).started(1).end(cancelled)
		}, []string{"SERVER", "ABORTED"}},
		{"a crash", func(r *recording) {
			r.begin().request(1).text("a").end(crashed)
		}, []string{"a ABORTED"}},
		{"the end of the log", func(r *recording) {
			r.begin().text("a")
		}, []string{"a ABORTED"}},
		{"the end of the log before the first chunk", func(r *recording) {
			r.begin()
		}, []string{"ABORTED"}},
		{"chunks of another step", func(r *recording) {
			r.begin().text("a").log(outcrop.AssistantChunk{Turn: 1, Step: 2, Chunk: message.Chunk{Type: message.TextDelta, Text: "x"}}).text("b").answer(false, "ab").end(completed)
		}, []string{"a b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(t)
			c.make(r)
			m := replay.New(r.s.Log(), replay.Options{})
			var got []string
			for a := range m.Attempts() {
				got = append(got, play(m, llm.Request{Turn: a.Turn, Step: a.Step, Attempt: a.N}))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestACallThatWasNotRecordedIsRefused(t *testing.T) {
	r := record(t).begin().text("a").answer(false, "a").end(outcrop.TurnReason{Kind: outcrop.Completed})
	m := replay.New(r.s.Log(), replay.Options{})
	if m.Name() != "replay" {
		t.Error(m.Name())
	}
	for _, c := range []struct {
		name string
		req  llm.Request
		want string
	}{
		{"another attempt", at(2), "replay: turn 1 step 1 attempt 2 is not in the recorded log, which shows 1 attempts"},
		{"another step", llm.Request{Turn: 1, Step: 2, Attempt: 1}, "replay: turn 1 step 2 attempt 1 is not in the recorded log, which shows 1 attempts"},
		{"another purpose", llm.Request{Turn: 1, Step: 1, Attempt: 1, Purpose: llm.Compaction}, "replay: a call of the purpose compaction cannot be replayed: no log holds its chunks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range m.Stream(context.Background(), c.req) {
				var f *message.Failure
				if !errors.As(err, &f) || f.Code != replay.CodeNone || f.Message != c.want {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func TestAStrictReplayTakesTheRecordedRequestOnly(t *testing.T) {
	r := record(t).begin().request(1).text("a").answer(false, "a").end(outcrop.TurnReason{Kind: outcrop.Completed})
	m := replay.New(r.s.Log(), replay.Options{Strict: true})
	good := llm.Request{
		Config: llm.Config{Provider: "p", Model: "m"}, System: "Be kind.", Turn: 1, Step: 1, Attempt: 1,
		Messages: []message.Message{{ID: "u", Role: message.User, Content: []message.Block{message.Text("Hi.")}, Source: message.FromUser}},
	}
	if got := play(m, good); got != "a" {
		t.Errorf("the recorded request: %s", got)
	}
	for _, c := range []struct {
		name   string
		change func(*llm.Request)
		where  string
	}{
		{"another model", func(r *llm.Request) { r.Config.Model = "n" }, "header"},
		{"another system prompt", func(r *llm.Request) { r.System = "Be quick." }, "header"},
		{"another tool", func(r *llm.Request) { r.Tools = []llm.Tool{{Name: "look"}} }, "header"},
		{"another text", func(r *llm.Request) {
			r.Messages = []message.Message{{ID: "u", Role: message.User, Content: []message.Block{message.Text("Ho.")}, Source: message.FromUser}}
		}, "messages[0]"},
		{"another message more", func(r *llm.Request) { r.Messages = append(r.Messages, r.Messages[0]) }, "messages[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := good
			c.change(&req)
			for _, err := range m.Stream(context.Background(), req) {
				var f *message.Failure
				if !errors.As(err, &f) || f.Code != replay.CodeDiffers || !strings.HasSuffix(f.Message, "they differ from "+c.where+" on") ||
					!strings.HasPrefix(f.Message, "replay: turn 1 step 1 attempt 1: ") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// Ids that cannot be sent are replaced by ones that depend on seqs, which may
// differ in a replay.
func TestARequestWithOtherSeqsIsTheSame(t *testing.T) {
	turn := func(r *recording) {
		r.surface(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{
			ID: "a", Role: message.Assistant, Source: message.FromModel("p", "m"),
			Content: []message.Block{message.ToolCall("odd id", "look", "{}"), message.ToolCall("odd id 2", "look", "{}")}}}, outcrop.EmptySources)
		for _, id := range []string{"odd id", "odd id 2"} {
			p := outcrop.NewToolResult(1, 1, id, false, message.Text("ok"))
			p.Message.ID = "result of " + id
			r.surface(p, outcrop.NoSources)
		}
		r.log(outcrop.StepEnd{Turn: 1, Step: 1}).log(outcrop.StepStart{Turn: 1, Step: 2})
	}
	r := record(t).begin().text("x")
	turn(r)
	m := replay.New(r.s.Log(), replay.Options{Strict: true})

	other := record(t).begin().text("x").text("y").text("z")
	turn(other)
	var nodes []llm.Node
	for _, msg := range other.s.Messages() {
		parsed, err := message.Parse(msg.Raw)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, llm.Node{Seq: int64(msg.Seq), Message: parsed})
	}
	req := llm.Request{Config: llm.Config{Provider: "p", Model: "m"}, System: "Be kind.", Turn: 1, Step: 2, Attempt: 1, Messages: llm.Build(nodes)}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range m.Stream(ctx, req) {
		var f *message.Failure
		if !errors.As(err, &f) || f.Code != message.CodeAborted {
			t.Error(err)
		}
	}
}

// Whatever a log holds, what it shows of calls can be played to its end.
func TestWhatAnyLogShowsCanBePlayed(t *testing.T) {
	played := 0
	for _, file := range []string{"surface", "repair", "request", "fork", "compaction", "invariants"} {
		for _, line := range conformance.Lines(t, file) {
			var v struct{ Events []json.RawMessage }
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			s, _ := outcrop.Inspect(outcrop.NewHeader("s1", 0, ""), func(yield func(outcrop.Record, error) bool) {
				for _, l := range v.Events {
					ev, err := outcrop.DecodeEvent(l)
					if !yield(outcrop.Record{Event: ev}, err) || err != nil {
						return
					}
				}
			}, outcrop.Options{})
			if s == nil {
				continue
			}
			m := replay.New(s.Log(), replay.Options{})
			for a := range m.Attempts() {
				played++
				n := 0
				for _, word := range strings.Fields(play(m, llm.Request{Turn: a.Turn, Step: a.Step, Attempt: a.N})) {
					if word == replay.CodeNone {
						n++
					}
				}
				if n > 0 {
					t.Errorf("%s: %+v was not played", file, a)
				}
			}
		}
	}
	if played < 500 {
		t.Errorf("only %d attempts were played", played)
	}
}

func TestAReplayThatIsStoppedEndsAtOnce(t *testing.T) {
	r := record(t).begin().text("a").text("b").answer(false, "ab")
	m := replay.New(r.s.Log(), replay.Options{})
	n := 0
	for range m.Stream(context.Background(), at(1)) {
		n++
		break
	}
	if n != 1 {
		t.Error(n)
	}
}

func Example() {
	var log outcrop.Log = exampleLog()
	provider := replay.New(log, replay.Options{})
	for chunk, err := range provider.Stream(context.Background(), llm.Request{Turn: 1, Step: 1, Attempt: 1}) {
		fmt.Println(chunk.Text, err)
	}
	// Output:
	// Hel <nil>
	// lo. <nil>
}

func exampleLog() outcrop.Log {
	s, err := outcrop.New(outcrop.NewHeader("s1", 0, ""), outcrop.Options{})
	if err != nil {
		panic(err)
	}
	for _, p := range []outcrop.LogPayload{
		outcrop.TurnStart{Turn: 1}, outcrop.StepStart{Turn: 1, Step: 1},
		outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: "Hel"}},
		outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: "lo."}},
	} {
		if _, err := s.Append(p); err != nil {
			panic(err)
		}
	}
	if _, err := s.AppendSurface(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{
		Role: message.Assistant, Content: []message.Block{message.Text("Hello.")}, Source: message.FromModel("p", "m"),
	}}, outcrop.Tail, outcrop.SourcesOf(2, 3)); err != nil {
		panic(err)
	}
	return s.Log()
}
