package agent_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/anthropic"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/llm/openai"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/wire"
)

// encoding is one way of sending requests, and the referee for it.
type encoding struct {
	name   string
	rules  llmtest.Rules
	effort string // of reasoning, where the dialect can turn it on
	body   func(llm.Request) []byte
}

// encodings are all providers with the quirks that change what they send.
func encodings() []encoding {
	var out []encoding
	add := func(name string, rules llmtest.Rules, q openai.Quirks) {
		p, err := openai.New(openai.Options{Name: "p", BaseURL: "http://127.0.0.1:1/v1", Quirks: q})
		if err != nil {
			panic(err)
		}
		out = append(out, encoding{name: name, rules: rules, body: p.Body})
	}
	completion := openai.Quirks{MaxTokens: "max_completion_tokens"}
	add("openai", llmtest.Rules{Profile: llmtest.OpenAI}, completion)
	add("openai, text only", llmtest.Rules{Profile: llmtest.OpenAI, TextOnly: true}, completion)
	add("openai, other members", llmtest.Rules{Profile: llmtest.OpenAI, OutputMember: "max_tokens"}, openai.Quirks{SystemRole: "developer", NoStreamUsage: true, Reasoning: openai.ReasoningPlain})
	add("deepseek", llmtest.Rules{Profile: llmtest.DeepSeek}, openai.Quirks{Reasoning: openai.ReasoningContent})
	add("alternate", llmtest.Rules{Profile: llmtest.Alternate}, openai.Quirks{AlternateRoles: true})
	add("alternate, system as user", llmtest.Rules{Profile: llmtest.Alternate, TextOnly: true}, openai.Quirks{AlternateRoles: true, SystemRole: "user"})
	for _, effort := range []string{"", "high"} {
		p, err := anthropic.New(anthropic.Options{Name: "p", BaseURL: "http://127.0.0.1:1"})
		if err != nil {
			panic(err)
		}
		e := encoding{name: "anthropic " + effort, rules: llmtest.Rules{Profile: llmtest.Anthropic}, effort: effort, body: p.Body}
		out = append(out, e)
		e.name, e.rules.TextOnly = e.name+", text only", true
		out = append(out, e)
	}
	return out
}

// judges holds each request of a session against all referees, in each
// encoding.
type judges struct {
	encodings []encoding
	referees  []*llmtest.Referee
	caches    []*llm.Cache

	mu    sync.Mutex
	first error // the first refusal
}

func newJudges() *judges {
	j := &judges{encodings: encodings()}
	for _, e := range j.encodings {
		j.referees = append(j.referees, llmtest.NewReferee(e.rules))
		j.caches = append(j.caches, new(llm.Cache))
	}
	return j
}

// announce says why the next request of a session need not go on from the one
// before.
func (j *judges) announce(session, why string) {
	for _, r := range j.referees {
		r.Announce(session, why)
	}
}

// judge encodes a request in every way.
func (j *judges) judge(req llm.Request) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, e := range j.encodings {
		req := req
		req.Images, req.Objects = !e.rules.TextOnly, pictures
		if e.effort != "" {
			half := 0.5
			req.Config.ReasoningEffort, req.Config.MaxTokens, req.Config.Temperature = e.effort, 8000, &half
		}
		if req.Images && countImages(req.Messages) > 20 {
			// Which of them still fit depends on those that come later.
			j.referees[i].Announce(req.Session, "more images than a request may hold")
		}
		req.Cache = nil
		fresh := e.body(req)
		req.Cache = j.caches[i]
		body := e.body(req)
		err := error(nil)
		if f := j.referees[i].Judge(req.Session, body); f != nil {
			err = fmt.Errorf("%s refuses turn %d step %d attempt %d: %w\n%.4000s", e.name, req.Turn, req.Step, req.Attempt, f, body)
		} else if !bytes.Equal(fresh, body) {
			err = fmt.Errorf("%s: turn %d step %d attempt %d: what was kept of earlier requests changes the body\n%s\n%s", e.name, req.Turn, req.Step, req.Attempt, fresh, body)
		}
		if err != nil {
			j.first = cmp.Or(j.first, err)
			return err
		}
	}
	return nil
}

func countImages(msgs []message.Message) int {
	n := 0
	for i := range msgs {
		for _, b := range msgs[i].Content {
			for _, c := range append([]message.Block{b}, b.Content...) {
				if c.Type == message.ImageBlock {
					n++
				}
			}
		}
	}
	return n
}

