package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/store"
)

var errFull = errors.New("no space left")

// filling is a store whose leases take so many batches and no more.
type filling struct {
	store.Store
	left *int
}

func (f filling) Acquire(ctx context.Context, id string) (store.Lease, error) {
	l, err := f.Store.Acquire(ctx, id)
	return filler{l, f.left}, err
}

type filler struct {
	store.Lease
	left *int
}

func (f filler) Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error {
	if *f.left--; *f.left < 0 {
		return errFull
	}
	return f.Lease.Append(ctx, recs)
}

// TestAContinuationThatBrokeOffGoesOn lets the store run full in the middle of
// what a source has more: the next import takes the rest, and nothing twice.
func TestAContinuationThatBrokeOffGoesOn(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, rollout(6))
	in := exchangetest.Import(t, codex.Format(), dir)
	var more strings.Builder
	more.WriteString(rollout(6))
	for n := range 60 {
		fmt.Fprintf(&more, `{"timestamp":"2026-03-01T11:00:%02d.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"%d %s"}]}}`+"\n", n, n, strings.Repeat("x", 100_000))
	}
	put(t, dir, more.String())
	left := 2
	im := &exchange.Importer{Store: filling{in.Store, &left}}
	rounds := 0
	for done := false; !done; rounds++ {
		if rounds > 5 {
			t.Fatal("it does not come to its end")
		}
		for src, err := range exchange.Find(context.Background(), []exchange.Format{codex.Format()}, dir, "") {
			if err != nil {
				t.Fatal(err)
			}
			r, err := im.Import(context.Background(), src)
			if err != nil || len(r.Sessions) != 1 || r.Sessions[0].ID != thread {
				t.Fatalf("%v %+v", err, r.Sessions)
			}
			if done = r.Err == nil; !done && !errors.Is(r.Err, errFull) {
				t.Fatal(r.Err)
			}
		}
		left = 2
	}
	if rounds < 2 {
		t.Errorf("%d rounds: the store never ran full", rounds)
	}
	exchangetest.Check(t, in.Store, thread)
	if n := len(exchangetest.Session(t, in.Store, thread).Messages()); n != 64 {
		t.Errorf("%d messages, want 64", n)
	}
	if o := one(t, in.Again(t, codex.Format(), dir)); o.Verdict != exchange.Present {
		t.Errorf("again: %+v", o)
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"store":"s","format":"codex","path":"/a","stamp":"1","sessions":[{"id":"x","from":"y","title":"t","parent":"p"}]}` + "\n"))
	f.Add([]byte("{\"sessions\":[1]}\n[]\nx"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "imports.jsonl")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := exchange.OpenState(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
