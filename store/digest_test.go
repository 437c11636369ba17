package store_test

import (
	"slices"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
)

func TestTheDigestOfAStreamIsThatOfTheLog(t *testing.T) {
	records := slices.Collect(genlog.Records(3, 500))
	for _, n := range []int{0, 1, len(records)} {
		var d store.Digest
		stream := d.Through(func(yield func(outcrop.Record, error) bool) {
			for _, r := range records[:n] {
				if !yield(r, nil) {
					return
				}
			}
		})
		s, err := outcrop.Inspect(genlog.Header(3), stream, outcrop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if int(d.Len()) != n || d.Sum() != outcrop.LogDigest(s.Log()) {
			t.Fatalf("%d events: %s, want %s", d.Len(), d.Sum(), outcrop.LogDigest(s.Log()))
		}
	}
}
