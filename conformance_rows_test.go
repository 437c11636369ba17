package outcrop_test

import (
	"bytes"
	"testing"

	"github.com/outcrop-dev/outcrop"
)

// The other half of the vectors, kind pack, is about writing and belongs to
// the package that writes.
func TestRowVectors(t *testing.T) {
	vectors(t, "rows", func(t *testing.T, v vector) {
		switch v.text("kind") {
		case "decode":
			rowDecode(t, v)
		case "pack":
			rowsBack(t, v)
		}
	})
}

// decodeRow gives the events of one stored value.
func decodeRow(raw []byte) ([][]byte, error) {
	if !outcrop.IsRow(raw) {
		return [][]byte{raw}, nil
	}
	r, err := outcrop.DecodeRun(raw)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for e := range r.Events() {
		out = append(out, e.AppendJSON(nil))
	}
	return out, nil
}

func rowDecode(t *testing.T, v vector) {
	raw := v.get("record")
	got, err := decodeRow(raw)
	if want := v.text("expect", "errorClass"); classOfErr(err) != want {
		t.Fatalf("%v, want %q", err, want)
	}
	if err == nil {
		sameList(t, "events", got, v.get("expect", "events"))
	}
}

// rowsBack reads the rows that dsh wrote: they stand for the events that they
// were made from, and each event can be asked for alone.
func rowsBack(t *testing.T, v vector) {
	var got [][]byte
	for _, row := range spans(v.get("expect", "rows")) {
		events, err := decodeRow(row)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, events...)
		if r, err := outcrop.DecodeRun(row); err == nil {
			if r.Len != len(events) || !bytes.Equal(r.Line(), row) {
				t.Errorf("run of %d events with line %s", r.Len, r.Line())
			}
			for i := range events {
				e := r.At(i)
				if !bytes.Equal(e.AppendJSON(nil), events[i]) {
					t.Errorf("At(%d) is %s, want %s", i, e.AppendJSON(nil), events[i])
				}
			}
		}
	}
	sameList(t, "events", got, v.get("events"))
}
