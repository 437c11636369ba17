package wire_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// A file system that keeps the length of a write and only its first bytes ends
// the file in zero bytes. Of a frame that ends a turn, that is no damage: the
// write never arrived, and what did is saved.
func TestAFrameThatEndsInZeroBytesIsTorn(t *testing.T) {
	enc := wire.NewEncoder(wire.Zstd)
	var events []outcrop.Event
	for i, typ := range []outcrop.Type{"turn/start", "x/one", "turn/end", "turn/start", "x/two", "turn/end"} {
		events = append(events, outcrop.Event{Type: typ, Seq: outcrop.Seq(i), Time: int64(i), Data: fmt.Appendf(nil, `{"turn":%d,"reason":{"kind":"completed"}}`, 1+i/3)})
	}
	batch := func(dst []byte, events []outcrop.Event) []byte {
		dst, err := enc.Batch(dst, func(yield func(outcrop.Record) bool) {
			for _, e := range events {
				if !yield(outcrop.Record{Event: e}) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return dst
	}
	file := batch(enc.Header(nil, outcrop.NewHeader("s1", 1, "/x")), events[:3])
	last := len(file)
	file = batch(file, events[3:])
	for n := 1; n < len(file)-last; n++ {
		zeroed := append(bytes.Clone(file[:len(file)-n]), make([]byte, n)...)
		if bytes.Equal(zeroed, file) {
			continue
		}
		for _, more := range []int{0, 1, 5, 5000} {
			b := append(zeroed, make([]byte, more)...)
			r, err := wire.NewReader(bytes.NewReader(b), int64(len(b)), wire.Zstd)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for rec, err := range r.Records() {
				if err != nil {
					t.Fatalf("%d and %d zero bytes: %v", n, more, err)
				}
				if string(rec.AppendJSON(nil)) != string(events[got].AppendJSON(nil)) {
					t.Fatalf("%d zero bytes: event %d is %s", n, got, rec.AppendJSON(nil))
				}
				got++
			}
			if tail := r.Tail(); !tail.Torn || tail.Good != int64(last) || got != 3+tail.Recovered {
				t.Fatalf("%d and %d zero bytes: %d events, %+v", n, more, got, tail)
			}
			if n <= 4 && got != len(events) {
				t.Fatalf("%d zero bytes: only the checksum is gone, and %d events are saved", n, got)
			}
		}
	}
}

// The checksum of a frame ends in a zero byte now and then. It still counts.
func TestAWrongChecksumThatEndsInAZeroByteIsDamage(t *testing.T) {
	enc := wire.NewEncoder(wire.Zstd)
	head := enc.Header(nil, outcrop.NewHeader("s1", 1, "/x"))
	tried := 0
	for i := 0; tried < 3; i++ {
		file, err := enc.Batch(bytes.Clone(head), func(yield func(outcrop.Record) bool) {
			yield(outcrop.Record{Event: outcrop.Event{Type: "turn/end", Time: int64(i), Data: []byte(`{"turn":1}`)}})
		})
		if err != nil {
			t.Fatal(err)
		}
		if file[len(file)-1] != 0 {
			continue
		}
		tried++
		at := bytes.Index(file[len(head):], []byte(`"turn":1`))
		if at < 0 {
			t.Fatal("the text is not in the frame as it is")
		}
		file[len(head)+at+len(`"turn":`)] = '2'
		r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Zstd)
		if err != nil {
			t.Fatal(err)
		}
		for rec, err := range r.Records() {
			if outcrop.CodeOf(err) != "FRAME_CHECKSUM" {
				t.Fatalf("%s, %v", rec.AppendJSON(nil), err)
			}
		}
	}
}
