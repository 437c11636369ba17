package wire_test

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
)

// benchText is how much text the benchmarks read. Figures do not change much
// with it.
const benchText = 32 << 20

func benchLog(b *testing.B, enc wire.Encoding, packed bool) []byte {
	b.Helper()
	var buf bytes.Buffer
	if _, err := genlog.Write(&buf, enc, packed, benchText); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

// floor is the limit that loading runs against: one lenient ReadValue pass
// over the text, decompression before it where there is one.
func floor(b *testing.B, file []byte, enc wire.Encoding) time.Duration {
	start := time.Now()
	text := file
	if enc == wire.Zstd {
		d, err := zstd.NewReader(bytes.NewReader(file), zstd.WithDecoderConcurrency(1))
		if err != nil {
			b.Fatal(err)
		}
		defer d.Close()
		if text, err = io.ReadAll(d); err != nil {
			b.Fatal(err)
		}
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := dec.ReadValue(); err == io.EOF {
			return time.Since(start)
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

// benchLoad reads a log and its floor in turn, and compares the best of each,
// so that a busy machine spoils the ratio less.
func benchLoad(b *testing.B, enc wire.Encoding, packed bool) {
	file := benchLog(b, enc, packed)
	best, limit := time.Hour, time.Hour
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		start := time.Now()
		r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
		if err != nil {
			b.Fatal(err)
		}
		events = 0
		for rec, err := range r.Records() {
			if err != nil {
				b.Fatal(err)
			}
			events += rec.Count()
		}
		best = min(best, time.Since(start))
		b.StopTimer()
		limit = min(limit, floor(b, file, enc))
		b.StartTimer()
	}
	b.ReportMetric(float64(limit)/float64(best), "x-floor")
	b.ReportMetric(float64(events)/best.Seconds()/1e6, "Mevents/s")
}

func BenchmarkLoadPlainPacked(b *testing.B)   { benchLoad(b, wire.Plain, true) }
func BenchmarkLoadPlainUnpacked(b *testing.B) { benchLoad(b, wire.Plain, false) }
func BenchmarkLoadZstdPacked(b *testing.B)    { benchLoad(b, wire.Zstd, true) }

// BenchmarkEncode encodes batches of 1000 events. Its limit is copying the
// lines, with compression after it for Zstd.
func BenchmarkEncode(b *testing.B) {
	recs := slices.Collect(genlog.Records(1, 50_000))
	var lines []byte
	for _, r := range recs {
		lines = append(append(lines, r.Line()...), '\n')
	}
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		b.Run(string(enc), func(b *testing.B) {
			e := wire.NewEncoder(enc)
			var buf []byte
			b.ReportAllocs()
			b.SetBytes(int64(len(lines)))
			for b.Loop() {
				for batch := range slices.Chunk(recs, 1000) {
					var err error
					if buf, err = e.Batch(buf[:0], slices.Values(batch)); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(len(recs))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// BenchmarkListing reads what a listing needs of one log. Its limit is opening
// the file.
func BenchmarkListing(b *testing.B) {
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		b.Run(string(enc), func(b *testing.B) {
			var buf bytes.Buffer
			if _, err := genlog.Write(&buf, enc, true, 1<<20); err != nil {
				b.Fatal(err)
			}
			file := buf.Bytes()
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := wire.ReadHeader(bytes.NewReader(file), enc); err != nil {
					b.Fatal(err)
				}
				if last, err := wire.LastEvents(bytes.NewReader(file), int64(len(file)), enc); err != nil || !last.Known {
					b.Fatalf("%+v %v", last, err)
				}
			}
		})
	}
}
