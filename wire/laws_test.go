package wire_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

var encodings = []wire.Encoding{wire.Plain, wire.Zstd}

// plainText is the text of a whole file, read with a decoder that knows nothing
// of frames.
func plainText(t testing.TB, file []byte, enc wire.Encoding) []byte {
	t.Helper()
	if enc == wire.Plain {
		return file
	}
	d, err := zstd.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	text, err := io.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func event(line string) outcrop.Event {
	e, err := outcrop.DecodeEvent([]byte(line))
	if err != nil {
		panic(err)
	}
	return e
}

func records(lines ...string) []outcrop.Record {
	var out []outcrop.Record
	for _, l := range lines {
		out = append(out, outcrop.Record{Event: event(l)})
	}
	return out
}

// jsonString draws a JSON string token, odd ones included.
var jsonString = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"", "a", "token ", `\n`, `\"`, `\\`, `\ud83d`, `\ude00`, `\u0000`, "é", "日", "\u2028", "<&>", "\x7f", `\/`, `\u00e9`, "\xff",
	}), 0, 4).Draw(t, "parts")
	s := `"`
	for _, p := range parts {
		s += p
	}
	return s + `"`
})

// drawnLog draws the lines of a log from seq 0 on: runs of deltas that go on
// and break in every way, odd spellings, and other events.
func drawnLog(t *rapid.T, most int) []string {
	n := rapid.IntRange(0, most).Draw(t, "n")
	var out []string
	var tail string // what the last delta had beside its text
	time := int64(1000)
	for seq := range n {
		time += int64(rapid.IntRange(-3, 9).Draw(t, "dt"))
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			out = append(out, fmt.Sprintf(`{"type":"turn/start","seq":%d,"time":%d,"data":{"turn":%d}}`, seq, time, seq+1))
		case 1:
			out = append(out, fmt.Sprintf(`{"type":"turn/end","seq":%d,"time":%d,"data":{"turn":1,"reason":{"kind":"completed"}}}`, seq, time))
		case 2:
			out = append(out, fmt.Sprintf(`{"seq":%d,"type":"hook/invoked", "time":%d,"data":{"x":%s,"x":-0.0}}`, seq, time, jsonString.Draw(t, "x")))
		case 3: // a delta in another spelling
			odd := rapid.SampledFrom([]string{
				`{"type":"assistant/chunk","seq":%d,"time":%d,"data":{"step":1,"turn":1,"chunk":{"type":"text-delta","index":0,"text":%s}}}`,
				`{"type":"assistant/chunk","seq":%d,"time":%d,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":%s}}} `,
				`{"type":"assistant/chunk","seq":%d.0,"time":%d,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":%s}}}`,
				`{"type":"assistant/chunk","seq":%d,"time":%d,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":%s}},"ignorable":true}`,
				`{"type":"assistant/chunk","seq":%d,"time":%d,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":%s,"z":1}}}`,
			}).Draw(t, "odd")
			out = append(out, fmt.Sprintf(odd, seq, time, jsonString.Draw(t, "text")))
		default:
			if tail == "" || rapid.IntRange(0, 5).Draw(t, "change") == 0 {
				tail = rapid.SampledFrom([]string{
					`1,"step":1,"chunk":{"type":"text-delta","index":0,"text":`,
					`1,"step":1,"chunk":{"type":"reasoning-delta","index":0,"text":`,
					`1,"step":2,"chunk":{"type":"text-delta","index":1.50,"text":`,
					`1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"c","argumentsDelta":`,
					`1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"c","name":"\u0062","argumentsDelta":`,
				}).Draw(t, "tail")
			}
			out = append(out, fmt.Sprintf(`{"type":"assistant/chunk","seq":%d,"time":%d,"data":{"turn":%s%s}}}`, seq, time, tail, jsonString.Draw(t, "text")))
		}
	}
	return out
}

