package outcrop_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/outcrop-dev/outcrop"
)

// testHeader is a header that dsh writes; own sessions have one more member.
func testHeader(id string) outcrop.Header {
	h, err := outcrop.ParseHeader([]byte(`{"type":"session","version":0,"id":"` + id + `","createdAt":1767225600000,"delegationDepth":0}`))
	if err != nil {
		panic(err)
	}
	return h
}

// failedAt is the seq of a refusal, -1 when it names none.
func failedAt(err error) outcrop.Seq {
	var e *outcrop.Error
	if errors.As(err, &e) {
		return e.Seq
	}
	return -1
}

func TestSurfaceVectors(t *testing.T) {
	vectors(t, "surface", func(t *testing.T, v vector) {
		lines := v.events()
		t.Run("seed", func(t *testing.T) { surfaceSeed(t, v, lines) })
		t.Run("detached fold", func(t *testing.T) { surfaceFold(t, v, lines) })
		t.Run("restore", func(t *testing.T) { surfaceRestore(t, v, lines) })
		if v.yes("expect", "ok") {
			t.Run("live", func(t *testing.T) { surfaceLive(t, v, lines) })
		}
	})
}

func surfaceSeed(t *testing.T, v vector, lines [][]byte) {
	s, err := outcrop.SeedRecords(testHeader("s1"), records(lines), outcrop.Options{})
	if !v.yes("expect", "ok") {
		wantRefused(t, v, err, v.text("expect", "errorClass"), v.num("expect", "failSeq"))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	sameSurface(t, v, s)
	n := len(lines)
	ends := n > 0 && s.Log().At(outcrop.Seq(n-1)).Type == outcrop.TypeEndSeed
	if want := n + 1; !ends && s.Len() != want || ends && s.Len() != n {
		t.Errorf("the session has %d events, the seed %d", s.Len(), n)
	}
	if last := s.Log().At(outcrop.Seq(s.Len() - 1)); last.Type != outcrop.TypeEndSeed {
		t.Errorf("the seed is closed by %s", last.Type)
	}
	// A seed is a copy: the same text, in other memory.
	for i, line := range lines {
		if got := s.Log().At(outcrop.Seq(i)).AppendJSON(nil); !bytes.Equal(got, line) {
			t.Fatalf("event %d is\n%s\nwant\n%s", i, got, line)
		}
	}
}

func wantRefused(t *testing.T, v vector, err error, class string, seq int64) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want %s at %d", class, seq)
	}
	if got := classOfErr(err); got != class {
		t.Errorf("refused as %s, want %s: %v", got, class, err)
	}
	if got := failedAt(err); int64(got) != seq {
		t.Errorf("refused at event %d, want %d: %v", got, seq, err)
	}
}

// sameSurface compares a session's surface with what the case expects.
func sameSurface(t *testing.T, v vector, s *outcrop.Session) {
	t.Helper()
	if got, want := s.Surface().Nodes(), seqs(v.get("expect", "nodes")); !slices.Equal(got, want) {
		t.Errorf("nodes %v, want %v", got, want)
	}
	if got, want := int64(s.Surface().Generation()), v.num("expect", "replaceGeneration"); want >= 0 && got != want {
		t.Errorf("generation %d, want %d", got, want)
	}
	sameMessages(t, s.Messages(), v.get("expect", "messages"))
}

func sameMessages(t *testing.T, got []*outcrop.Message, want []byte) {
	t.Helper()
	if want == nil {
		return
	}
	var raw [][]byte
	for _, m := range got {
		raw = append(raw, m.Raw)
	}
	sameList(t, "messages", raw, want)
	for i, w := range spans(want) {
		if i < len(got) && got[i].ID != (vector{raw: w}).text("id") {
			t.Errorf("message %d has id %q", i, got[i].ID)
		}
	}
}

func surfaceFold(t *testing.T, v vector, lines [][]byte) {
	var recs []outcrop.Record
	for r, err := range records(lines) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, r)
	}
	f, err := outcrop.FoldSurface(slices.Values(recs))
	if fold := v.get("expect", "foldOnly"); fold != nil && !v.yes("expect", "foldOnly", "ok") {
		class := v.text("expect", "foldOnly", "errorClass")
		if class == "surface-seq" {
			class = "seed-seq"
		}
		wantRefused(t, v, err, class, v.num("expect", "foldOnly", "failSeq"))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want := seqs(v.get("expect", "nodes"))
	if !v.yes("expect", "ok") {
		want = seqs(v.get("expect", "foldOnly", "nodes"))
	}
	if !slices.Equal(f.Nodes, want) {
		t.Errorf("nodes %v, want %v", f.Nodes, want)
	}
	if !v.yes("expect", "ok") {
		return
	}
	reps := spans(v.get("expect", "replacements"))
	if len(reps) != len(f.Replacements) || f.Generation != len(reps) {
		t.Fatalf("%d replacements in generation %d, want %d", len(f.Replacements), f.Generation, len(reps))
	}
	for i, r := range reps {
		w, got := vector{raw: r}, f.Replacements[i]
		if int64(got.Seq) != w.num("seq") || int64(got.Start) != w.num("start") || int64(got.End) != w.num("end") ||
			!slices.Equal(got.Shadowed, seqs(w.get("shadowedSeqs"))) {
			t.Errorf("replacement %d is %+v, want %s", i, got, r)
		}
	}
}

