package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func verdictOf(t *testing.T, s *Store) string {
	t.Helper()
	db, err := s.reader(bg)
	if err != nil {
		t.Fatal(err)
	}
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil {
		t.Fatal(err)
	}
	return verdict
}

func TestWhoLooksWhileTheFileIsMadeSeesNothingOrEverything(t *testing.T) {
	for range 8 {
		path := filepath.Join(t.TempDir(), "s.db")
		var all sync.WaitGroup
		done := make(chan struct{})
		all.Go(func() {
			defer close(done)
			newSession(t, open(t, path), "s1").Close(bg)
		})
		for range 3 {
			all.Go(func() {
				for {
					s := open(t, path)
					if _, err := s.List(bg, store.ListOptions{}); err != nil {
						t.Error(err)
						return
					}
					if _, err := s.Read(bg, "s1"); err != nil && !errors.Is(err, outcrop.ErrNotFound) {
						t.Error(err)
						return
					}
					s.Close()
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		all.Wait()
	}
}

// Many writers in one process, each with a store of its own, and a reader that
// holds on to an old state meanwhile: nobody is told that the database is locked.
func TestManyWritersWaitForEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	newSession(t, open(t, path), "old").Close(bg)
	in, err := open(t, path).Read(bg, "old")
	if err != nil {
		t.Fatal(err)
	}
	const writers, batches = 8, 25
	var all sync.WaitGroup
	for range in.Records() { // its transaction is open while the others write
		for i := range writers {
			all.Go(func() {
				s := open(t, path)
				l, err := s.Create(bg, storetest.Header(fmt.Sprint("s", i)))
				if err != nil {
					t.Error(err)
					return
				}
				defer l.Close()
				for n := range outcrop.Seq(batches) {
					if err := l.Append(bg, todos(n, 1)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		break
	}
	s := open(t, path)
	for i := range writers {
		if got, _, err := store.Inspect(bg, s, fmt.Sprint("s", i), outcrop.Options{}); err != nil || got.Len() != batches {
			t.Errorf("s%d: %v", i, err)
		}
	}
	if v := verdictOf(t, s); v != "ok" {
		t.Error(v)
	}
}

func todos(from outcrop.Seq, n int) func(func(outcrop.Record) bool) {
	return func(yield func(outcrop.Record) bool) {
		for i := range n {
			if !yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeTodoWrite, Seq: from + outcrop.Seq(i), Time: 1, Data: []byte(`{"todos":[]}`)}}) {
				return
			}
		}
	}
}

// A context that ends at any moment leaves the batch in or out, and says which.
func TestContextsThatEndAtRandomBreakNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	r := rand.New(rand.NewPCG(1, 1))
	const writers = 4
	leases, next := make([]store.Lease, writers), make([]outcrop.Seq, writers)
	for i := range leases {
		l, err := s.Create(bg, storetest.Header(fmt.Sprint("s", i)))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		leases[i] = l
	}
	for range 100 {
		ctx, cancel := context.WithCancel(bg)
		// It ends while one of them is at one of its records, or behind.
		who, when := r.IntN(writers), r.IntN(40)
		var all sync.WaitGroup
		for i, l := range leases {
			all.Go(func() {
				n := 0
				recs := func(yield func(outcrop.Record) bool) {
					for rec := range todos(next[i], 20) {
						if n++; i == who && n == when {
							cancel()
						}
						if !yield(rec) {
							return
						}
					}
				}
				switch err := l.Append(ctx, recs); {
				case err == nil:
					next[i] += 20
				case !errors.Is(err, context.Canceled):
					t.Error(err)
				}
				if i == who {
					cancel()
				}
			})
		}
		all.Go(func() { s.List(ctx, store.ListOptions{Full: true}) })
		all.Wait()
		cancel()
	}
	for i := range leases {
		got, _, err := store.Inspect(bg, open(t, path), fmt.Sprint("s", i), outcrop.Options{})
		if next[i] == 0 && errors.Is(err, outcrop.ErrNotFound) {
			continue
		}
		if err != nil || got.Len() != int(next[i]) {
			t.Errorf("s%d: %d events were stored, want %d: %v", i, got.Len(), next[i], err)
		}
	}
	if v := verdictOf(t, s); v != "ok" {
		t.Error(v)
	}
}

// A copy of the file alone, while the database is in use, has what it had at some
// moment before, or is refused. It never shows half a batch.
func TestACopyWithoutTheWriteAheadLogIsAnEarlierState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	l, err := s.Create(bg, storetest.Header("s1"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	states := map[string]bool{}
	for n := range outcrop.Seq(40) {
		if err := l.Append(bg, todos(n*50, 50)); err != nil {
			t.Fatal(err)
		}
		if n%10 == 5 {
			if _, err := s.write.Exec("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
				t.Fatal(err)
			}
		}
		to := filepath.Join(t.TempDir(), "copy.db")
		copyFile(t, path, to)
		got, _, err := store.Inspect(bg, open(t, to), "s1", outcrop.Options{})
		switch {
		case errors.Is(err, outcrop.ErrNotFound):
			states["nothing"] = true
		case err != nil:
			states["refused"] = true
		case got.Len()%50 != 0 || got.Len() > int(n+1)*50:
			t.Fatalf("after %d batches the copy has %d events", n+1, got.Len())
		default:
			states["earlier"] = true
		}
		// With it, the copy is complete.
		to = filepath.Join(t.TempDir(), "copy.db")
		copyFile(t, path, to)
		copyFile(t, path+"-wal", to+"-wal")
		if got, _, err := store.Inspect(bg, open(t, to), "s1", outcrop.Options{}); err != nil || got.Len() != int(n+1)*50 {
			t.Fatalf("with the write-ahead log: %d events, %v", got.Len(), err)
		}
	}
	if !states["nothing"] || !states["earlier"] {
		t.Errorf("seen: %v", states)
	}
}

// copyFile copies with a process of its own: closing the file here would free
// the locks on it.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// shmless makes the folder of a database unable to hold its shared memory.
func shmless(t *testing.T, path string) {
	t.Helper()
	for _, name := range []string{path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	// A link to nothing is opened neither for writing nor for reading.
	if err := os.Symlink(filepath.Join(filepath.Dir(path), "nowhere", "x"), path+"-shm"); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderThatCannotHoldAWriteAheadLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	l := newSession(t, s, "s1")
	want := outcrop.LogDigest(l.Session().Log())
	if err := errors.Join(l.Close(bg), s.Close()); err != nil {
		t.Fatal(err)
	}
	shmless(t, path)
	var log bytes.Buffer
	s = open(t, path, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	got, _, err := store.Inspect(bg, s, "s1", outcrop.Options{})
	if err != nil || outcrop.LogDigest(got.Log()) != want {
		t.Fatalf("it cannot be read: %v", err)
	}
	if !strings.Contains(log.String(), "cannot hold a write-ahead log") {
		t.Errorf("nothing was said: %s", &log)
	}
	if _, err := store.Open(bg, s, "s1", store.Options{}); err == nil || !strings.Contains(err.Error(), "-shm") {
		t.Errorf("opened for writing: %v", err)
	}
	// With events in the write-ahead log, reading without it would hide them.
	if err := os.WriteFile(path+"-wal", []byte("something"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Inspect(bg, open(t, path), "s1", outcrop.Options{}); err == nil || !strings.Contains(err.Error(), "copy the database with its -wal") {
		t.Errorf("with a write-ahead log: %v", err)
	}
}

func TestANewDatabaseWhereNoWriteAheadLogCanBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	shmless(t, path)
	var log bytes.Buffer
	s := open(t, path, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l, err := store.Create(bg, s, storetest.Header("s1"), store.Options{})
	if err == nil {
		err = errors.Join(storetest.Turn(l.Session(), 1), l.Flush(bg), storetest.Turn(l.Session(), 2), l.Close(bg))
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "rollback journal") {
		t.Errorf("nothing was said: %s", &log)
	}
	got, _, err := store.Inspect(bg, open(t, path), "s1", outcrop.Options{})
	if err != nil || outcrop.LogDigest(got.Log()) != outcrop.LogDigest(l.Session().Log()) {
		t.Error(err)
	}
}

func TestAFailedSyncEndsTheWritingOfTheWholeFile(t *testing.T) {
	failing := error(nil)
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, Options{fail: func(op string) error {
		if op == "sync" {
			return failing
		}
		return nil
	}})
	a, b := newSession(t, s, "a"), newSession(t, s, "b")
	failing = errors.New("the disk is gone")
	for _, l := range []*store.Live{a, b} {
		if err := storetest.Turn(l.Session(), 2); err != nil {
			t.Fatal(err)
		}
		if err := l.Flush(bg); !errors.Is(err, store.ErrSync) {
			t.Errorf("%v", err)
		}
		failing = nil // the next one is not even tried
	}
	if _, err := s.Objects().Put(bg, []byte("x")); !errors.Is(err, store.ErrSync) {
		t.Errorf("an attachment: %v", err)
	}
	if _, _, err := store.Inspect(bg, s, "a", outcrop.Options{}); err != nil {
		t.Errorf("reading goes on: %v", err)
	}
}

func TestALargeLogIsPutThroughAFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "s.db"))
	newSession(t, s, "s1")
	big := []byte(`{"text":"` + strings.Repeat("long ", 600_000) + `"}`)
	const n = 8
	put := func(id string, then error) error {
		return s.Put(bg, storetest.Header(id), func(yield func(outcrop.Record, error) bool) {
			for i := range n {
				if !yield(outcrop.Record{Event: outcrop.Event{Type: "x/big", Seq: outcrop.Seq(i), Data: big, Ignorable: true}}, nil) {
					return
				}
			}
			if then != nil {
				yield(outcrop.Record{}, then)
			}
		})
	}
	full := errors.New("no more")
	if err := put("big", full); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if err := put("big", nil); err != nil {
		t.Fatal(err)
	}
	got, _, err := store.Inspect(bg, s, "big", outcrop.Options{})
	if err != nil || got.Len() != n {
		t.Fatal(err)
	}
	for e := range outcrop.Events(got.Log(), 0) {
		if !bytes.Equal(e.Data, big) {
			t.Fatalf("event %d has other data", e.Seq)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".outcrop-put-*"))
	if err != nil || left != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Our ids and another schema: nothing that is ours can be read, nothing is
// changed.
func TestAMissingColumnIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	newSession(t, open(t, path), "s1").Close(bg)
	raw(t, path, "ALTER TABLE events DROP COLUMN line")
	s := open(t, path)
	if _, _, err := store.Inspect(bg, s, "s1", outcrop.Options{}); err == nil || !strings.Contains(err.Error(), "no such column: line") {
		t.Errorf("%v", err)
	}
	if l, err := store.Open(bg, s, "s1", store.Options{}); err == nil {
		l.Close(bg)
		t.Error("it was opened")
	}
}

func TestADatabaseOnAFileSystemOfManyMachines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	var log bytes.Buffer
	far := Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), remote: func(string) string { return "NFS" }}
	s := open(t, path, far)
	newSession(t, s, "s1").Close(bg)
	var mode string
	if err := s.write.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "delete" || !strings.Contains(log.String(), "rollback journal") {
		t.Errorf("%s, %v; said was %s", mode, err, &log)
	}
	// One that came from elsewhere keeps what it has, and is warned of.
	path = filepath.Join(t.TempDir(), "s.db")
	newSession(t, open(t, path), "s1").Close(bg)
	log.Reset()
	newSession(t, open(t, path, far), "s2").Close(bg)
	if !strings.Contains(log.String(), "two machines") {
		t.Errorf("said was %s", &log)
	}
	if name := remote(t.TempDir()); name != "" {
		t.Logf("the tests run on %s", name)
	}
}
