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
	parent, seed := "p", int64(7)
	for _, r := range []record{
		{},
		{listed: store.Listed{Place: "/a", Stamp: "1 2", Info: store.Info{ID: "s", Title: "t", Events: -1, Turns: -1, State: store.StateOK,
			Header: outcrop.Header{ID: "s", ParentSession: &parent, SeedLength: &seed, Outcrop: 1}}},
			sum: summary{stamp: "1 2", mark: "m", events: 5, turns: 1, title: "t", titled: true, tags: []string{"a"}, objects: []string{}}},
	} {
		b := encode(map[string]*record{r.listed.Place: &r}, "here")
		back, ok := decode(b, "here")
		if d := cmp.Diff(&r, back[r.listed.Place], cmp.AllowUnexported(record{}, summary{}, outcrop.Header{})); !ok || d != "" {
			f.Fatalf("%v (-was +is):\n%s", ok, d)
		}
		if _, ok := decode(b, "elsewhere"); ok {
			f.Fatal("the catalogue of another store is taken")
		}
		f.Add(b[len(magic)+4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := binary.LittleEndian.AppendUint32([]byte(magic), crc32.Checksum(body, castagnoli))
		known, ok := decode(append(b, body...), "here")
		if !ok {
			return
		}
		again, ok := decode(encode(known, "here"), "here")
		if d := cmp.Diff(known, again, cmp.AllowUnexported(record{}, summary{}, outcrop.Header{})); !ok || d != "" {
			t.Fatalf("%v (-was +is):\n%s", ok, d)
		}
	})
}
