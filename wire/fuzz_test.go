package wire_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// seeds adds the small logs of the corpus with an encoding.
func seeds(f *testing.F, enc wire.Encoding) {
	n := 0
	for _, rel := range corpus(f) {
		if e, _ := wire.EncodingOf(rel); e != enc {
			continue
		}
		// Small ones, and the start of the others: the fuzzer changes them more often.
		file := corpusFile(f, rel)
		if enc == wire.Plain {
			file = file[:min(len(file), 3000)]
		}
		if len(file) < 5000 {
			f.Add(file)
			n++
		}
	}
	if n < 5 {
		f.Fatalf("only %d seeds", n)
	}
}

// checkRead holds what must be true of any bytes.
func checkRead(t *testing.T, file []byte, enc wire.Encoding) {
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
	if err != nil {
		return
	}
	var recs []outcrop.Record
	var next outcrop.Seq
	damaged, odd := false, false
	for rec, err := range r.Records() {
		if err != nil {
			code := string(outcrop.CodeOf(err))
			if code == "RECORD_TOO_BIG" || strings.HasPrefix(code, "LEGACY_") || strings.HasPrefix(code, "FORMAT_") {
				odd = true
			} else {
				damaged = true
				continue
			}
			if rec.Type == "" && rec.Run == nil {
				continue
			}
		}
		if damaged {
			t.Fatal("a record behind the damage")
		}
		if rec.Seq < next || rec.Seq > next && !odd {
			t.Fatalf("event %d, want %d", rec.Seq, next)
		}
		next = rec.Last() + 1
		recs = append(recs, rec)
		if p := r.Pos(); p.Line < 2 || p.Offset < 0 || p.Offset >= int64(len(file)) {
			t.Fatalf("place %+v of a file of %d bytes", p, len(file))
		}
	}
	tail := r.Tail()
	if tail.Good < r.HeaderEnd() || tail.Good > int64(len(file)) || tail.Torn && damaged {
		t.Fatalf("tail %+v of a file of %d bytes, damaged %v", tail, len(file), damaged)
	}
	if odd || damaged {
		return
	}
	// What stays after the cut is a good log with the records before the tail.
	good := readAll(file[:tail.Good], enc)
	if !good.OK || good.tail.Torn {
		t.Fatalf("the part that stays is %v: %v", good, good.tail.Reason)
	}
	all := outcome{recs: recs}
	if text := eventsText(all); !bytes.HasPrefix(text, eventsText(good)) || good.Events+tail.Recovered != int(next) {
		t.Fatalf("%d events, %d stay and %d were recovered", next, good.Events, tail.Recovered)
	}
	// Written anew it is the same.
	for _, enc := range encodings {
		e := wire.NewEncoder(enc)
		out, err := e.Batch(e.Header(nil, r.Header()), slices.Values(recs))
		if err != nil {
			return // an event that this program would not write
		}
		if again := readAll(out, enc); !again.OK || !bytes.Equal(eventsText(again), eventsText(all)) {
			t.Fatalf("written as %s it is read as %v", enc, again)
		}
	}
	if _, err := wire.LastEvents(bytes.NewReader(file), int64(len(file)), enc); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	copied, err := wire.CopyPrefix(&out, bytes.NewReader(file), int64(len(file)), enc, next-1)
	if err != nil || copied && !bytes.HasPrefix(file[r.HeaderEnd():], out.Bytes()) {
		t.Fatalf("copied %v, %v", copied, err)
	}
}

func FuzzPlainReader(f *testing.F) {
	seeds(f, wire.Plain)
	f.Add(plainLog(turnStart(0, 1), "", "{bad", turnEnd(1, 1)))
	f.Fuzz(func(t *testing.T, file []byte) { checkRead(t, file, wire.Plain) })
}

func FuzzZstdReader(f *testing.F) {
	seeds(f, wire.Zstd)
	f.Fuzz(func(t *testing.T, file []byte) { checkRead(t, file, wire.Zstd) })
}

