package outcrop_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

func TestForkVectors(t *testing.T) {
	vectors(t, "fork", func(t *testing.T, v vector) {
		why, listed := differs("fork", v.name)
		h := testHeader("parent-1")
		for k, m := range jsonwire.Members(v.get("parentMeta")) {
			setMember(&h, string(k), m)
		}
		lines := v.events()
		parent, err := outcrop.Inspect(h, records(lines), outcrop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		log := parent.Log()
		boundary := outcrop.Latest
		if b := v.get("request", "boundary"); b != nil {
			n, ok := jsonwire.Int(b)
			if !ok {
				// 6.5 and 2^53 are no seqs; the type says so for 6.5.
				n = 1 << 53
			}
			boundary = outcrop.Seq(n)
		}
		child := v.text("request", "childId")
		if child == "" {
			child = "session-1"
		}
		if _, _, err := outcrop.Fork(parent.Header(), log, -2, child, 9); classOfErr(err) != "INVALID_BOUNDARY" {
			t.Errorf("boundary -2: %v", err)
		}
		ch, seed, err := outcrop.Fork(parent.Header(), log, boundary, child, 9)
		if listed && v.name != "meta/all-parent-fields" {
			if classOfErr(err) == v.text("expect", "code") {
				t.Errorf("does not differ any more (%s)", why)
			}
			return
		}
		if !v.yes("expect", "ok") {
			if got := classOfErr(err); got != v.text("expect", "code") {
				t.Fatalf("%v, want %s", err, v.text("expect", "code"))
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if v.name == "meta/all-parent-fields" {
			if ch.Origin != "subagent" || ch.DelegationDepth != 2 || ch.AgentPreset == nil || *ch.AgentPreset != "coder" {
				t.Errorf("child header %s lost what its parent had", ch.Line())
			}
		}
		sameHeader(t, ch, v.get("expect", "header"))
		if int64(seed.Len()) != v.num("expect", "childSeedLength") {
			t.Errorf("seed of %d events, want %d", seed.Len(), v.num("expect", "childSeedLength"))
		}
		s, err := outcrop.Seed(ch, seed, outcrop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if int64(s.Len()) != v.num("expect", "childLength") {
			t.Errorf("child of %d events, want %d", s.Len(), v.num("expect", "childLength"))
		}
		if got, want := s.Surface().Nodes(), seqs(v.get("expect", "nodes")); !slices.Equal(got, want) {
			t.Errorf("nodes %v, want %v", got, want)
		}
		appended := spans(v.get("expect", "appended"))
		for i, w := range appended {
			e := s.Log().At(outcrop.Seq(seed.Len() + i))
			if string(e.Type) != (vector{raw: w}).text("type") || int64(e.Seq) != (vector{raw: w}).num("seq") || !sameJSON(e.Data, dig(w, "data")) {
				t.Errorf("appended %s, want %s", e.AppendJSON(nil), w)
			}
		}
		for i := range seed.Len() {
			if got := s.Log().At(outcrop.Seq(i)).AppendJSON(nil); !bytes.Equal(got, lines[i]) {
				t.Errorf("event %d of the child is %s, of the parent %s", i, got, lines[i])
			}
		}
		f, err := outcrop.FoldSurface(s.Log().Records(0))
		if err != nil {
			t.Fatal(err)
		}
		sameAsFold(t, s, f)
	})
}

// setMember changes a header; a header that was read keeps its line, so it is
// made anew.
func setMember(h *outcrop.Header, name string, m []byte) {
	n, _ := jsonwire.Int(m)
	s, _ := jsonwire.Text(m)
	fresh := outcrop.Header{ID: h.ID, CreatedAt: h.CreatedAt, Cwd: h.Cwd, ParentSession: h.ParentSession, SeedLength: h.SeedLength,
		Origin: h.Origin, DelegationDepth: h.DelegationDepth, AgentPreset: h.AgentPreset}
	switch name {
	case "cwd":
		fresh.Cwd = &s
	case "origin":
		fresh.Origin = s
	case "delegationDepth":
		fresh.DelegationDepth = n
	case "agentPreset":
		fresh.AgentPreset = &s
	case "parentSession":
		fresh.ParentSession = &s
	case "seedLength":
		fresh.SeedLength = &n
	}
	*h = fresh
}
