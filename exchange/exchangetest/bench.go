package exchangetest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/cputime"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// BenchmarkImport makes the log of a source of about so many bytes, which is a
// file with text, and imports it into stores of files, plain and compressed.
//
// The floor is what each has to do once: go over the lines, each checked to be
// JSON, and, for the compressed store, compress the log's text as quickly as the
// library can. Times are those of the processors, and the shortest of each are
// compared: what else runs on the machine only adds.
func BenchmarkImport(b *testing.B, src exchange.Source, text []byte) {
	ctx := context.Background()
	check := func() {
		for line := range exchange.Lines(bytes.NewReader(text), nil) {
			if err := jsonwire.Valid(line.Text); err != nil {
				b.Fatal(err)
			}
		}
	}
	log := logOf(b, src)
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(2<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		b.Fatal(err)
	}
	defer z.Close()
	var room []byte
	compress := func() {
		for rest := log; len(rest) > 0; {
			n := min(len(rest), 64<<10)
			room = z.EncodeAll(rest[:n], room[:0])
			rest = rest[n:]
		}
	}
	run := func(name string, floor, do func()) {
		b.Run(name, func(b *testing.B) {
			least, used := time.Hour, time.Hour
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				b.StopTimer()
				from := cputime.Used()
				floor()
				least = min(least, cputime.Used()-from)
				b.StartTimer()
				from = cputime.Used()
				do()
				used = min(used, cputime.Used()-from)
			}
			b.ReportMetric(float64(used)/float64(least), "x-floor")
			b.ReportMetric(float64(len(text))/1e6/used.Seconds(), "MB/cpu-s")
			b.ReportMetric(float64(len(text))/1e6/least.Seconds(), "floor-MB/cpu-s")
		})
	}
	stored := func(plain bool) func() {
		return func() {
			st, err := jsonl.New(filepath.Join(b.TempDir(), "sessions"), jsonl.Options{Plain: plain})
			if err != nil {
				b.Fatal(err)
			}
			r, err := (&exchange.Importer{Store: st}).Import(ctx, src)
			if err != nil || r.Err != nil {
				b.Fatal(err, r.Err)
			}
		}
	}
	run("log", check, func() { records(b, src, func(outcrop.Record) {}) })
	run("stored=plain", check, stored(true))
	run("stored=zstd", func() { check(); compress() }, stored(false))
}

// records makes the records of all sessions of a source.
func records(b *testing.B, src exchange.Source, each func(outcrop.Record)) {
	b.Helper()
	ctx := context.Background()
	for s, err := range src.Sessions(ctx, nil) {
		if err != nil {
			b.Fatal(err)
		}
		h, err := s.Header(ctx, exchange.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for r, err := range s.Records(ctx, h, exchange.Options{}) {
			if err != nil {
				b.Fatal(err)
			}
			each(r)
		}
	}
}

// logOf is the text of the logs.
func logOf(b *testing.B, src exchange.Source) (log []byte) {
	b.Helper()
	records(b, src, func(r outcrop.Record) { log = append(r.AppendJSON(log), '\n') })
	return log
}

// SourceOfPrograms is the text of the files that a pattern finds, as results of
// tools are.
func SourceOfPrograms(b testing.TB, pattern string) string {
	b.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		b.Fatalf("no files: %v", err)
	}
	var all []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(all)
}
