package wire_test

import (
	"bytes"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
)

// Whoever begins at a border gets what a reader from the start gets behind it.
func TestReadingBeginsAtABorder(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		e := wire.NewEncoder(enc)
		file := e.Header(nil, genlog.Header(1))
		type border struct {
			offset int64
			seq    outcrop.Seq
		}
		var borders []border
		var batch []outcrop.Record
		for r := range genlog.Records(1, 2000) {
			batch = append(batch, r)
			if len(batch) == 100 {
				borders = append(borders, border{int64(len(file)), batch[0].Seq})
				var err error
				if file, err = e.Batch(file, func(yield func(outcrop.Record) bool) {
					for _, r := range batch {
						if !yield(r) {
							return
						}
					}
				}); err != nil {
					t.Fatal(err)
				}
				batch = nil
			}
		}
		read := func(begin border) (out []string) {
			r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
			if err != nil {
				t.Fatal(err)
			}
			if begin.seq > 0 {
				r.Begin(begin.offset, begin.seq)
			}
			for rec, err := range r.Records() {
				if err != nil {
					t.Fatal(err)
				}
				for ev := range rec.Events() {
					if ev.Seq >= begin.seq {
						out = append(out, string(ev.AppendJSON(nil)))
					}
				}
			}
			if tail := r.Tail(); tail.Torn || tail.Good != int64(len(file)) {
				t.Fatalf("%s from %d: %+v", enc, begin.seq, tail)
			}
			return out
		}
		all := read(border{})
		for _, b := range borders[1:] {
			got := read(b)
			if len(got) != len(all)-int(b.seq) || got[0] != all[b.seq] || got[len(got)-1] != all[len(all)-1] {
				t.Fatalf("%s from %d: %d events", enc, b.seq, len(got))
			}
		}
		// The border of another record is told.
		r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
		if err != nil {
			t.Fatal(err)
		}
		r.Begin(borders[3].offset, borders[4].seq)
		for _, err := range r.Records() {
			if outcrop.CodeOf(err) != "SEQ_GAP" {
				t.Fatalf("%s: %v", enc, err)
			}
			break
		}
	}
}
