package jsonl

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func TestContract(t *testing.T) {
	for name, plain := range map[string]bool{"zstd": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Place { return place(t, t.TempDir(), plain) })
		})
	}
}

// place is a root whose stores can fail.
func place(t *testing.T, root string, plain bool) storetest.Place {
	var faults faults
	path := func(id string) string {
		s, err := New(root, Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.find(id)
		if err != nil {
			t.Fatal(err)
		}
		return f.path()
	}
	return storetest.Place{
		Open: func() store.Store {
			s, err := New(root, Options{Plain: plain, Program: "a test"})
			if err != nil {
				t.Fatal(err)
			}
			s.disk = faultfs.Inject(faultfs.Real, faults.decide)
			return s
		},
		Fail: faults.set,
		Tear: func(id string, n int64) {
			p := path(id)
			fi, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(p, fi.Size()-n); err != nil {
				t.Fatal(err)
			}
		},
		Break: func(id string) {
			p := path(id)
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			copy(b, bytes.Repeat([]byte{'x'}, 16))
			if err := os.WriteFile(p, b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// faults makes writes and syncs fail. A failing write writes half of what it
// was given, as a full disk does.
type faults struct {
	write, sync atomic.Pointer[error]
}

func (f *faults) set(op string, err error) {
	p := &f.write
	if op == "sync" {
		p = &f.sync
	}
	if err == nil {
		p.Store(nil)
	} else {
		p.Store(&err)
	}
}

func (f *faults) decide(op faultfs.Op) faultfs.Fault {
	var err *error
	switch op.Kind {
	case faultfs.OpWrite:
		if strings.Contains(op.Path, ".lock") {
			return faultfs.Fault{}
		}
		err = f.write.Load()
	case faultfs.OpSync:
		err = f.sync.Load()
	}
	if err == nil {
		return faultfs.Fault{}
	}
	return faultfs.Fault{Err: *err, Part: len(op.Data) / 2}
}

// unsynced is a disk that syncs nothing, for tests with many files that are not
// about a loss of power.
func unsynced() faultfs.FS { return faulty(func(faultfs.Op) faultfs.Fault { return faultfs.Fault{} }) }

// faulty is unsynced with faults.
func faulty(decide func(faultfs.Op) faultfs.Fault) faultfs.FS {
	return faultfs.Inject(faultfs.Real, func(op faultfs.Op) faultfs.Fault {
		f := decide(op)
		if op.Kind == faultfs.OpSync || op.Kind == faultfs.OpSyncDir {
			f.Lie = true
		}
		return f
	})
}

// toLog reports a write to a log, and not to its lock.
func toLog(op faultfs.Op) bool {
	return op.Kind == faultfs.OpWrite && !strings.HasSuffix(op.Path, ".lock")
}

// root makes a store in a folder of the test's own.
func root(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := New(filepath.Join(t.TempDir(), "sessions"), o)
	if err != nil {
		t.Fatal(err)
	}
	s.disk = unsynced()
	return s
}

// session stores a session of some turns and hands it back closed.
func session(t *testing.T, s store.Store, id string, turns int) *outcrop.Session {
	t.Helper()
	l, err := store.Create(bg, s, storetest.Header(id), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for turn := range turns {
		must(t, storetest.Turn(l.Session(), turn+1))
		must(t, l.Flush(bg))
	}
	must(t, l.Close(bg))
	return l.Session()
}

func logPath(t *testing.T, s *Store, id string) string {
	t.Helper()
	f, err := s.find(id)
	if err != nil {
		t.Fatal(err)
	}
	return f.path()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var bg = context.Background()

// both runs a test in each encoding.
func both(t *testing.T, run func(t *testing.T, o Options)) {
	t.Run("zstd", func(t *testing.T) { run(t, Options{}) })
	t.Run("plain", func(t *testing.T) { run(t, Options{Plain: true}) })
}

// names lists what lies under a folder, relative to it.
func names(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && path != root {
			rel, _ := filepath.Rel(root, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
