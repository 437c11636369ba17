package wire_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
)

func TestAPrefixIsCopiedExactlyAtBorders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawnLog(t, 40)
		for _, enc := range encodings {
			file, sizes := inBatches(t, enc, lines)
			all := readAll(file, enc)
			// The seqs on which the file has a border, and the offset there.
			borders := map[outcrop.Seq]int{-1: sizes[0]}
			if enc == wire.Plain {
				off := sizes[0]
				for _, rec := range all.recs {
					off += bytes.IndexByte(file[off:], '\n') + 1
					borders[rec.Last()] = off
				}
			} else {
				for _, s := range sizes[1:] {
					borders[outcrop.Seq(readAll(file[:s], enc).LastSeq)] = s
				}
			}
			for seq := outcrop.Seq(-1); int(seq) <= len(lines); seq++ {
				var out bytes.Buffer
				copied, err := wire.CopyPrefix(&out, bytes.NewReader(file), int64(len(file)), enc, seq)
				if err != nil {
					t.Fatal(err)
				}
				end, ok := borders[seq]
				if copied != ok {
					t.Fatalf("%s: event %d copied is %v, want %v", enc, seq, copied, ok)
				}
				if want := file[sizes[0]:max(end, sizes[0])]; ok && !bytes.Equal(out.Bytes(), want) || !ok && out.Len() > 0 {
					t.Fatalf("%s: through event %d %d bytes were copied, want %d", enc, seq, out.Len(), len(want))
				}
			}
		}
	})
}

func TestALargeFileIsCopiedAtABorder(t *testing.T) {
	for _, enc := range encodings {
		var buf bytes.Buffer
		events, err := genlog.Write(&buf, enc, true, 3<<20)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "session."+string(enc))
		if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		src, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		all := readAll(buf.Bytes(), enc)
		for _, through := range []int{genlog.BatchEvents - 1, events/2/genlog.BatchEvents*genlog.BatchEvents - 1, events - 1} {
			dst, err := os.Create(filepath.Join(dir, "copy"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := dst.Write(wire.NewEncoder(enc).Header(nil, outcrop.NewHeader("child", 1, "/w"))); err != nil {
				t.Fatal(err)
			}
			copied, err := wire.CopyPrefix(dst, src, int64(buf.Len()), enc, outcrop.Seq(through))
			if err != nil || !copied {
				t.Fatalf("%s through %d: copied %v, %v", enc, through, copied, err)
			}
			if err := dst.Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(dst.Name())
			if err != nil {
				t.Fatal(err)
			}
			got := readAll(b, enc)
			if !got.OK || got.tail.Torn || got.LastSeq != through || !bytes.HasPrefix(eventsText(all), eventsText(got)) {
				t.Errorf("%s through %d: %v", enc, through, got)
			}
		}
	}
}

func TestOldShapesAreNotCopied(t *testing.T) {
	lines := []string{turnStart(0, 1), `{"type":"user/message","seq":1,"time":1,"data":{"content":[],"source":{"kind":"user"}},"surfaceOp":"append"}`, turnEnd(2, 1)}
	both(t, lines, func(t *testing.T, file []byte, enc wire.Encoding) {
		var out bytes.Buffer
		copied, err := wire.CopyPrefix(&out, bytes.NewReader(file), int64(len(file)), enc, 2)
		if copied || err != nil || out.Len() > 0 {
			t.Errorf("copied %v, %v", copied, err)
		}
	})
}

func TestADamagedPrefixIsNotCopied(t *testing.T) {
	both(t, []string{turnStart(0, 1), "{bad", turnEnd(2, 1)}, func(t *testing.T, file []byte, enc wire.Encoding) {
		for _, through := range []outcrop.Seq{1, 3} {
			copied, err := wire.CopyPrefix(&bytes.Buffer{}, bytes.NewReader(file), int64(len(file)), enc, through)
			if copied || err != nil {
				t.Errorf("through %d: copied %v, %v", through, copied, err)
			}
		}
	})
}

func TestAnEventThatNoLogCanHoldIsRefused(t *testing.T) {
	for _, e := range []outcrop.Event{{Type: "text-chunks", Data: []byte("{}")}, {Type: "session", Data: []byte("{}")}, {Type: "turn/start"}} {
		dst := []byte("before")
		out, err := wire.NewEncoder(wire.Plain).Batch(dst, slices.Values([]outcrop.Record{{Event: e}}))
		if err == nil || string(out) != "before" {
			t.Errorf("%s: %q, %v", e.Type, out, err)
		}
	}
}

func TestHandMadeDataWithLineBreaksMakesOneLine(t *testing.T) {
	e := outcrop.Event{Type: "hook/invoked", Data: []byte("{\n\t\"a\": \"x\\n\"\r\n}")}
	out, err := wire.NewEncoder(wire.Plain).Batch(nil, slices.Values([]outcrop.Record{{Event: e}}))
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(append(plainLog()[:len(headerLine)+1], out...), wire.Plain); got.Events != 1 || got.tail.Torn {
		t.Errorf("%q is read as %v", out, got)
	}
}

func TestAnEmptyBatchWritesNothing(t *testing.T) {
	for _, enc := range encodings {
		out, err := wire.NewEncoder(enc).Batch(nil, slices.Values([]outcrop.Record(nil)))
		if len(out) != 0 || err != nil {
			t.Errorf("%s: %q, %v", enc, out, err)
		}
	}
}