// renders judges the request that a log gives after the event seq.
func (j *judges) renders(log outcrop.Log, seq outcrop.Seq) error {
	fold, err := outcrop.SurfaceAt(log, seq)
	if err != nil {
		return err
	}
	nodes, err := requests.Parse(outcrop.DeriveMessages(log, fold.Nodes))
	if err != nil {
		return err
	}
	req := llm.Request{Config: llm.Config{Provider: "p", Model: "m", MaxTokens: 100}, System: "Be kind.", Messages: llm.Build(nodes)}
	if err := llm.Check(req); err != nil {
		return fmt.Errorf("after event %d: %w", seq, err)
	}
	if err := j.judge(req); err != nil {
		return fmt.Errorf("after event %d: %w", seq, err)
	}
	return nil
}

// refusedHere finds a turn that ended because a request of ours was refused.
func refusedHere(log outcrop.Log) error {
	for ev := range outcrop.Events(log, 0) {
		if ev.Type != outcrop.TypeTurnEnd {
			continue
		}
		var d struct {
			Reason struct{ Error message.Failure }
		}
		if err := json.Unmarshal(ev.Data, &d); err != nil {
			return err
		}
		if c := d.Reason.Error.Code; c == message.CodeInvalidRequest || c == "REFUSED" {
			return fmt.Errorf("event %d: %s: %s", ev.Seq, c, d.Reason.Error.Message)
		}
	}
	return nil
}

