package collection

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

func openFiles(t *testing.T, sessions ...string) (store.Store, string) {
	t.Helper()
	dir := t.TempDir()
	st, err := jsonl.New(filepath.Join(dir, "sessions"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	for _, id := range sessions {
		l, err := store.Create(t.Context(), st, outcrop.NewHeader(id, 1, "/home/dev"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Session().Append(outcrop.SessionTitle{Title: "about " + id, Source: "user"})
		if err := errors.Join(err, l.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	return st, filepath.Join(dir, "state")
}

// listAll is one run of a command that reads all logs.
func listAll(t *testing.T, st store.Store, state string) []Entry {
	t.Helper()
	c := Of(st, Options{State: state})
	entries, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if err := c.Learn(t.Context(), &entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Save(rand.Read); err != nil {
		t.Fatal(err)
	}
	return entries
}

// A record is read when it is needed. One that cannot be read then, though the
// checksum is right, is looked at in the store.
func TestARecordThatCannotBeReadIsLookedAtAgain(t *testing.T) {
	st, state := openFiles(t, "a", "b")
	same := []cmp.Option{cmpopts.IgnoreUnexported(Entry{}, outcrop.Header{})}
	want := listAll(t, st, state)
	path := Of(st, Options{State: state}).CatalogueFile()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; ; cut++ {
		recs, ok := decode(bytes.Clone(good), st.Address())
		if !ok || len(recs) != 2 {
			t.Fatal("the catalogue is not read")
		}
		var head record
		d := decoder{s: recs[1].text}
		if d.head(&head); len(d.s) < cut {
			break
		}
		recs[1].text = recs[1].text[:len(recs[1].text)-cut]
		if err := os.WriteFile(path, encode([]*record{&recs[0], &recs[1]}, st.Address()), 0o600); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, listAll(t, st, state), same...); d != "" {
			t.Fatalf("%d bytes cut (-want +got):\n%s", cut, d)
		}
	}
}

// While somebody writes a log, no listing writes the catalogue for that alone.
func TestASessionInUseDoesNotMakeTheCatalogueAnew(t *testing.T) {
	st, state := openFiles(t, "a", "b")
	listAll(t, st, state)
	path := Of(st, Options{State: state}).CatalogueFile()
	written := func() os.FileInfo {
		t.Helper()
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fi
	}
	l, err := store.Open(t.Context(), st, "a", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(events int, title string) {
		t.Helper()
		for range events {
			if _, err := l.Session().Append(outcrop.SessionTitle{Title: title, Source: "user"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	said := func(title string, is store.State) {
		t.Helper()
		for _, e := range listAll(t, st, state) {
			if e.ID == "a" && (e.Title != title || e.State != is) {
				t.Errorf("%s, %q; want %s, %q", e.State, e.Title, is, title)
			}
		}
	}
	before := written()
	for _, title := range []string{"one", "two"} {
		add(1, title)
		said(title, store.StateLocked)
	}
	if !os.SameFile(before, written()) {
		t.Error("the catalogue was written for two events of a log in use")
	}
	add(mostReadAgain+1, "many")
	said("many", store.StateLocked)
	if os.SameFile(before, written()) {
		t.Error("the catalogue was not written for many events: they are read for every listing")
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	before = written()
	said("many", store.StateOK)
	if os.SameFile(before, written()) {
		t.Error("the catalogue does not know that the session was left")
	}
}
