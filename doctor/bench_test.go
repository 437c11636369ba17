package doctor_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
)

// BenchmarkVerify verifies a healthy log. Its floor is loading the same log
// into a session; x-floor says how many loads a verification costs.
func BenchmarkVerify(b *testing.B) {
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		b.Run(string(enc), func(b *testing.B) {
			var file bytes.Buffer
			if _, err := genlog.Write(&file, enc, true, 20<<20); err != nil {
				b.Fatal(err)
			}
			t := memory(file.Bytes(), enc)
			var load, verify time.Duration
			b.SetBytes(t.Size)
			for b.Loop() {
				start := time.Now()
				r, err := wire.NewReader(t.R, t.Size, enc)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := outcrop.Inspect(r.Header(), r.Records(), outcrop.Options{}); err != nil {
					b.Fatal(err)
				}
				loaded := time.Now()
				findings, sum := doctor.Verify(b.Context(), t, doctor.Options{})
				for f := range findings {
					if f.Code != "TURN_OPEN" {
						b.Fatalf("%s", f.AppendJSON(nil))
					}
				}
				if !sum.OK || sum.DSH != doctor.DSHOK {
					b.Fatalf("%s", sum.AppendJSON(nil))
				}
				load += loaded.Sub(start)
				verify += time.Since(loaded)
			}
			b.ReportMetric(verify.Seconds()/load.Seconds(), "x-floor")
		})
	}
}
