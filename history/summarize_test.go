package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// built is the conversation's own request from the first n nodes.
func built(t *testing.T, s *outcrop.Session, n int) []message.Message {
	t.Helper()
	var nodes []llm.Node
	for _, m := range outcrop.DeriveMessages(s.Log(), s.Surface().Nodes()[:n]) {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, llm.Node{Seq: int64(m.Seq), Message: parsed})
	}
	return llm.Build(nodes)
}

type call struct {
	Purpose, Mode, Model, Digest string
	Call                         int
	Turn                         *int
	Prefix, Through              outcrop.Seq
	Extra                        []message.Message
	seq                          outcrop.Seq
}

func callsOf(t *testing.T, log outcrop.Log) (out []call) {
	t.Helper()
	for ev := range outcrop.Events(log, 0) {
		if ev.Type == outcrop.TypeOutcropSummarizer {
			var c call
			if err := json.Unmarshal(ev.Data, &c); err != nil {
				t.Fatal(err)
			}
			c.seq = ev.Seq
			out = append(out, c)
		}
	}
	return out
}

func text(m message.Message) string { return message.PlainText(m.Content) }

func TestTheSummariserGetsTheConversationCutBehindTheRange(t *testing.T) {
	s := draw(t, "prompt:a=100 step:b=500 step:c=500 step:d=500 end")
	own := built(t, s.s, 5)
	var got llm.Request
	m := manager(t, history.Options{Window: 30_000, MaxOutput: 1000, Provider: provider(func(_ context.Context, req llm.Request, y func(message.Chunk, error) bool) {
		got = req
		say(y, message.Stop, &message.Usage{InputTokens: 10, OutputTokens: 5}, message.Reasoning("hm"), message.Text("b and c were done."))
	})})
	rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1, CommandID: "cmd-1"})
	if err != nil || len(rep.Edits) != 1 {
		t.Fatal(err, rep)
	}
	if diff := cmp.Diff(own, got.Messages[:len(got.Messages)-1]); diff != "" {
		t.Errorf("it is no prefix of the conversation's request: %s", diff)
	}
	ask := text(got.Messages[len(got.Messages)-1])
	if !strings.Contains(ask, `"call of read"`) || !strings.Contains(ask, "no tool call") {
		t.Errorf("instruction %q", ask)
	}
	if got.Purpose != llm.Compaction || got.MaxOutput != 1500 || got.Config.Model != "m" || got.Session != "s1" || got.Config.MaxTokens != 0 {
		t.Errorf("request %+v", got.Config)
	}
	calls := callsOf(t, s.s.Log())
	if len(calls) != 1 {
		t.Fatalf("%d calls are logged", len(calls))
	}
	c := calls[0]
	nodes := outcrop.Prefix(s.s.Log(), int(c.Prefix)+1)
	fold, err := outcrop.FoldSurface(nodes.Records(0))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for fold.Nodes[at] != c.Through {
		at++
	}
	msgs := outcrop.DeriveMessages(nodes, fold.Nodes[:at+1])
	for _, m := range c.Extra {
		msgs = append(msgs, &outcrop.Message{Raw: m.AppendJSON(nil)})
	}
	h, _ := s.s.RequestHeader()
	if want := outcrop.DigestOf(h.Raw, msgs); c.Digest != want || c.Mode != "whole" || c.Purpose != "compaction" || c.Model != "p:m" || c.Call != 1 || c.Turn != nil {
		t.Errorf("recorded %+v, the digest made again is %s", c, want)
	}
	sum := string(s.s.Log().At(rep.Edits[0].First).Data)
	for _, part := range []string{`"sourceCommandId":"cmd-1"`, `"rawOutput":[{"type":"reasoning","text":"hm"},{"type":"text","text":"b and c were done."}]`,
		`"llmStreamCall":true`, `"summary":[{"type":"text","text":"b and c were done."}]`, `"maxTokens":1500`, `"usage":{"inputTokens":10,"outputTokens":5}`, `"level":1`} {
		if !strings.Contains(sum, part) {
			t.Errorf("no %s in %s", part, sum)
		}
	}
}

