package outcrop

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/message"
)

// TestAnEncoderMakesWhatASessionAppends gives the same candidates to both, good
// and bad ones: each event is the same to the byte, and so is each refusal.
func TestAnEncoderMakesWhatASessionAppends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHeader("s1", 5, "/home/ada")
		now := int64(0)
		s, err := New(h, Options{Now: func() int64 { return now }})
		if err != nil {
			t.Fatal(err)
		}
		e, err := NewEncoder(h, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range rapid.IntRange(0, 30).Draw(t, "events") {
			now = int64(n) * 7
			seq := func(name string) Seq { return Seq(rapid.IntRange(-1, n+1).Draw(t, name)) }
			said := message.Message{Content: []message.Block{message.Text(rapid.SampledFrom([]string{"", "a", "\xff", "\xed\xa0\xbd"}).Draw(t, "text"))}, Source: message.FromUser}
			op := Tail
			var sources Sources
			if rapid.IntRange(0, 3).Draw(t, "replaces") == 0 {
				op, sources = Replace(seq("start"), seq("end")), SourcesOf(seq("source"), seq("source"))
			}
			var c Candidate
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				c = LogCandidate(TurnStart{Turn: n})
			case 1, 2:
				c = SurfaceCandidate(UserMessage{Message: said}, op, sources)
			case 3:
				c = SurfaceCandidate(NewToolResult(1, 1, "c1", false), Tail, sources)
			case 4:
				c = LogCandidate(RawPayload{Type: rapid.SampledFrom([]Type{"outcrop/import", "odd", "text-chunks", TypeTurnEnd}).Draw(t, "type"),
					Data: []byte(rapid.SampledFrom([]string{"{}", `{"a":1,"a":2}`, "-0", "{"}).Draw(t, "data")), Ignorable: rapid.Bool().Draw(t, "ignorable")})
			case 5:
				said.Source = message.Source{Kind: "outcrop"}
				c = SurfaceCandidate(ContextMessage{Message: said}, op, sources)
			}
			want, wantErr := s.AppendAll(c)
			got, err := e.Next(c, now)
			if CodeOf(err) != CodeOf(wantErr) || (err == nil) != (wantErr == nil) {
				t.Fatalf("event %d: the encoder says %v, the session %v", n, err, wantErr)
			}
			if s.Err() != nil {
				return // a closer was refused, which ends a session
			}
			if err == nil && string(got.Line()) != string(want[0].Line()) {
				t.Fatalf("event %d:\n%s\n%s", n, got.Line(), want[0].Line())
			}
			if int(e.Len()) != s.Len() {
				t.Fatalf("%d events, want %d", e.Len(), s.Len())
			}
		}
	})
}

func TestAnEncoderCannotJudgeARewrittenResult(t *testing.T) {
	e, err := NewEncoder(NewHeader("s1", 5, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Next(SurfaceCandidate(NewToolResult(1, 1, "c1", false), Tail, NoSources), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Next(SurfaceCandidate(NewToolResult(1, 1, "c1", true), Replace(0, 0), SourcesOf(0)), 2); CodeOf(err) != "ENCODER_NEEDS_LOG" || !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	if ev := e.EndSeed(3); ev.Seq != 1 || string(ev.Line()) != `{"type":"session/end-seed","seq":1,"time":3,"data":{}}` || e.Len() != 2 {
		t.Errorf("%s, %d events", ev.Line(), e.Len())
	}
	bad := NewHeader("s1", -1, "")
	if _, err := NewEncoder(bad, nil); CodeOf(err) != "HEADER_CREATED_AT" {
		t.Errorf("%v", err)
	}
}

func TestAHeaderMayHaveOneMoreMember(t *testing.T) {
	h, err := NewHeader("s1", 5, "/a").WithMember("importedFrom", []byte(`{"program":"p"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"session","version":0,"id":"s1","createdAt":5,"cwd":"/a","delegationDepth":0,"outcrop":1,"importedFrom":{"program":"p"}}`
	if string(h.Line()) != want || h.ID != "s1" || h.Outcrop != 1 {
		t.Errorf("%s", h.Line())
	}
	for _, c := range []struct{ name, value string }{{"id", `"again"`}, {"x", `{`}, {"x", `1,"y":2`}, {"x", ``}} {
		if h2, err := h.WithMember(c.name, []byte(c.value)); CodeOf(err) != "HEADER_NOT_JSON" || string(h2.Line()) != want {
			t.Errorf("%s %s: %v, %s", c.name, c.value, err, h2.Line())
		}
	}
}
