package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// withSession makes a store with a session s1 of n prompts.
func withSession(t *testing.T, n int) *Store {
	t.Helper()
	st, err := New(filepath.Join(t.TempDir(), "s.db"), Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	live, err := store.Create(t.Context(), st, outcrop.NewHeader("s1", 1, "/home/dev"), store.Options{Session: outcrop.Options{Now: func() int64 { return 5 }}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := live.Session().AppendSurface(outcrop.UserMessage{Message: message.Message{Source: message.FromUser,
			Content: []message.Block{message.Text(fmt.Sprintf("the secret word number %d", i))}}}, outcrop.Tail, outcrop.NoSources); err != nil {
			t.Fatal(err)
		}
	}
	if err := live.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return st
}

func digest(t *testing.T, st store.Store) string {
	t.Helper()
	sd, err := st.Read(t.Context(), "s1")
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
	return d.Sum()
}

func TestASessionIsHandedOverAndTakenBack(t *testing.T) {
	ctx := t.Context()
	st := withSession(t, 20)
	was := digest(t, st)
	dir := filepath.Join(t.TempDir(), "moved")
	held, err := st.Hold(ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	var locked *store.LockedError
	if _, err := st.Hold(ctx, "s1"); !errors.As(err, &locked) || locked.Holder.Program != "test" {
		t.Errorf("twice: %v", err)
	}
	if err := held.HandOver(ctx, dir); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Read(ctx, "s1"); !errors.Is(err, outcrop.ErrNotFound) {
		t.Errorf("it is still in the store: %v", err)
	}
	var left int
	db, err := st.reader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT count(*) FROM events").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
	if there, err := st.Holds(ctx, "s1", held.Place(), dir); err != nil || there {
		t.Errorf("holds it: %v, %v", there, err)
	}
	for range 2 { // what an earlier call brought back is no other session
		if err := st.TakeBack(ctx, "s1", held.Place(), dir); err != nil {
			t.Fatal(err)
		}
	}
	if is := digest(t, st); is != was {
		t.Errorf("digest %s, was %s", is, was)
	}
	live, err := store.Open(ctx, st, "s1", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = live.Session().Append(outcrop.SessionTitle{Title: "goes on", Source: "user"})
	if err := errors.Join(err, live.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	if there, err := st.Holds(ctx, "s1", "", dir); err != nil || !there {
		t.Errorf("one that went on: %v, %v", there, err)
	}
}

func TestAnotherSessionIsNotOverwrittenByOneThatComesBack(t *testing.T) {
	ctx := t.Context()
	st := withSession(t, 2)
	dir := filepath.Join(t.TempDir(), "moved")
	held, err := st.Hold(ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(held.HandOver(ctx, dir), held.Close()); err != nil {
		t.Fatal(err)
	}
	if err := st.Put(ctx, outcrop.NewHeader("s1", 9, "/elsewhere"), func(func(outcrop.Record, error) bool) {}); err != nil {
		t.Fatal(err)
	}
	if err := st.TakeBack(ctx, "s1", "", dir); !errors.Is(err, store.ErrExists) {
		t.Errorf("%v", err)
	}
}

func TestARewriteLeavesNothingOfTheOldRowsInTheFile(t *testing.T) {
	ctx := t.Context()
	st := withSession(t, 50)
	change := func(fail error) error {
		return st.Rewrite(ctx, "s1", func(h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error) {
			n := outcrop.Seq(0)
			for r, err := range recs {
				if err != nil {
					return nil, err
				}
				n = r.Last() + 1
			}
			return func(yield func(outcrop.Record, error) bool) {
				for i := range n {
					if !yield(outcrop.Record{Event: outcrop.Event{Type: "session/title", Seq: i, Time: 7, Data: []byte(`{"title":"new","messageSeqs":[],"source":"user"}`)}}, nil) {
						return
					}
				}
				if fail != nil {
					yield(outcrop.Record{}, fail)
				}
			}, nil
		})
	}
	was := digest(t, st)
	broken := errors.New("broken")
	if err := change(broken); !errors.Is(err, broken) {
		t.Fatalf("%v", err)
	}
	if is := digest(t, st); is != was {
		t.Fatal("a rewrite that failed changed the log")
	}
	if err := change(nil); err != nil {
		t.Fatal(err)
	}
	infos, err := st.List(ctx, store.ListOptions{})
	if err != nil || len(infos) != 1 || infos[0].Title != "new" || infos[0].Events != 50 {
		t.Errorf("%+v, %v", infos, err)
	}
	st.Close()
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(st.path + end)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("secret word")) {
			t.Errorf("the file%s still has the old text", end)
		}
	}
}

func TestAnAttachmentIsRemoved(t *testing.T) {
	st := withSession(t, 1)
	o := st.Objects().(store.ObjectRemover)
	id, err := o.Put(t.Context(), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := o.RemoveObject(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Get(t.Context(), id); !errors.Is(err, outcrop.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if err := o.RemoveObject(t.Context(), "x"); !errors.Is(err, outcrop.ErrRefused) {
		t.Errorf("%v", err)
	}
}
