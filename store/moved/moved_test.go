package moved_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/moved"
)

var bg = context.Background()

// put makes a store with a session of some events.
func put(t rapid.TB, seed uint64, events int) (*memory.Store, string) {
	st := memory.New()
	h := genlog.Header(seed)
	err := st.Put(bg, h, func(yield func(outcrop.Record, error) bool) {
		for e := range genlog.Events(seed, events) {
			if e.Seq >= outcrop.Seq(events) || !yield(outcrop.Record{Event: e}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return st, h.ID
}

func write(t rapid.TB, st store.Store, id, dir string) {
	sd, err := st.Read(bg, id)
	if err != nil {
		t.Fatal(err)
	}
	defer sd.Close()
	if err := moved.Write(bg, dir, sd.Header(), sd.Records()); err != nil {
		t.Fatal(err)
	}
}

func digest(t rapid.TB, st store.Store, id string) string {
	sd, err := st.Read(bg, id)
	if err != nil {
		t.Fatal(err)
	}
	defer sd.Close()
	var d store.Digest
	for r, err := range sd.Records() {
		if err != nil {
			t.Fatal(err)
		}
		d.Add(r)
	}
	return fmt.Sprint(string(sd.Header().Line()), d.Len(), d.Sum())
}

func holds(t rapid.TB, st store.Store, id, dir string) bool {
	there, err := moved.Holds(bg, st, id, dir)
	if err != nil {
		t.Fatal(err)
	}
	return there
}

func TestAFolderIsTheWholeSession(t *testing.T) {
	top := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir := filepath.Join(top, fmt.Sprint(n))
		seed, events := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 300).Draw(t, "events")
		st, id := put(t, seed, events)
		write(t, st, id, dir)
		if !holds(t, st, id, dir) {
			t.Fatal("the store does not hold what it has handed over and kept")
		}
		other := memory.New()
		if holds(t, other, id, dir) {
			t.Fatal("an empty store holds it")
		}
		for range 2 {
			if err := moved.TakeBack(bg, other, id, dir); err != nil {
				t.Fatal(err)
			}
		}
		if was, is := digest(t, st, id), digest(t, other, id); was != is {
			t.Fatalf("came back as %s, was %s", is, was)
		}
		// One that went on is the same session, one that is shorter or another is not.
		more, _ := put(t, seed, events+1+rapid.IntRange(0, 20).Draw(t, "more"))
		if !holds(t, more, id, dir) {
			t.Fatal("a session that went on is not held")
		}
		if events > 0 {
			if less, _ := put(t, seed, events-1); holds(t, less, id, dir) {
				t.Fatal("a session that lacks events is taken for it")
			}
		}
	})
}

func TestWhatAnEarlierMoveLeftHalfDoneIsInNobodysWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "moved")
	if err := os.MkdirAll(filepath.Join(dir+".part", "session.jsonl.zstd"), 0o700); err != nil {
		t.Fatal(err)
	}
	st, id := put(t, 1, 50)
	write(t, st, id, dir)
	found, err := os.ReadDir(dir)
	if err != nil || len(found) != 1 || found[0].Name() != "session.jsonl.zstd" {
		t.Fatalf("the folder has %v, %v", found, err)
	}
	if _, err := os.Stat(dir + ".part"); !os.IsNotExist(err) {
		t.Fatalf("the part is still there: %v", err)
	}
}
