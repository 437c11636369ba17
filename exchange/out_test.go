package exchange_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/exchange/body"
	"github.com/outcrop-dev/outcrop/exchange/handover"
	"github.com/outcrop-dev/outcrop/exchange/html"
	"github.com/outcrop-dev/outcrop/exchange/lines"
	"github.com/outcrop-dev/outcrop/exchange/markdown"
	"github.com/outcrop-dev/outcrop/exchange/portable"
	"github.com/outcrop-dev/outcrop/exchange/scripts"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// largeLog is a log file of this size in text.
func largeLog(t testing.TB, size int64) store.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.jsonl.zstd")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := genlog.Write(f, wire.Zstd, true, size); err != nil {
		t.Fatal(err)
	}
	st, err := jsonl.File(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// export is a way out.
type export struct {
	name  string
	write func(ctx context.Context, w io.Writer, st store.Store, src transcript.Source) error
}

var exports = []export{
	{"md", func(ctx context.Context, w io.Writer, _ store.Store, src transcript.Source) error {
		_, err := markdown.Write(ctx, w, src, markdown.Options{})
		return err
	}},
	{"html", func(ctx context.Context, w io.Writer, _ store.Store, src transcript.Source) error {
		_, err := html.Write(ctx, w, src, html.Options{})
		return err
	}},
	{"jsonl", func(ctx context.Context, w io.Writer, _ store.Store, src transcript.Source) error {
		_, err := lines.Write(ctx, w, src, lines.Options{})
		return err
	}},
	{"jsonl-raw", func(ctx context.Context, w io.Writer, _ store.Store, src transcript.Source) error {
		_, err := lines.Write(ctx, w, src, lines.Options{Raw: true})
		return err
	}},
	{"script", func(ctx context.Context, w io.Writer, _ store.Store, src transcript.Source) error {
		_, err := scripts.Write(ctx, w, src, scripts.Options{})
		return err
	}},
	{"zip", func(ctx context.Context, w io.Writer, st store.Store, _ transcript.Source) error {
		_, err := portable.Write(ctx, w, st, []string{""}, portable.Options{})
		return err
	}},
	{"zip-raw", func(ctx context.Context, w io.Writer, st store.Store, _ transcript.Source) error {
		_, err := portable.Write(ctx, w, st, []string{""}, portable.Options{Raw: true})
		return err
	}},
}

// ofTheSurface hold what the model sees, and nothing else.
var ofTheSurface = []export{
	{"openai", func(ctx context.Context, w io.Writer, _ store.Store, src transcript.Source) error {
		_, err := body.Write(ctx, w, src, body.OpenAI, body.Options{Model: "m"})
		return err
	}},
	{"claude-code", func(ctx context.Context, w io.Writer, _ store.Store, src transcript.Source) error {
		_, err := handover.ClaudeCode(ctx, w, src, handover.Options{})
		return err
	}},
}

// gauge is a writer that looks at what the program holds whenever some
// megabytes went by.
type gauge struct {
	written, looked int64
	most            uint64
}

func (g *gauge) Write(b []byte) (int, error) {
	if g.written += int64(len(b)); g.written-g.looked >= 4<<20 {
		g.looked = g.written
		g.look()
	}
	return len(b), nil
}

func (g *gauge) look() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	g.most = max(g.most, m.HeapAlloc)
}

// TestALogOfAnySizeIsExportedInTheSameMemory: while a log passes by, blocks that
// are read ahead are held, and little else.
func TestALogOfAnySizeIsExportedInTheSameMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a large log: run without -short")
	}
	st := largeLog(t, 32<<20)
	for _, e := range exports {
		if e.name == "html" || strings.HasSuffix(e.name, "-raw") {
			continue // read as md is, or copied
		}
		var before, during gauge
		before.look()
		if err := e.write(t.Context(), &during, st, transcript.Stored(st, "")); err != nil {
			t.Fatal(err)
		}
		held := int64(during.most) - int64(before.most)
		t.Logf("%s: %d KB", e.name, held>>10)
		if held > 24<<20 {
			t.Errorf("%s holds %d bytes of a log of 32 MB", e.name, held)
		}
	}
}

// BenchmarkExport writes a log of 60 MB of text in each form. The floor is one
// pass over its records with their digest, measured in the same run; times-floor
// is what an export costs of it.
func BenchmarkExport(b *testing.B) {
	size := int64(60 << 20)
	if testing.Short() {
		size = 2 << 20
	}
	st := largeLog(b, size)
	ctx := context.Background()
	src := transcript.Stored(st, "")
	floor := func() time.Duration {
		began := time.Now()
		sd, err := st.Read(ctx, "")
		if err != nil {
			b.Fatal(err)
		}
		defer sd.Close()
		var d store.Digest
		for r, err := range sd.Records() {
			if err != nil {
				b.Fatal(err)
			}
			d.Add(r)
		}
		d.Sum()
		return time.Since(began)
	}
	for _, c := range append(exports, ofTheSurface...) {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size)
			var least time.Duration
			for b.Loop() {
				b.StopTimer()
				if d := floor(); least == 0 || d < least {
					least = d
				}
				b.StartTimer()
				if err := c.write(ctx, io.Discard, st, src); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(least), "times-floor")
		})
	}
}
