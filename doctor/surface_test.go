package doctor_test

import (
	"testing"

	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// Each log of the surface vectors, written as a plain file: dsh's verdict is
// the one that dsh gave when it loaded the file.
func TestDSHVerdictOnEverySurfaceLog(t *testing.T) {
	for _, raw := range conformance.Lines(t, "surface") {
		t.Run(text(raw, "name"), func(t *testing.T) {
			file := []byte(`{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0}` + "\n")
			for e := range jsonwire.Elements(dig(raw, "events")) {
				file = append(append(file, e...), '\n')
			}
			_, sum := verify(t, memory(file, wire.Plain), doctor.Options{})
			load := dig(raw, "expect", "load")
			want, class := doctor.DSHOK, ""
			switch {
			case !yes(load, "ok"):
				want, class = doctor.DSHRefused, text(load, "errorClass")
			case yes(load, "torn"):
				want = doctor.DSHCut
			}
			if sum.DSH != want || sum.DSHClass != class {
				t.Errorf("dsh %s %q, want %s %q", sum.DSH, sum.DSHClass, want, class)
			}
			// What dsh reads, we read too, as many events of it.
			if want != doctor.DSHRefused && (!sum.OK || int64(sum.Events) != num(load, "events")) {
				t.Errorf("ours: %s, want %s", sum.AppendJSON(nil), load)
			}
		})
	}
}
