package dshsqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/dshsqlite"
	"github.com/outcrop-dev/outcrop/store/dshsqlite/dshsqlitetest"
)

// FuzzFile overwrites a part of a database, as a bad disk does: reading never
// panics and never runs on, the file stays as it is, and what is read is a dense
// log.
func FuzzFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.db")
	s := generated(1, 60)
	if err := dshsqlitetest.Write(bg, path, 17, s, dshsqlitetest.Session{Header: genlog.Header(2)}); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("x"), uint32(len(whole)))
	f.Add(uint32(18), []byte{1, 1}, uint32(len(whole)))
	f.Add(uint32(4096), []byte{13, 255, 255}, uint32(8192))
	f.Add(uint32(len(whole)-100), []byte(`{"turn"`), uint32(len(whole)))
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, size uint32) {
		b := append([]byte(nil), whole...)
		copy(b[int(at)%len(b):], patch)
		b = b[:min(int(size), len(b))]
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := dshsqlite.New(path, dshsqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		infos, _ := st.List(bg, store.ListOptions{Full: true})
		for _, id := range append([]string{s.Header.ID}, ids(infos)...) {
			sd, err := st.Read(bg, id)
			if err != nil {
				continue
			}
			n := 0
			for r, err := range sd.Records() {
				if err != nil {
					break
				}
				if int(r.Seq) != n {
					t.Fatalf("event %d, want %d", r.Seq, n)
				}
				n = int(r.Last()) + 1
			}
			sd.Close()
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(b) {
			t.Fatal("the file was changed")
		}
		if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
			t.Fatalf("there are %d files", len(entries))
		}
	})
}

func ids(infos []store.Info) (all []string) {
	for _, in := range infos {
		if in.ID != "" {
			all = append(all, in.ID)
		}
	}
	return all
}
