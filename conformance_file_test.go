package outcrop_test

import (
	"bytes"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// TestSurfaceVectorsAsFiles stores each log as a plain file and opens it.
func TestSurfaceVectorsAsFiles(t *testing.T) {
	vectors(t, "surface", func(t *testing.T, v vector) { surfaceFile(t, v, v.events()) })
}

func surfaceFile(t *testing.T, v vector, lines [][]byte) {
	file := append(testHeader("s1").Line(), '\n')
	for _, l := range lines {
		file = append(append(file, l...), '\n')
	}
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Plain)
	if err != nil {
		t.Fatal(err)
	}
	s, err := outcrop.Restore(r.Header(), r.Records(), outcrop.Options{})
	class := v.text("expect", "load", "errorClass")
	if why, listed := differs("surface file", v.name); listed {
		if classOfErr(err) == class {
			t.Errorf("does not differ any more (%s)", why)
		}
		return
	}
	if !v.yes("expect", "load", "ok") {
		if err == nil {
			t.Fatalf("accepted, want %s", class)
		}
		if got := classOfErr(err); got != class {
			t.Errorf("refused as %s, want %s: %v", got, class, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	closers := v.num("expect", "load", "closers")
	if got, want := int64(s.Stored()), v.num("expect", "load", "events"); got != want {
		t.Errorf("%d events are stored, want %d", got, want)
	}
	n := int64(s.Len()) - int64(s.Stored()) - closers
	if stored := s.Stored(); stored > 0 && closers == 0 && s.Log().At(stored-1).Type == outcrop.TypeEndSeed {
		n++
	}
	if n != 1 {
		t.Errorf("%d events were added, want %d closers and the end of the seed", s.Len()-int(s.Stored()), closers)
	}
	if r.Tail().Torn != v.yes("expect", "load", "torn") {
		t.Errorf("torn is %v", r.Tail().Torn)
	}
}
