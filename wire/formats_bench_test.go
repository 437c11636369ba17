package wire_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// BenchmarkLoadFormats reads the same log in each later format, as plain text.
// Its limit is the floor of loading over the same bytes.
func BenchmarkLoadFormats(b *testing.B) {
	h := genlog.Header(1)
	s, err := outcrop.Inspect(h, func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(1, 100_000) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for format := 1; format <= formats.Newest; format++ {
		b.Run(fmt.Sprint(format), func(b *testing.B) {
			file := inFormat(b, h, s.Log(), format)
			best, limit := time.Hour, time.Hour
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				start := time.Now()
				r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Plain)
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
				limit = min(limit, floor(b, file, wire.Plain))
				b.StartTimer()
			}
			b.ReportMetric(float64(limit)/float64(best), "x-floor")
			b.ReportMetric(float64(events)/best.Seconds()/1e6, "Mevents/s")
		})
	}
}
