package codex_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
)

// TestEveryRolloutMakesAValidSession draws lines in any order, with calls of
// the same ids, outputs of nobody, counts and marks anywhere, with and without
// frames, and cuts the file anywhere.
func TestEveryRolloutMakesAValidSession(t *testing.T) {
	lines := []string{
		meta(""), meta(`,"forked_from_id":"other"`), started, complete, turnContext, user("a"), user("<environment_context>x"), says("b"), call("c1"), call("c2"), call(""),
		gives("c1"), gives("c2"), gives("lost"), tokens(1, 5, 2, 1), tokens(2, 5, 9, 1),
		item(`{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"content":[{"type":"reasoning_text","text":"r"}],"encrypted_content":"e"}`),
		item(`{"type":"custom_tool_call","call_id":"c1","name":"p","input":"i"}`), item(`{"type":"custom_tool_call_output","call_id":"c1","output":""}`),
		item(`{"type":"web_search_call","action":{}}`), item(`{"type":"odd_output","call_id":"c2"}`), item(`{"type":"text"}`), item(`{}`), item(`{"type":"message","role":"developer","content":"d"}`),
		item(`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"http://x"},{"type":"input_image","image_url":"data:image/png;base64,` + png + `"},{"type":"odd"}]}`),
		event(`{"type":"turn_aborted"}`), event(`{"type":"thread_rolled_back","num_turns":1}`), event(`{"type":"error","message":"e"}`), event(`{"type":"thread_name_updated","thread_name":"T"}`), event(`{}`),
		`"type":"compacted","payload":{"message":"S"}`, `"type":"compacted","payload":{"replacement_history":[{"type":"message","role":"user","content":"x"},{"type":"message","content":[]}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"bare"}]}`, `{"record_type":"state"}`, `junk`, `[]`, ``,
	}
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		all := []string{rapid.SampledFrom([]string{meta(""), meta(`,"forked_from_id":"other"`), `{"id":"` + thread + `","timestamp":"2025-08-01T10:00:00.000Z"}`, user("no head")}).Draw(rt, "head")}
		for range rapid.IntRange(0, 30).Draw(rt, "lines") {
			all = append(all, rapid.SampledFrom(lines).Draw(rt, "line"))
		}
		text := rollout(all...)
		write(t, dir, name, text[:len(text)-rapid.IntRange(0, min(len(text), 40)).Draw(rt, "cut")])
		f := codex.Format()
		f.Claims = func(string, []byte) bool { return true }
		for _, r := range exchangetest.Import(rt, f, dir).Reports {
			if r.Err != nil && !errors.Is(r.Err, outcrop.ErrDamaged) { // cut inside its first line
				rt.Fatalf("%v\n%s", r.Err, text)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	plain := rollout(meta(""), started, turnContext, user("one"), call("c1"), gives("c1"), tokens(9, 7, 3, 2), says("1"), complete)
	bare := rollout(`{"id":"`+thread+`","timestamp":"2025-08-01T10:00:00.000Z"}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	for k, b := range [][]byte{[]byte(plain), enc.EncodeAll([]byte(plain), nil), []byte(`{"session":{"id":"x"},"items":[{"type":"message","role":"user","content":"a"}]}`), []byte(bare)} {
		f.Add(b, k)
	}
	f.Fuzz(func(t *testing.T, b []byte, k int) {
		path := [...]string{"r.jsonl", "r.jsonl.zst", "r.json", "r.jsonl"}[uint(k)%4]
		codex.Claims(path, b)
		s, err := codex.Read(path, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
		if err != nil {
			return
		}
		ctx := context.Background()
		o := exchange.Options{Objects: exchange.Measure, Report: &exchange.Report{}}
		h, err := s.Header(ctx, o)
		if err != nil {
			return // a compressed file may be damaged behind its first line
		}
		var failed error
		if _, err := outcrop.Restore(h, func(yield func(outcrop.Record, error) bool) {
			for r, err := range s.Records(ctx, h, o) {
				if err != nil {
					failed = err
					return
				}
				if !yield(r, nil) {
					return
				}
			}
		}, outcrop.Options{}); err != nil {
			t.Fatal(fmt.Errorf("%w (reading: %v)", err, failed))
		}
		if failed != nil && path != "r.jsonl.zst" {
			t.Fatal(failed)
		}
	})
}
