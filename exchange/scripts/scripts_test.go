package scripts_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/scripts"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/replay"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/wire"
)

func write(t testing.TB, src transcript.Source) *script.Script {
	t.Helper()
	var out bytes.Buffer
	rep, err := scripts.Write(context.Background(), &out, src, scripts.Options{Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := script.Parse("x.jsonl", out.Bytes())
	if err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	if len(s.Replies) != rep.Replies {
		t.Fatalf("%d replies, the report says %d", len(s.Replies), rep.Replies)
	}
	return s
}

// said is what a model streams for an attempt, deltas joined.
func said(ctx context.Context, p llm.Provider, req llm.Request) (out []string) {
	for c, err := range p.Stream(ctx, req) {
		if err != nil {
			return append(out, "failed: "+err.Error())
		}
		switch c.Type {
		case message.TextDelta, message.ReasoningDelta, message.ToolCallDelta:
			kind := string(c.Type) + ": "
			if n := len(out); n > 0 && strings.HasPrefix(out[n-1], kind) {
				out[n-1] += c.Text
				continue
			}
			out = append(out, kind+c.Text)
		case message.FinishChunk:
			out = append(out, "finish "+string(c.Reason.Kind))
		}
	}
	return out
}

// compare plays every attempt of a log from the script and from the log itself.
func compare(t testing.TB, log outcrop.Log, s *script.Script) {
	t.Helper()
	recorded := replay.New(log, replay.Options{})
	played := &script.Model{Script: s}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for a := range recorded.Attempts() {
		if a.Cut {
			continue // nothing ends it here
		}
		req := llm.Request{Turn: a.Turn, Step: a.Step, Attempt: a.N, Purpose: llm.Turn,
			Config:   llm.Config{Provider: "script", Model: s.Header.Model},
			Messages: []message.Message{{Role: message.User, Content: []message.Block{message.Text("x")}}}}
		want, got := said(ctx, recorded, req), said(ctx, played, req)
		if a.Chunks == 0 && a.Failure == nil {
			continue // the log has the message alone
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("turn %d step %d attempt %d: -recorded +script\n%s", a.Turn, a.Step, a.N, diff)
		}
	}
}

func inspect(t testing.TB, sd store.Stored) *outcrop.Session {
	t.Helper()
	s, err := outcrop.Inspect(sd.Header(), sd.Records(), outcrop.Options{})
	if err != nil {
		t.Skipf("the log is refused: %v", err)
	}
	return s
}

// TestTheCorpusIsPlayedAsItWas compares script and replay for every real log.
func TestTheCorpusIsPlayedAsItWas(t *testing.T) {
	n := 0
	err := filepath.WalkDir(filepath.Join(conformance.Dir(), "corpus"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, ok := wire.EncodingOf(path); !ok {
			return nil
		}
		st, err := jsonl.File(path, jsonl.Options{})
		if err != nil {
			return nil
		}
		sd, err := st.Read(context.Background(), "")
		if err != nil {
			return nil // no session in it, on purpose
		}
		defer sd.Close()
		n++
		t.Run(strings.TrimPrefix(path, conformance.Dir()), func(t *testing.T) {
			compare(t, inspect(t, sd).Log(), write(t, transcript.Stored(st, "")))
		})
		return nil
	})
	if err != nil || n < 5 {
		t.Errorf("%v, %d logs", err, n)
	}
}

func TestGeneratedLogsArePlayedAsTheyWere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64Range(1, 10_000).Draw(rt, "seed")
		n := rapid.IntRange(1, 500).Draw(rt, "events")
		h := genlog.Header(seed)
		st := memory.New()
		recs := func(yield func(outcrop.Record, error) bool) {
			for r := range genlog.Records(seed, n) {
				if !yield(r, nil) {
					return
				}
			}
		}
		if err := st.Put(context.Background(), h, recs); err != nil {
			rt.Fatal(err)
		}
		s, err := outcrop.Inspect(h, recs, outcrop.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		compare(t, s.Log(), write(t, transcript.Stored(st, h.ID)))
	})
}

// Chunks that a log may hold and a script may not are left out.
func TestChunksOfNoShapeAreLeftOut(t *testing.T) {
	const header = `{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0}`
	for _, chunk := range []string{`{"type":"block-end","index":0}`, `{"type":"block-end","index":0,"block":7}`, `{"type":"block-end","index":0,"block":null}`,
		`{"type":"block-start"}`, `{"type":"usage"}`, `{"type":"usage","usage":[]}`, `{"type":"text-delta","index":-1,"text":5}`, `{"type":"tool-call-delta"}`,
		`{"type":"text-delta","index":1e9}`, `{"type":"later"}`, `{}`, `7`, `null`, `{"type":"finish"}`, `{"type":"finish","reason":3}`, `{"type":"finish","reason":{"kind":"error"}}`} {
		text := header + "\n"
		for i, e := range []string{`"turn/start","data":{"turn":1}`, `"step/start","data":{"turn":1,"step":1}`,
			`"assistant/chunk","data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"a"}}`,
			`"assistant/chunk","data":{"turn":1,"step":1,"chunk":` + chunk + `}`,
			`"assistant/chunk","data":{"turn":1,"step":1,"chunk":{"type":"finish","reason":{"kind":"stop"}}}`} {
			text += fmt.Sprintf(`{"seq":%d,"time":1,"type":%s}`+"\n", i, e)
		}
		path := filepath.Join(t.TempDir(), "session.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := jsonl.File(path, jsonl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []bool{true, false} {
			var out bytes.Buffer
			rep, err := scripts.Write(context.Background(), &out, transcript.Stored(st, ""), scripts.Options{Raw: raw})
			if err != nil || rep.Damage != nil {
				t.Fatalf("%s: %v, %v", chunk, err, rep.Damage)
			}
			if _, err := script.Parse("x.jsonl", out.Bytes()); err != nil {
				t.Errorf("%s: %v\n%s", chunk, err, out.Bytes())
			}
		}
	}
}

// ExampleWrite writes the script of a log file.
func ExampleWrite() {
	st, _ := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	f, _ := os.CreateTemp("", "script")
	defer os.Remove(f.Name())
	defer f.Close()
	rep, err := scripts.Write(context.Background(), f, transcript.Stored(st, ""), scripts.Options{})
	fmt.Println(rep.Replies, rep.Masked, err)
	// Output: 5 0 <nil>
}
