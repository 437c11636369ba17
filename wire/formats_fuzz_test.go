package wire_test

import (
	"bytes"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// laterSeeds adds small real logs in a later format, and the start of others.
func laterSeeds(f *testing.F, format int) {
	n := 0
	for _, rel := range corpus(f) {
		enc, _ := wire.EncodingOf(rel)
		if got := readAll(corpusFile(f, rel), enc); !got.OK || got.tail.Torn || got.Events > 120 {
			continue
		}
		s, r := inspect(f, corpusFile(f, rel), enc)
		file := inFormat(f, r.Header(), s.Log(), format)
		if i := bytes.LastIndexByte(file[:min(len(file), 6000)], '\n'); i > 0 {
			f.Add(file[:i+1])
			n++
		}
	}
	if n < 5 {
		f.Fatalf("only %d seeds", n)
	}
}

// checkLater holds what must be true of any bytes that say a later format, beside
// what checkRead says.
func checkLater(t *testing.T, file []byte) {
	checkRead(t, file, wire.Plain)
	all := readAll(file, wire.Plain)
	if all.code == "HEADER_SHAPE" || len(all.recs) == 0 {
		return
	}
	// A view grows with its log.
	half := file[:bytes.LastIndexByte(file[:len(file)/2+1], '\n')+1]
	part := readAll(half, wire.Plain)
	if all.OK && part.OK && !bytes.HasPrefix(eventsText(all), eventsText(part)) {
		t.Fatalf("the first half says something else: %s", firstDifference(string(eventsText(all)), string(eventsText(part))))
	}
	// What can be looked at can be looked at in each format that it goes to.
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Plain)
	if err != nil {
		t.Fatal(err)
	}
	s, err := outcrop.Inspect(r.Header(), r.Records(), outcrop.Options{})
	if err != nil || s.NoMarkers() {
		return
	}
	var out bytes.Buffer
	if _, err := wire.WriteFormat3(&out, wire.Plain, r.Header(), s.Log()); err != nil {
		return
	}
	again := readAll(out.Bytes(), wire.Plain)
	ar, err := wire.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), wire.Plain)
	if err != nil || !again.OK {
		t.Fatalf("written in format 3 it is %v, %v\n%s", again, err, out.Bytes())
	}
	after, err := outcrop.Inspect(ar.Header(), ar.Records(), outcrop.Options{})
	if err != nil {
		t.Fatalf("written in format 3: %v\n%s", err, out.Bytes())
	}
	if a, b := len(s.Messages()), len(after.Messages()); a != b && !emptied(s) {
		t.Fatalf("%d messages, and %d after format 3\n%s", a, b, out.Bytes())
	}
}

// emptied reports whether a message that the program injected has no content: as
// user/message it is one.
func emptied(s *outcrop.Session) bool {
	for _, n := range s.Surface().View().Nodes() {
		if s.Log().At(n).Type == outcrop.TypeContextMessage {
			return true
		}
	}
	return false
}

func FuzzFormat2(f *testing.F) {
	laterSeeds(f, 2)
	f.Fuzz(func(t *testing.T, file []byte) { checkLater(t, file) })
}

func FuzzFormat3(f *testing.F) {
	laterSeeds(f, 3)
	f.Fuzz(func(t *testing.T, file []byte) { checkLater(t, file) })
}

func FuzzFormat4(f *testing.F) {
	laterSeeds(f, formats.Newest)
	f.Fuzz(func(t *testing.T, file []byte) { checkLater(t, file) })
}

// FuzzFormat1 reads format 1, which is format 0 under another number.
func FuzzFormat1(f *testing.F) {
	laterSeeds(f, 1)
	f.Fuzz(func(t *testing.T, file []byte) { checkRead(t, file, wire.Plain) })
}
