package exchange_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// BenchmarkExport writes a log of 60 MB of text in each form. The floor is one
// pass over its records with their digest, measured in the same run; times-floor
// is what an export costs of it.
func BenchmarkExport(b *testing.B) {
	size := int64(60 << 20)
	if testing.Short() {
		size = 2 << 20
	}
	path := filepath.Join(b.TempDir(), "x.jsonl.zstd")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := genlog.Write(f, wire.Zstd, true, size); err != nil {
		b.Fatal(err)
	}
	f.Close()
	st, err := jsonl.File(path, jsonl.Options{})
	if err != nil {
		b.Fatal(err)
	}
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
	for _, c := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"md", func(w io.Writer) error { _, err := markdown.Write(ctx, w, src, markdown.Options{}); return err }},
		{"html", func(w io.Writer) error { _, err := html.Write(ctx, w, src, html.Options{}); return err }},
		{"jsonl", func(w io.Writer) error { _, err := lines.Write(ctx, w, src, lines.Options{}); return err }},
		{"jsonl-raw", func(w io.Writer) error { _, err := lines.Write(ctx, w, src, lines.Options{Raw: true}); return err }},
		{"script", func(w io.Writer) error { _, err := scripts.Write(ctx, w, src, scripts.Options{}); return err }},
		{"zip", func(w io.Writer) error {
			_, err := portable.Write(ctx, w, st, []string{""}, portable.Options{})
			return err
		}},
		{"zip-raw", func(w io.Writer) error {
			_, err := portable.Write(ctx, w, st, []string{""}, portable.Options{Raw: true})
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size)
			var least time.Duration
			for b.Loop() {
				b.StopTimer()
				if d := floor(); least == 0 || d < least {
					least = d
				}
				b.StartTimer()
				if err := c.write(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(least), "times-floor")
		})
	}
}
