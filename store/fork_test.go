package store_test

import (
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// A turn/end that no reader takes must not be written: the child could not be
// opened.
func TestAForkLeavesOutATurnThatNoTurnEndFits(t *testing.T) {
	st := memory.New()
	err := st.Put(bg, storetest.Header("parent"), func(yield func(outcrop.Record, error) bool) {
		for i, e := range []outcrop.Event{
			{Type: outcrop.TypeSessionTitle, Data: []byte(`{"title":"t","source":"user"}`)},
			{Type: outcrop.TypeTurnStart, Data: []byte(`{"turn":0}`)},
			{Type: outcrop.TypeStepStart, Data: []byte(`{"turn":0,"step":1}`)},
			{Type: outcrop.TypeStepEnd, Data: []byte(`{"turn":0,"step":1}`)},
		} {
			e.Seq = outcrop.Seq(i)
			if !yield(outcrop.Record{Event: e}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	cut, err := store.ForkAt(bg, st, "parent", -1, store.Child{ID: "child"})
	if err != nil || cut.Boundary != 0 || cut.Closed {
		t.Fatalf("cut %+v, %v", cut, err)
	}
	l, err := store.Open(bg, st, "child", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(bg); err != nil {
		t.Fatal(err)
	}
}