// inBatches encodes lines as a log and tells the size of the file after the
// header and after each batch.
func inBatches(t *rapid.T, enc wire.Encoding, lines []string) (file []byte, sizes []int) {
	e := wire.NewEncoder(enc)
	file = e.Header(nil, outcrop.NewHeader("s1", 1, "/w"))
	sizes = []int{len(file)}
	recs := records(lines...)
	for len(recs) > 0 {
		n := rapid.IntRange(1, len(recs)).Draw(t, "batch")
		var err error
		if file, err = e.Batch(file, slices.Values(recs[:n])); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(file))
		recs = recs[n:]
	}
	return file, sizes
}

func TestWhatWasEncodedIsReadBackByteForByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawnLog(t, 40)
		for _, enc := range encodings {
			file, _ := inBatches(t, enc, lines)
			got := readAll(file, enc)
			if !got.OK || got.tail.Torn || got.Events != len(lines) || got.tail.Good != int64(len(file)) {
				t.Fatalf("%s: %v, want %d events: %v", enc, got, len(lines), got.tail.Reason)
			}
			i := 0
			for _, rec := range got.recs {
				for e := range rec.Events() {
					if text := string(e.AppendJSON(nil)); text != lines[i] {
						t.Fatalf("%s: event %d is\n%s, want\n%s", enc, i, text, lines[i])
					}
					i++
				}
			}
		}
	})
}

func TestAFileCutAnywhereGivesEveryCompleteRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawnLog(t, 8)
		for _, enc := range encodings {
			file, sizes := inBatches(t, enc, lines)
			whole := readAll(file, enc)
			for cut := sizes[0]; cut <= len(file); cut++ {
				got := readAll(file[:cut], enc)
				if !got.OK {
					t.Fatalf("%s cut at %d of %d: %v", enc, cut, len(file), got)
				}
				// The text that is complete at this length.
				var good int
				if enc == wire.Plain {
					good = bytes.LastIndexByte(file[:cut], '\n') + 1
				} else {
					for _, s := range sizes {
						if s <= cut {
							good = s
						}
					}
				}
				if got.tail.Good != int64(good) || got.tail.Torn != (good < cut) {
					t.Fatalf("%s cut at %d: good up to %d, torn %v, want %d", enc, cut, got.tail.Good, got.tail.Torn, good)
				}
				complete := readAll(file[:good], enc)
				if got.Events-got.tail.Recovered != complete.Events || complete.tail.Torn {
					t.Fatalf("%s cut at %d: %v, the complete part has %v", enc, cut, got, complete)
				}
				if !bytes.HasPrefix(eventsText(whole), eventsText(got)) {
					t.Fatalf("%s cut at %d: other events", enc, cut)
				}
				// Cutting and writing what was recovered gives a good log.
				e := wire.NewEncoder(enc)
				var again []outcrop.Record
				n := got.tail.Recovered
				for i := len(got.recs) - 1; n > 0; i-- {
					n -= got.recs[i].Count()
					again = append([]outcrop.Record{got.recs[i]}, again...)
				}
				if n != 0 {
					t.Fatalf("%s cut at %d: what was recovered ends inside a record", enc, cut)
				}
				fixed, err := e.Batch(slices.Clone(file[:good]), slices.Values(again))
				if err != nil {
					t.Fatal(err)
				}
				if r := readAll(fixed, enc); !r.OK || r.tail.Torn || !bytes.Equal(eventsText(r), eventsText(got)) {
					t.Fatalf("%s cut at %d: after the repair %v, want %v", enc, cut, r, got)
				}
			}
		}
	})
}

func TestLinesMayGoOnInTheNextFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawnLog(t, 40)
		plain, sizes := inBatches(t, wire.Plain, lines)
		text := plain[sizes[0]:]
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		file := z.EncodeAll(plain[:sizes[0]], nil)
		for len(text) > 0 {
			n := rapid.IntRange(0, len(text)).Draw(t, "frame")
			file = z.EncodeAll(text[:n], file)
			text = text[n:]
		}
		got, want := readAll(file, wire.Zstd), readAll(plain, wire.Plain)
		if !got.OK || got.tail.Torn || !bytes.Equal(eventsText(got), eventsText(want)) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