// asked plays a compaction whose summariser has a small window, and gives the
// modes of its calls.
func asked(t *testing.T, surface string, window int64, answer func(n int, req llm.Request, y func(message.Chunk, error) bool)) (modes []string, rep history.Report, s *scene) {
	t.Helper()
	s = draw(t, surface)
	n := 0
	m := manager(t, history.Options{Window: 100_000, Model: llm.Config{Provider: "p", Model: "small"}, ModelWindow: window,
		Provider: provider(func(_ context.Context, req llm.Request, y func(message.Chunk, error) bool) {
			if err := llm.Check(req); err != nil {
				t.Error(err)
			}
			if got := llm.EstimateRequest(req) + req.MaxOutput; got > window {
				t.Errorf("a request of %d tokens with its answer, the window has %d", got, window)
			}
			n++
			answer(n, req, y)
		})})
	rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range callsOf(t, s.s.Log()) {
		modes = append(modes, c.Mode)
		if c.Call != i+1 || c.Model != "p:small" {
			t.Errorf("call %+v", c)
		}
	}
	check(t, s.s)
	return modes, rep, s
}

func TestHowARangeIsMadeToFit(t *testing.T) {
	usage := &message.Usage{InputTokens: 7, OutputTokens: 2}
	short := func(_ int, _ llm.Request, y func(message.Chunk, error) bool) {
		say(y, message.Stop, usage, message.Text("Short."))
	}
	for _, c := range []struct {
		name, surface string
		window        int64
		want          string
	}{
		{"whole", "prompt:a=100 step:b=1000 step:c=1000 step:d=100 end", 20_000, "whole"},
		{"results cut", "prompt:a=100 step:b=9000 step:c=9000 step:d=100 end", 20_000, "cut"},
		{"parts, joined", "prompt:a=100 say:b=4000 say:c=4000 say:d=4000 say:e=4000 say:f=4000 say:g=100 end", 12_000, "part part part part part join"},
		{"one exchange that does not fit by itself", "prompt:a=100 say:b=40000 say:c=40 say:d=100 end", 12_000, "part"},
		{"texts cut until eight calls are enough", "prompt:a=100 say:b=30000 say:c=30000 say:d=30000 say:e=30000 say:f=100 end", 12_000, "part part part part join"},
	} {
		t.Run(c.name, func(t *testing.T) {
			modes, rep, s := asked(t, c.surface, c.window, short)
			if got := strings.Join(modes, " "); got != c.want {
				t.Errorf("modes %s, want %s", got, c.want)
			}
			if len(rep.Edits) != 1 || rep.Edits[0].ModelFree || rep.Calls > 8 {
				t.Fatalf("%+v", rep)
			}
			for ev := range outcrop.Events(s.s.Log(), 0) {
				if ev.Type != outcrop.TypeOutcropSummarizer {
					continue
				}
				switch call, err := history.RebuildCall(s.s.Log(), ev.Seq); {
				case errors.Is(err, history.ErrNotKept) && bytes.Contains(ev.Data, []byte(`"mode":"part"`)):
				case err != nil || call.Digest != call.Recorded || call.Recorded == "":
					t.Errorf("the request of event %d cannot be made again: %v, %s, recorded %s", ev.Seq, err, call.Digest, call.Recorded)
				}
			}
			sum := string(s.s.Log().At(rep.Edits[0].First).Data)
			if one := len(modes) == 1; strings.Contains(sum, "llmStreamCall") != one || strings.Contains(sum, "rawOutput") != one {
				t.Errorf("%d calls: %s", len(modes), sum)
			}
			if !strings.Contains(sum, `"usage":{"inputTokens":`+map[int]string{1: "7", 5: "35", 6: "42"}[len(modes)]) {
				t.Errorf("usage of %d calls: %s", len(modes), sum)
			}
		})
	}
}

func TestAModelThatFindsTheRequestTooLongGetsASmallerOne(t *testing.T) {
	modes, rep, _ := asked(t, "prompt:a=100 step:b=4000 step:c=4000 step:d=100 end", 30_000, func(n int, req llm.Request, y func(message.Chunk, error) bool) {
		if llm.EstimateRequest(req) > 5000 {
			y(message.Chunk{}, &message.Failure{Code: message.CodeContextWindow, Status: 400, Message: "context_length_exceeded"})
			return
		}
		say(y, message.Stop, nil, message.Text("Short."))
	})
	if strings.Join(modes, " ") != "whole cut" || rep.Edits[0].ModelFree {
		t.Errorf("modes %v, %+v", modes, rep)
	}
}

