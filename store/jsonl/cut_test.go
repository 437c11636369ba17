package jsonl_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// The bytes of a torn tail may be a hole of the length of the next batch and a
// whole record behind it. If the batch could become durable before the cut, the
// record, which was never part of the log, would follow it.
func TestACutIsDurableBeforeTheNextBatch(t *testing.T) {
	m := faultfs.NewMemory()
	options := store.Options{Session: outcrop.Options{Now: func() int64 { return 1_700_000_000_000 }}}
	l, err := store.Create(bg, storeOn(m, true), storetest.Header("s1"), options)
	must(t, err)
	must(t, errors.Join(storetest.Turn(l.Session(), 1), l.Close(bg)))
	path := pathOf(m, "s1")
	good := []byte(read(m, path))
	n := l.Session().Len()

	// What is written when it is opened.
	l, err = store.Open(bg, storeOn(m, true), "s1", options)
	must(t, err)
	must(t, l.Close(bg))
	batch := len(read(m, path)) - len(good)
	torn := append(append(bytes.Clone(good), make([]byte, batch)...), fmt.Sprintf(`{"type":"todo/write","seq":%d,"time":1,"data":{"todos":[]}}`+"\n", n+1)...)

	for _, lie := range []bool{false, true} {
		comesBack := 0
		for seed := range uint64(200) {
			m := faultfs.NewMemory()
			put(t, m, path, torn)
			f, err := m.OpenFile(path, 1, 0)
			must(t, err)
			must(t, f.Sync())
			must(t, m.SyncDir("/"))
			var after *faultfs.Memory
			last := faultfs.Op{}
			disk := faultfs.Inject(m, func(op faultfs.Op) (f faultfs.Fault) {
				if op.Kind == faultfs.OpSync && op.Path == path {
					f.Lie = lie && last.Kind == faultfs.OpTruncate
					if last.Kind == faultfs.OpWrite {
						after = m.PowerCut(rand.New(rand.NewPCG(seed, 1)))
					}
				}
				if op.Path == path && op.Kind != faultfs.OpStat {
					last = op
				}
				return f
			})
			must(t, faultfs.SyncAbove(m, path))
			l, err := store.Open(bg, storeOn(disk, true), "s1", options)
			must(t, err)
			must(t, l.Close(bg))
			s, _, err := store.Inspect(bg, storeOn(after, true), "s1", outcrop.Options{})
			must(t, err)
			if s.Len() > n+1 {
				comesBack++
			}
		}
		if (comesBack > 0) != lie {
			t.Errorf("without the sync: %v; the record came back %d times", lie, comesBack)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