// Whatever model, tools, people and crashes do to a session, each of its
// requests is one that every provider accepts, and begins as the one before.
func TestEveryRequestOfAnySessionIsAcceptedEverywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lives := rapid.SliceOfN(rapid.Custom(drawStrictLife), 1, 3).Draw(rt, "lives")
		header := ownHeader()
		if rapid.Bool().Draw(rt, "compatible") {
			header = compatibleHeader()
		}
		var err error
		synctest.Test(t, func(*testing.T) { err = playLives(header, lives) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func playLives(header outcrop.Header, lives []strictLife) error {
	j := newJudges()
	s, err := outcrop.New(header, outcrop.Options{})
	if err != nil {
		return err
	}
	for _, l := range lives {
		w := &strictWorld{strictLife: l, j: j}
		if err := w.live(s); err != nil {
			return fmt.Errorf("%w\n%s", err, clipped(s.Log()))
		}
		synctest.Wait() // calls that were left behind
		if err := cmp.Or(checked(s.Log()), refusedHere(s.Log())); err != nil {
			return fmt.Errorf("%w\n%s", err, clipped(s.Log()))
		}
		n := s.Len() * l.Keep / 1000
		s, err = outcrop.Restore(header, records(outcrop.Prefix(s.Log(), n)), outcrop.Options{})
		if err != nil {
			return fmt.Errorf("after a crash that left %d events: %w", n, err)
		}
		j.announce(s.ID(), "a crash lost events")
	}
	all := newJudges()
	for ev := range outcrop.Events(s.Log(), 0) {
		if ev.Type == outcrop.TypeTurnEnd || ev.Type == outcrop.TypeAssistantMessage || ev.Type == outcrop.TypeToolResult {
			if err := all.renders(s.Log(), ev.Seq); err != nil {
				return fmt.Errorf("%w\n%s", err, clipped(s.Log()))
			}
		}
	}
	return nil
}

// clipped is a log as text that a person can read when a test fails.
func clipped(log outcrop.Log) string {
	var b strings.Builder
	for ev := range outcrop.Events(log, 0) {
		line := ev.AppendJSON(nil)
		if len(line) > 400 {
			line = append(line[:400:400], "..."...)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}

// An image of each kind, in each place, whatever its size.
func TestAnImageIsAcceptedEverywhereOrLeftOut(t *testing.T) {
	for name := range pictureIDs {
		t.Run(name, func(t *testing.T) {
			j := newJudges()
			msgs := []llm.Node{
				{Seq: 1, Message: message.Message{Role: message.User, Content: []message.Block{imageBlock(name)}}},
				{Seq: 2, Message: message.Message{Role: message.Assistant, Content: []message.Block{message.ToolCall("a", "look", "{}"), message.ToolCall("b", "look", "{}")}}},
				{Seq: 3, Message: message.Message{Role: message.User, Content: []message.Block{message.ToolResult("a", false, imageBlock(name))}}},
				{Seq: 4, Message: message.Message{Role: message.User, Content: []message.Block{message.ToolResult("b", true, message.Text("no"), imageBlock(name))}}},
				{Seq: 5, Message: message.Message{Role: message.User, Content: []message.Block{message.Text("And this?"), imageBlock(name)}}},
			}
			if err := j.judge(llm.Request{Config: llm.Config{Provider: "p", Model: "m"}, Messages: llm.Build(msgs)}); err != nil {
				t.Errorf("%.2000s", err)
			}
		})
	}
}

// Images that fit one by one make a body that does not.
func TestImagesThatTogetherAreTooManyBytesAreLeftOut(t *testing.T) {
	var msgs []llm.Node
	for i := range 5 {
		msgs = append(msgs, llm.Node{Seq: int64(i), Message: message.Message{Role: message.User, Content: []message.Block{imageBlock("weighty")}}})
	}
	if err := newJudges().judge(llm.Request{Config: llm.Config{Provider: "p", Model: "m"}, Messages: llm.Build(msgs)}); err != nil {
		t.Errorf("%.300s", err)
	}
}

// Every real log, at the end of each of its turns.
func TestRealLogsRenderToRequestsThatAreAcceptedEverywhere(t *testing.T) {
	turns := 0
	eachRealLog(t, func(t *testing.T, _ string, _ outcrop.Header, log outcrop.Log) {
		j := newJudges()
		for ev := range outcrop.Events(log, 0) {
			if ev.Type == outcrop.TypeTurnEnd {
				turns++
				if err := j.renders(log, ev.Seq); err != nil {
					t.Errorf("%.2000s", err)
				}
			}
		}
	})
	if turns < 80 {
		t.Errorf("only %d turns were seen", turns)
	}
}

// eachRealLog calls f for each session of the corpus that can be restored, as
// it is stored.
func eachRealLog(t *testing.T, f func(t *testing.T, name string, h outcrop.Header, log outcrop.Log)) {
	root := filepath.Join(conformance.Dir(), "corpus")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		enc, ok := wire.EncodingOf(path)
		if err != nil || d.IsDir() || !ok {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r, err := wire.NewReader(bytes.NewReader(b), int64(len(b)), enc)
		if err != nil {
			return nil // what cannot be opened is the business of package wire
		}
		var recs []outcrop.Record
		for rec, err := range r.Records() {
			if err != nil {
				return nil
			}
			recs = append(recs, rec)
		}
		s, err := outcrop.Inspect(r.Header(), func(yield func(outcrop.Record, error) bool) {
			for _, rec := range recs {
				if !yield(rec, nil) {
					return
				}
			}
		}, outcrop.Options{})
		if err != nil {
			return nil
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) { f(t, filepath.ToSlash(name), r.Header(), s.Log()) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every log of the vectors that can be loaded, at the end of each of its turns
// and at its end.
func TestVectorsRenderToRequestsThatAreAcceptedEverywhere(t *testing.T) {
	seen := 0
	for _, file := range []string{"surface", "repair", "request", "prune", "compaction", "fork"} {
		for _, line := range conformance.Lines(t, file) {
			var v struct {
				Name   string
				Events []json.RawMessage
			}
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			s, err := outcrop.Restore(compatibleHeader(), lineRecords(v.Events), outcrop.Options{})
			if err != nil {
				continue
			}
			j := newJudges()
			ends := []outcrop.Seq{outcrop.Seq(s.Len() - 1)}
			for ev := range outcrop.Events(s.Log(), 0) {
				if ev.Type == outcrop.TypeTurnEnd {
					ends = append(ends, ev.Seq)
				}
			}
			slices.Sort(ends)
			for _, seq := range ends {
				seen++
				if err := j.renders(s.Log(), seq); err != nil {
					t.Errorf("%s %s: %.2000s", file, v.Name, err)
				}
			}
		}
	}
	if seen < 1500 {
		t.Errorf("only %d surfaces were seen", seen)
	}
}

func lineRecords(lines []json.RawMessage) func(func(outcrop.Record, error) bool) {
	return func(yield func(outcrop.Record, error) bool) {
		for _, l := range lines {
			ev, err := outcrop.DecodeEvent(l)
			if !yield(outcrop.Record{Event: ev}, err) || err != nil {
				return
			}
		}
	}
}
