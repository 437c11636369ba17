package memory_test

import (
	"context"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Place {
		st := memory.New()
		return storetest.Place{
			Open: func() store.Store { return st },
			Fail: func(op string, err error) {
				st.FailWith(func(o string) error {
					if o == op {
						return err
					}
					return nil
				})
			},
		}
	})
}

func TestACrashLosesWhatWasNotSyncedAndEveryLease(t *testing.T) {
	ctx := context.Background()
	st := memory.New()
	lease, err := st.Create(ctx, storetest.Header("s1"))
	if err != nil {
		t.Fatal(err)
	}
	event := func(seq outcrop.Seq) func(func(outcrop.Record) bool) {
		return func(yield func(outcrop.Record) bool) {
			yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeTodoWrite, Seq: seq, Data: []byte(`{"todos":[]}`)}})
		}
	}
	for seq := range outcrop.Seq(3) {
		if err := lease.Append(ctx, event(seq)); err != nil {
			t.Fatal(err)
		}
		if seq == 1 {
			if err := lease.Sync(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if lease.Append(ctx, event(9)) == nil {
		t.Fatal("a gap in the seqs was stored")
	}
	st.Crash()
	if lease.Append(ctx, event(3)) == nil {
		t.Fatal("a lease from before the crash still writes")
	}
	s, _, err := store.Inspect(ctx, st, "s1", outcrop.Options{})
	if err != nil || s.Len() != 2 {
		t.Fatalf("%d events after the crash, want 2: %v", s.Len(), err)
	}
	l, err := store.Open(ctx, st, "s1", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