// FuzzText reads any text behind a good header, in frames that end where the
// text has a form feed, so that the fuzzer need not know checksums.
func FuzzText(f *testing.F) {
	seeds(f, wire.Plain)
	f.Add([]byte(turnStart(0, 1) + "\n\f" + turnEnd(1, 1) + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if i := bytes.IndexByte(text, '\n'); i > 0 && bytes.Contains(text[:i], []byte(`"session"`)) {
			text = text[i+1:] // a seed's header
		}
		checkRead(t, append([]byte(headerLine+"\n"), text...), wire.Plain)
		file := zstdLog()
		for _, part := range bytes.SplitN(text, []byte("\f"), 8) {
			file = append(file, frameOf(string(part))...)
		}
		checkRead(t, file, wire.Zstd)
	})
}

// FuzzFrames compares the borders that are found with what a decoder makes of
// the bytes: a file of whole frames must be read as the text that it has.
func FuzzFrames(f *testing.F) {
	seeds(f, wire.Zstd)
	f.Add(zstdLog(frame(turnStart(0, 1)), rawFrame(turnEnd(1, 1)+"\n"), bomb('\n', 1000)))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Zstd)
		if err != nil {
			return
		}
		events := 0
		for rec, err := range r.Records() {
			if err != nil {
				return
			}
			events += rec.Count()
		}
		tail := r.Tail()
		d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		text, err := d.DecodeAll(file[:tail.Good], nil)
		if err != nil {
			t.Fatalf("the good part is no sequence of frames: %v", err)
		}
		if tail.Torn {
			return
		}
		if plain := readAll(text, wire.Plain); plain.Events != events || plain.tail.Torn {
			t.Fatalf("%d events, its text has %v", events, plain)
		}
	})
}

// FuzzPack encodes any events as one batch: each must come back as it was.
func FuzzPack(f *testing.F) {
	f.Add([]byte(strings.Join([]string{
		`{"type":"assistant/chunk","seq":0,"time":1,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"\ud83d"}}}`,
		`{"type":"assistant/chunk","seq":1,"time":0,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":""}}}`,
		`{"type":"assistant/chunk","seq":2,"time":9,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"a"}}}`,
	}, "\n")))
	f.Add([]byte(strings.Repeat(`{"type":"assistant/chunk","seq":0,"time":1,"data":{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"c","name":"n","argumentsDelta":"\ud83d"}}}`+"\n", 4)))
	f.Fuzz(func(t *testing.T, text []byte) {
		var recs []outcrop.Record
		var want []string
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			e, err := outcrop.DecodeEvent(bytes.Clone(line))
			if err != nil {
				continue
			}
			recs = append(recs, outcrop.Record{Event: e})
			want = append(want, string(line))
		}
		out, err := wire.NewEncoder(wire.Plain).Batch(nil, slices.Values(recs))
		if err != nil {
			return
		}
		i := 0
		for line := range bytes.Lines(out) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if !outcrop.IsRow(line) {
				if i >= len(want) || string(line) != want[i] {
					t.Fatalf("event %d is %s", i, line)
				}
				i++
				continue
			}
			run, err := outcrop.DecodeRun(line)
			if err != nil {
				t.Fatalf("a bad row %s: %v", line, err)
			}
			for e := range run.Events() {
				if got := string(e.AppendJSON(nil)); i >= len(want) || got != want[i] {
					t.Fatalf("event %d is %s", i, got)
				}
				i++
			}
		}
		if i != len(want) {
			t.Fatalf("%d events of %d", i, len(want))
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(headerLine + "\n"))
	f.Add(frame(headerLine))
	f.Add([]byte(`{"agentPreset":"p","delegationDepth":0,"createdAt":5,"id":"odd","version":-0,"type":"session","extra":{"x":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, enc := range encodings {
			h, line, err := wire.ReadHeader(bytes.NewReader(file), enc)
			if err != nil {
				if err.Error() == "" {
					t.Fatal("an error without text")
				}
				continue
			}
			e := wire.NewEncoder(enc)
			again, line2, err := wire.ReadHeader(bytes.NewReader(e.Header(nil, h)), enc)
			if err != nil || !bytes.Equal(line, line2) || again.ID != h.ID {
				t.Fatalf("%q is written and read as %q, %v", line, line2, err)
			}
		}
	})
}
