package outcrop_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

func TestRepairVectors(t *testing.T) {
	vectors(t, "repair", func(t *testing.T, v vector) {
		lines := v.events()
		s, err := outcrop.Inspect(testHeader("s1"), records(lines), outcrop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		closers := outcrop.Closers(s.Log())
		want := spans(v.get("expect", "closers"))
		if len(closers) != len(want) {
			t.Fatalf("%d closers, want %d", len(closers), len(want))
		}
		for i, c := range closers {
			got := plainText(t, c.AppendJSON(nil))
			// The order of members is part of the stored bytes, so the texts
			// are equal, not only the values.
			if !bytes.Equal(got, want[i]) {
				t.Errorf("closer %d is\n%s\nwant\n%s", i, got, want[i])
			}
		}
		if again := outcrop.Closers(s.Log()); len(again) != len(closers) {
			t.Error("closers are not the same the second time")
		}

		r, err := outcrop.Restore(testHeader("s1"), records(lines), outcrop.Options{})
		if reloads := v.get("expect", "reloads"); reloads != nil && (err == nil) != v.yes("expect", "reloads") {
			t.Fatalf("restore: %v, want reloads %s", err, reloads)
		}
		if err != nil {
			return
		}
		if got := eventsJSON(r.Log(), int(r.Stored()), int(r.Stored())+len(closers)); len(got) == len(closers) {
			for i := range closers {
				if !bytes.Equal(got[i], closers[i].AppendJSON(nil)) {
					t.Errorf("restore adds\n%s\nwant\n%s", got[i], closers[i].AppendJSON(nil))
				}
			}
		}
		if more := outcrop.Closers(r.Log()); len(more) != 0 {
			t.Errorf("a repaired log still needs %d closers", len(more))
		}
		f, err := outcrop.FoldSurface(r.Log().Records(0))
		if err != nil {
			t.Fatal(err)
		}
		sameAsFold(t, r, f)
		if turn, step, open := outcrop.OpenTurn(r.Log()); open {
			t.Errorf("turn %d step %d is still open", turn, step)
		}
		if !slices.Equal(r.Surface().Nodes()[:s.Surface().Len()], s.Surface().Nodes()) {
			t.Error("repair changed what stood on the surface")
		}
	})
}

// plainText puts <text> in place of the explaining text of a closer, which is
// not part of the format.
func plainText(t *testing.T, line []byte) []byte {
	t.Helper()
	for b := range jsonwire.Elements(dig(line, "data", "message", "content")) {
		for inner := range jsonwire.Elements(jsonwire.Get(b, "content")) {
			text := jsonwire.Get(inner, "text")
			if s, _ := jsonwire.Text(text); s == "" {
				t.Error("a closer explains nothing")
			}
			return bytes.Replace(line, text, []byte(`"<text>"`), 1)
		}
	}
	return line
}
