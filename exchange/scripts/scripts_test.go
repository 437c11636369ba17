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
