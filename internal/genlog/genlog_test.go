package genlog

import (
	"bytes"
	"slices"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

func TestTheShapeIsThatOfLongSessions(t *testing.T) {
	var steps, deltas, events, size int
	for e := range Events(1, 20_000) {
		if e.Seq != outcrop.Seq(events) {
			t.Fatalf("seq %d, want %d", e.Seq, events)
		}
		events++
		size += len(e.Line())
		if e.Type == outcrop.TypeStepStart {
			steps++
		}
		if bytes.Contains(e.Data, []byte("text-delta")) {
			deltas++
		}
	}
	between := func(what string, got, low, high float64) {
		t.Logf("%s: %.1f", what, got)
		if got < low || got > high {
			t.Errorf("%s: %.1f, want %.1f to %.1f", what, got, low, high)
		}
	}
	between("events a step", float64(events)/float64(steps), 33.5, 35.5)
	between("text deltas a step", float64(deltas)/float64(steps), 23.5, 24.5)
	between("bytes of JSON an event", float64(size)/float64(events), 185, 205)
}

func TestTheSameSeedGivesTheSameLog(t *testing.T) {
	text := func(seed uint64) []byte {
		var b []byte
		for e := range Events(seed, 500) {
			b = append(b, e.Line()...)
		}
		return b
	}
	if !bytes.Equal(text(7), text(7)) {
		t.Error("seed 7 gives two logs")
	}
	if bytes.Equal(text(7), text(8)) {
		t.Error("seeds 7 and 8 give the same log")
	}
}

func TestWriteGivesAReadableLogInEachForm(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		for _, packed := range []bool{true, false} {
			var b bytes.Buffer
			n, err := Write(&b, enc, packed, 300_000)
			if err != nil {
				t.Fatal(err)
			}
			r, err := wire.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), enc)
			if err != nil {
				t.Fatal(err)
			}
			var got []outcrop.Event
			for rec, err := range r.Records() {
				if err != nil {
					t.Fatal(err)
				}
				got = slices.AppendSeq(got, rec.Events())
			}
			if len(got) != n || r.Tail().Torn {
				t.Errorf("%s, packed %v: %d events of %d, tail %+v", enc, packed, len(got), n, r.Tail())
			}
			for e := range Events(1, n) {
				if int(e.Seq) < n && !bytes.Equal(got[e.Seq].AppendJSON(nil), e.Line()) {
					t.Fatalf("%s, packed %v: event %d is\n%s, want\n%s", enc, packed, e.Seq, got[e.Seq].AppendJSON(nil), e.Line())
				}
			}
		}
	}
}
