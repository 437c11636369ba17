package jsonl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// Attachments of a root lie beside it; a log file has its own beside it, unless
// it lies in a root.
func TestWhereAttachmentsLie(t *testing.T) {
	home := t.TempDir()
	root := filepath.Join(home, "sessions")
	st, err := New(root, Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := store.Create(t.Context(), st, storetest.Header("s1"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.Turn(l.Session(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := st.find("s1")
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(home, "copy.jsonl")
	log, err := os.ReadFile(f.path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(outside, log, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(home, "link.jsonl")
	if err := os.Symlink(f.path(), link); err != nil {
		t.Fatal(err)
	}
	file := func(path string) store.Objects {
		s, err := File(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Objects()
	}
	beside := filepath.Join(home, "attachments", "v1")
	for _, c := range []struct {
		name    string
		objects store.Objects
		dir     string
	}{
		{"of a root", st.Objects(), beside},
		{"of a file in a root", file(f.path()), beside},
		{"of a file in a root, by a link", file(link), beside},
		{"of a file outside a root", file(outside), outside + ".attachments"},
		{"of a file that is not there yet", file(filepath.Join(home, "new.jsonl")), filepath.Join(home, "new.jsonl.attachments")},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := []byte(c.name)
			id, err := c.objects.Put(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			hash := id[len("sha256:"):]
			if got, err := os.ReadFile(filepath.Join(c.dir, "objects", hash[:2], hash)); err != nil || string(got) != c.name || id != blob.ID(b) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
