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
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// long is a rollout of about so many bytes: turns of three calls each, with
// encrypted reasoning and outputs of 6 KB.
func long(t testing.TB, size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	code := exchangetest.SourceOfPrograms(t, filepath.Join("..", "..", "*.go"))
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

// BenchmarkImport imports a long session.
func BenchmarkImport(b *testing.B) {
	text := long(b, 32<<20)
	path := filepath.Join(b.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		b.Fatal(err)
	}
	exchangetest.BenchmarkImport(b, codex.Open(path), text)
}

// TestMemoryStaysFlat reads rollouts of 4 MB and 16 MB and looks at what is live
// on the way: the surface, eight bytes a message, and the line at hand.
func TestMemoryStaysFlat(t *testing.T) {
	live := func(size int) (peak uint64) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, long(t, size), 0o600); err != nil {
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
	text := long(b, 4<<20)
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