func TestABadAnswerIsAskedForOnceMoreInStricterWords(t *testing.T) {
	modes, rep, s := asked(t, "prompt:a=100 step:b=1000 step:c=1000 step:d=100 end", 30_000, func(n int, req llm.Request, y func(message.Chunk, error) bool) {
		if n == 1 {
			say(y, message.ToolCalls, nil, message.ToolCall("x", "read", "{}"))
			return
		}
		if !strings.Contains(text(req.Messages[len(req.Messages)-1]), "could not be used") {
			t.Error("the second request says nothing about the first answer")
		}
		say(y, message.Stop, nil, message.Text("Short."))
	})
	if strings.Join(modes, " ") != "whole whole" || rep.Edits[0].ModelFree || rep.Err != nil {
		t.Errorf("modes %v, %+v", modes, rep)
	}
	if extra := callsOf(t, s.s.Log())[1].Extra; len(extra) != 2 {
		t.Errorf("%d messages are recorded, want both", len(extra))
	}
}

// A pass makes eight calls at most, however many ranges it has.
func TestAPassMakesEightCallsAtMost(t *testing.T) {
	s := draw(t, "prompt:a=9 say:b=9000 say:c=9000 say:1=99 pin:1 say:d=9000 say:e=9000 say:2=99 pin:2 say:f=9000 say:g=9000 say:3=99 end")
	calls := 0
	m := manager(t, history.Options{Window: 100_000, Model: llm.Config{Provider: "p", Model: "small"}, ModelWindow: 12_000,
		Provider: provider(func(_ context.Context, _ llm.Request, y func(message.Chunk, error) bool) {
			calls++
			say(y, message.Stop, nil, message.Text("Short."))
		})})
	rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1})
	if err != nil || len(rep.Edits) != 3 || calls > 8 || rep.Calls != calls {
		t.Errorf("%d calls, %v, %+v", calls, err, rep)
	}
	check(t, s.s)
}

func TestCheckpointsAreNotQuotedByTheirFrame(t *testing.T) {
	s := draw(t, "prompt:a=100 cp1:kilo=200 cp1:lima=200 cp1:mike=200 cp1:nova=200 step:b=500 end")
	var ask string
	m := manager(t, history.Options{Provider: provider(func(_ context.Context, req llm.Request, y func(message.Chunk, error) bool) {
		ask = text(req.Messages[len(req.Messages)-1])
		say(y, message.Stop, nil, message.Text("All of it."))
	})})
	rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1})
	if err != nil || len(rep.Edits) != 1 || rep.Edits[0].Level != 2 {
		t.Fatal(err, rep)
	}
	if !strings.Contains(ask, `begins with "kilozz`) || !strings.Contains(ask, "one summary") {
		t.Errorf("instruction %q", ask)
	}
}

// All requests of a pass begin as the conversation's last request did, also
// those that are made when the pass has edited the surface already.
func TestEachRequestOfAPassIsAPrefixOfTheConversation(t *testing.T) {
	s := draw(t, "prompt:a=9 step:b=500 step:c=500 step:p=99 pin:p step:d=500 step:e=500 step:q=99 pin:q step:f=500 step:g=500 step:h=9 end")
	own := built(t, s.s, s.s.Surface().Len())
	n := 0
	m := manager(t, history.Options{Window: 30_000, Provider: provider(func(_ context.Context, req llm.Request, y func(message.Chunk, error) bool) {
		n++
		if diff := cmp.Diff(own[:len(req.Messages)-1], req.Messages[:len(req.Messages)-1]); diff != "" {
			t.Errorf("request %d: %s", n, diff)
		}
		say(y, message.Stop, nil, message.Text("Short."))
	})})
	rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: -1, End: -1})
	if err != nil || len(rep.Edits) != 3 || n != 3 {
		t.Fatalf("%d calls, %v, %+v", n, err, rep)
	}
	calls := callsOf(t, s.s.Log())
	h, _ := s.s.RequestHeader()
	for _, c := range calls {
		if c.Prefix != calls[0].Prefix {
			t.Errorf("call %d was made from event %d, the first one from %d", c.Call, c.Prefix, calls[0].Prefix)
		}
		fold, err := outcrop.SurfaceAt(s.s.Log(), c.Prefix)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for fold.Nodes[at] != c.Through {
			at++
		}
		msgs := outcrop.DeriveMessages(s.s.Log(), fold.Nodes[:at+1])
		for _, m := range c.Extra {
			msgs = append(msgs, &outcrop.Message{Raw: m.AppendJSON(nil)})
		}
		if want := outcrop.DigestOf(h.Raw, msgs); c.Digest != want {
			t.Errorf("call %d: digest %s, made again %s", c.Call, c.Digest, want)
		}
	}
	check(t, s.s)
}
