package search_test

import (
	"fmt"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/search"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// filled is a store of n sessions of at least size events each. bytes is the
// JSON text of them all.
func filled(b *testing.B, n, size int) (st *memory.Store, bytes int64) {
	st = memory.New()
	for i := range n {
		h := outcrop.NewHeader(fmt.Sprintf("s%d", i), 1, "/w")
		err := st.Put(bg, h, func(yield func(outcrop.Record, error) bool) {
			for r := range genlog.Records(uint64(i), size) {
				bytes += int64(len(r.Line())) + 1
				if !yield(r, nil) {
					return
				}
			}
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return st, bytes
}

// BenchmarkIndex indexes 40 sessions of 5,000 events from nothing: bytes are
// those of the logs. The floor is 50 MB/s.
func BenchmarkIndex(b *testing.B) {
	n := 40
	if testing.Short() {
		n = 4
	}
	st, bytes := filled(b, n, 5000)
	b.SetBytes(bytes)
	for b.Loop() {
		update(b, index(b), st)
	}
}

// BenchmarkSearch asks an index of 2,000 sessions for a word and a phrase. The
// limit is 50 ms a query.
func BenchmarkSearch(b *testing.B) {
	n := 2000
	if testing.Short() {
		n = 50
	}
	st, _ := filled(b, n, 300)
	ix := index(b)
	update(b, ix, st)
	for _, q := range []string{"tool", `"the file"`, "nothing-like-this"} {
		b.Run(q, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := ix.Search(bg, search.Query{Text: q}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
