package collection

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// What is read is what was written; on other bytes with a good checksum nothing
// panics, and what is taken can be written and read again.
func FuzzCatalogue(f *testing.F) {
	text := func(s string) *string { return &s }
	seed := int64(7)
	full := record{place: "/a/b", kept: store.Kept{Stamp: "1 2", ID: "b", Path: "/a/b/session.v3.jsonl"}, shown: 9, rest: &rest{
		info: store.Info{ID: "b", Path: "/a/b/session.v3.jsonl", Title: "t", Cwd: "/home/dev", CreatedAt: 3, UpdatedAt: 9, Events: -1, Turns: -1, Bytes: 300,
			State: store.StateOpenTurn, Reason: "the last turn was not closed",
			Header: outcrop.Header{Version: 0, ID: "b", CreatedAt: 3, Cwd: text("/home/dev"), ParentSession: text("p"), ParentFormat: 2, SeedLength: &seed,
				Origin: "subagent", DelegationDepth: 1, AgentPreset: text(""), Outcrop: 1, Format: 3}},
		sum: summary{stamp: "1 2", mark: "m", failed: "f", torn: true, unread: true, events: 5, turns: 1, title: "t", titled: true, updated: 9, openTurn: true,
			tags: []string{"a"}, objects: []string{}}}}
	odd := record{place: "elsewhere", kept: store.Kept{ID: "an id", Path: "/a"}, rest: &rest{
		info: store.Info{ID: "an id", Path: "/a", Header: outcrop.Header{ID: "another", Cwd: text("/x")}},
		sum:  summary{stamp: "old", mark: "m", tags: []string{}, objects: []string{"o"}}}}
	whole := cmp.AllowUnexported(record{}, rest{}, summary{}, outcrop.Header{})
	for _, r := range []record{{rest: &rest{}}, full, odd} {
		b := encode([]*record{&r}, "here")
		back, ok := decode(b, "here")
		if !ok || len(back) != 1 || !back[0].open() {
			f.Fatalf("%+v is not read: %v", r, back)
		}
		back[0].text = ""
		if d := cmp.Diff(r, back[0], whole); d != "" {
			f.Fatalf("(-was +is):\n%s", d)
		}
		if _, ok := decode(b, "elsewhere"); ok {
			f.Fatal("the catalogue of another store is taken")
		}
		f.Add(b[len(magic)+4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := binary.LittleEndian.AppendUint32([]byte(magic), crc32.Checksum(body, castagnoli))
		recs, ok := decode(append(b, body...), "here")
		if !ok {
			return
		}
		// Records that were read are written anew, others as they are.
		var known []*record
		for i := range recs {
			r := &recs[i]
			if known = append(known, r); r.open() && i%2 == 0 {
				r.text = ""
			}
		}
		again, ok := decode(encode(known, "here"), "here")
		if !ok || len(again) != len(recs) {
			t.Fatalf("%d records of %d", len(again), len(recs))
		}
		for i := range again {
			if open := again[i].open(); open != (recs[i].rest != nil) {
				t.Fatalf("record %d can be read: %v", i, open)
			}
			again[i].text = recs[i].text
		}
		if d := cmp.Diff(recs, again, whole); d != "" {
			t.Fatalf("(-was +is):\n%s", d)
		}
	})
}