func surfaceRestore(t *testing.T, v vector, lines [][]byte) {
	s, err := outcrop.Restore(testHeader("s1"), records(lines), outcrop.Options{})
	want := []string{"expect"}
	if v.get("expect", "restore") != nil {
		want = []string{"expect", "restore"}
	}
	if restoreRefuses[v.text("expect", "load", "errorClass")] {
		// The reader of stored logs looks for types that it does not know first.
		if got, class := classOfErr(err), v.text("expect", "load", "errorClass"); got != class {
			t.Errorf("refused as %q, want %s", got, class)
		}
		return
	}
	if !v.yes(append(want, "ok")...) {
		wantRefused(t, v, err, v.text(append(want, "errorClass")...), v.num(append(want, "failSeq")...))
		return
	}
	if why, listed := differs("surface restore", v.name); listed {
		if outcrop.CodeOf(err) != "TURN_NOT_CLOSABLE" {
			t.Errorf("does not differ any more (%s): %v", why, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if int(s.Stored()) != len(lines) {
		t.Errorf("%d events are stored, want %d", s.Stored(), len(lines))
	}
}

// restoreRefuses are refusals of dsh's reader of stored logs, which it makes
// before a session is built and which a seed does not meet. Restore makes them.
var restoreRefuses = map[string]bool{"unsupported-event-type": true, "legacy-mode-set": true}

// live appends the events of a log one by one to an empty session. Times are
// the clock's, so the clock says what the log says.
type live struct {
	*outcrop.Session
	now int64
}

func newLive(h outcrop.Header, o outcrop.Options) (*live, error) {
	l := &live{}
	o.Now = func() int64 { return l.now }
	s, err := outcrop.New(h, o)
	l.Session = s
	return l, err
}

func (l *live) add(e outcrop.Event) error {
	l.now = e.Time
	_, err := l.AppendRaw(e)
	return err
}

func surfaceLive(t *testing.T, v vector, lines [][]byte) {
	h := testHeader("s1")
	h = outcrop.NewHeader("s1", h.CreatedAt, "")
	l, err := newLive(h, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	prefixes := spans(v.get("expect", "prefixNodes"))
	var recs []outcrop.Record
	for i, line := range lines {
		e, err := outcrop.DecodeEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		stood := standIn(e)
		if err := l.add(stood); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		recs = append(recs, outcrop.Record{Event: e})
		f, err := outcrop.FoldSurface(slices.Values(recs))
		if err != nil {
			t.Fatalf("fold of the first %d events: %v", i+1, err)
		}
		sameAsFold(t, l.Session, f)
		if prefixes != nil && !slices.Equal(f.Nodes, seqs(prefixes[i])) {
			t.Fatalf("after event %d: nodes %v, want %s", i, f.Nodes, prefixes[i])
		}
	}
	sameSurface(t, v, l.Session)
	for i, line := range lines {
		if e := l.Log().At(outcrop.Seq(i)); e.Type == "feedback/record" {
			continue
		} else if got := e.AppendJSON(nil); !sameJSON(got, line) {
			t.Errorf("event %d was appended as\n%s\nwant\n%s", i, got, line)
		}
	}
}

// standIn gives a neutral event in the place of one that logs may hold and
// that is never appended: what only a constructor writes, and unknown types
// that no reader may skip. None of them stands on the surface.
func standIn(e outcrop.Event) outcrop.Event {
	if e.Type == outcrop.TypeEndSeed || e.Type == "mode/set" || !e.Type.Known() && !e.Ignorable {
		return outcrop.Event{Type: "feedback/record", Time: e.Time, Data: []byte(`{"text":"stand-in"}`)}
	}
	return e
}

// sameAsFold is the law that the one surface manager keeps: at each prefix it
// agrees with the detached fold, and so do the messages.
func sameAsFold(t testing.TB, s *outcrop.Session, f outcrop.Fold) {
	t.Helper()
	if got := s.Surface().Nodes(); !slices.Equal(got, f.Nodes) {
		t.Fatalf("live surface %v, detached fold %v", got, f.Nodes)
	}
	if s.Surface().Generation() != f.Generation {
		t.Fatalf("live generation %d, detached fold %d", s.Surface().Generation(), f.Generation)
	}
	got, want := s.Messages(), outcrop.DeriveMessages(s.Log(), f.Nodes)
	if len(got) != len(want) {
		t.Fatalf("%d live messages, %d derived from the fold", len(got), len(want))
	}
	for i := range got {
		if got[i].Seq != want[i].Seq || got[i].Role != want[i].Role || got[i].ID != want[i].ID || !bytes.Equal(got[i].Raw, want[i].Raw) {
			t.Fatalf("live message %d is %+v, derived from the fold %+v", i, got[i], want[i])
		}
	}
	digest, err := outcrop.RequestDigestAt(s.Log(), outcrop.Seq(s.Len()-1))
	if err != nil || s.RequestDigest() != digest {
		t.Fatalf("live digest %s, from the log %s (%v)", s.RequestDigest(), digest, err)
	}
}
