package codex_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// source is the text of programs, as outputs of tools are: that of this module.
var source = sync.OnceValue(func() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join("..", "..", "*.go"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		b.Write(text)
	}
	return b.String()
})

// long is a rollout of about so many bytes: turns of three calls each, with
// encrypted reasoning and outputs of 6 KB.
func long(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	code := source()
	prose := func(n int) string {
		at := r.IntN(len(code) - n)
		return strings.ToValidUTF8(code[at:at+n], "")
	}
	var out bytes.Buffer
	n := int64(0)
	put := func(l string) {
		n++
		out.WriteString(`{"timestamp":"` + time.UnixMilli(1772359200000+n*100).UTC().Format("2006-01-02T15:04:05.000Z") + `",` + l + "}\n")
	}
	put(meta(""))
	put(turnContext)
	for turn := 0; out.Len() < size; turn++ {
		put(started)
		put(user(prose(200)))
		for k := range 3 {
			id := fmt.Sprintf("c%d-%d", turn, k)
			put(item(`{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"` + strings.Repeat("gAAA", 200) + `"}`))
			put(call(id))
			put(tokens(int(n), 9, 3, 2))
			put(item(`{"type":"function_call_output","call_id":"` + id + `","output":` + string(jsonwire.AppendString(nil, prose(6000))) + `}`))
		}
		put(says(prose(500)))
		put(complete)
	}
	return out.Bytes()
}

// BenchmarkImport makes the log of a long rollout, and imports it into a store of
// compressed files. The floor is a bare pass over the same lines, each checked to
// be JSON: what any reader of them has to do once. The shortest of each are
// compared: what else runs on the machine only adds.
func BenchmarkImport(b *testing.B) {
	text := long(32 << 20)
	path := filepath.Join(b.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	run := func(name string, do func(b *testing.B) error) {
		b.Run(name, func(b *testing.B) {
			floor, took := time.Hour, time.Hour
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				b.StopTimer()
				start := time.Now()
				for line := range exchange.Lines(bytes.NewReader(text), nil) {
					if err := jsonwire.Valid(line.Text); err != nil {
						b.Fatal(err)
					}
				}
				floor = min(floor, time.Since(start))
				b.StartTimer()
				start = time.Now()
				if err := do(b); err != nil {
					b.Fatal(err)
				}
				took = min(took, time.Since(start))
			}
			b.ReportMetric(float64(took)/float64(floor), "x-floor")
			b.ReportMetric(float64(len(text))/1e6/took.Seconds(), "best-MB/s")
		})
	}
	run("log", func(*testing.B) error {
		for s, err := range codex.Sessions(ctx, path, nil) {
			if err != nil {
				return err
			}
			h, err := s.Header(ctx, exchange.Options{})
			if err != nil {
				return err
			}
			for _, err := range s.Records(ctx, h, exchange.Options{}) {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	run("stored", func(b *testing.B) error {
		st, err := jsonl.New(filepath.Join(b.TempDir(), "sessions"), jsonl.Options{})
		if err != nil {
			return err
		}
		im := &exchange.Importer{Store: st}
		r, err := im.Import(ctx, codex.Open(path))
		if err == nil {
			err = r.Err
		}
		return err
	})
}

// TestMemoryStaysFlat reads rollouts of 4 MB and 16 MB and looks at what is live
// on the way: the surface, eight bytes a message, and the line at hand.
func TestMemoryStaysFlat(t *testing.T) {
	live := func(size int) (peak uint64) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, long(size), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		for s, err := range codex.Sessions(ctx, path, nil) {
			if err != nil {
				t.Fatal(err)
			}
			h, err := s.Header(ctx, exchange.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range s.Records(ctx, h, exchange.Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Seq%1000 == 0 {
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapAlloc)
				}
			}
		}
		return peak
	}
	if short, longer := live(4<<20), live(16<<20); int64(longer)-int64(short) > 3<<20 {
		t.Errorf("12 MB more of text take %d bytes more of memory", longer-short)
	}
}

// BenchmarkImportMany imports eight rollouts of 4 MB at once. The floor is that of
// one after another, in the same run: with n cores it can be n times as long.
func BenchmarkImportMany(b *testing.B) {
	dir := b.TempDir()
	text := long(4 << 20)
	var sources []exchange.Source
	for i := range 8 {
		id := fmt.Sprintf("0199aaaa-bbbb-7ccc-8ddd-%012d", i)
		path := filepath.Join(dir, "rollout-2026-03-01T10-00-00-"+id+".jsonl")
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(thread), []byte(id)), 0o600); err != nil {
			b.Fatal(err)
		}
		sources = append(sources, codex.Open(path))
	}
	ctx := context.Background()
	importer := func() *exchange.Importer {
		st, err := jsonl.New(filepath.Join(b.TempDir(), "sessions"), jsonl.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return &exchange.Importer{Store: st}
	}
	floor, took := time.Hour, time.Hour
	b.SetBytes(int64(len(sources) * len(text)))
	for b.Loop() {
		b.StopTimer()
		im, start := importer(), time.Now()
		for _, src := range sources {
			if r, err := im.Import(ctx, src); err != nil || r.Err != nil || len(r.Sessions) != 1 {
				b.Fatal(r, err)
			}
		}
		floor = min(floor, time.Since(start))
		im = importer()
		b.StartTimer()
		start = time.Now()
		for r, err := range im.ImportAll(ctx, sources) {
			if err != nil || r.Err != nil || r.Sessions[0].Verdict != exchange.Imported {
				b.Fatal(r, err)
			}
		}
		took = min(took, time.Since(start))
	}
	b.ReportMetric(float64(floor)/float64(took), "x-faster")
	b.ReportMetric(float64(len(sources)*len(text))/1e6/took.Seconds(), "best-MB/s")
}
