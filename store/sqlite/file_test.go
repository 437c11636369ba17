package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func open(t testing.TB, path string, o ...Options) *Store {
	t.Helper()
	s, err := New(path, append(o, Options{Program: "the tests"})[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// session makes a stored session with one turn.
func newSession(t testing.TB, s *Store, id string) *store.Live {
	t.Helper()
	l, err := store.Create(bg, s, storetest.Header(id), store.Options{})
	if err == nil {
		err = storetest.Turn(l.Session(), 1)
	}
	if err == nil {
		err = l.Flush(bg)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(bg) })
	return l
}

func raw(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range statements {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func TestAFileThatIsNotOursIsRefusedAndStaysAsItIs(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"a later schema", func(t *testing.T, path string) {
			newSession(t, open(t, path), "s1").Close(bg)
			raw(t, path, "PRAGMA user_version=2")
		}, "its schema version is 2, this version of outcrop reads 1: nothing is migrated"},
		{"an earlier schema", func(t *testing.T, path string) {
			raw(t, path, "CREATE TABLE sessions (x)", fmt.Sprintf("PRAGMA application_id=%d", ApplicationID))
		}, "its schema version is 0"},
		{"dsh's store", func(t *testing.T, path string) {
			raw(t, path, "CREATE TABLE events (x)", fmt.Sprintf("PRAGMA application_id=%d", dshApplicationID), "PRAGMA user_version=17")
		}, "it is a store of DeepSeek Harness (schema version 17)"},
		{"another program's tables of the same names", func(t *testing.T, path string) {
			raw(t, path, "CREATE TABLE events (x)", "CREATE TABLE sessions (x)")
		}, "the database of another program: table events, table sessions"},
		{"another program's version alone", func(t *testing.T, path string) { raw(t, path, "PRAGMA user_version=1") }, "another program"},
		{"a text file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "no SQLite database"},
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "no regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			c.make(t, path)
			before, _ := os.ReadFile(path)
			s := open(t, path)
			_, listErr := s.List(bg, store.ListOptions{})
			_, readErr := s.Read(bg, "s1")
			_, openErr := s.Acquire(bg, "s1")
			_, putErr := s.Objects().Put(bg, []byte("x"))
			l, createErr := s.Create(bg, storetest.Header("s2"))
			if createErr == nil {
				createErr = l.Append(bg, func(func(outcrop.Record) bool) {})
			}
			for what, err := range map[string]error{"list": listErr, "read": readErr, "open": openErr, "create": createErr} {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if putErr == nil {
				t.Error("an attachment was put into it")
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestNoFileIsAnEmptyStoreAndAnEmptyFileIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "s.db")
	s := open(t, path)
	if infos, err := s.List(bg, store.ListOptions{}); err != nil || infos != nil {
		t.Errorf("%v, %v", infos, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("looking made a folder")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	newSession(t, s, "s1")
	if infos, err := open(t, path).List(bg, store.ListOptions{}); err != nil || len(infos) != 1 {
		t.Errorf("%v, %v", infos, err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

// What is set by a statement would reach one connection of many.
func TestEachConnectionHasTheSettings(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	newSession(t, s, "s1")
	for _, mode := range []string{"ro", "rw"} {
		db, err := s.open(mode, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for range 8 {
			c, err := db.Conn(bg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for pragma, want := range map[string]string{"busy_timeout": "5000", "foreign_keys": "1", "synchronous": "2", "journal_mode": "wal", "trusted_schema": "0"} {
				var got string
				if err := c.QueryRowContext(bg, "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
					t.Errorf("%s: %s is %s, want %s (%v)", mode, pragma, got, want, err)
				}
			}
		}
	}
}

func TestAWriterWhoseSessionWasTakenOverWritesNoMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	first := newSession(t, open(t, path), "s1")
	// Its lock is lost, as on a file system that shares none.
	if err := os.RemoveAll(path + ".locks"); err != nil {
		t.Fatal(err)
	}
	second, err := store.Open(bg, open(t, path), "s1", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close(bg)
	if err := storetest.Turn(first.Session(), 2); err != nil {
		t.Fatal(err)
	}
	if err := first.Flush(bg); !errors.Is(err, store.ErrMoved) {
		t.Errorf("the first writer: %v", err)
	}
	if err := storetest.Turn(second.Session(), 2); err != nil {
		t.Fatal(err)
	}
	if err := second.Flush(bg); err != nil {
		t.Errorf("the second writer: %v", err)
	}
}

func TestAFullFileKeepsTheEventsAndIsTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	l := newSession(t, s, "s1")
	var pages int
	if err := s.write.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write.Exec(fmt.Sprintf("PRAGMA max_page_count=%d", pages)); err != nil {
		t.Fatal(err)
	}
	for turn := 2; turn < 40; turn++ {
		if err := storetest.Turn(l.Session(), turn); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(bg); err == nil || !strings.Contains(err.Error(), "the disk is full: make room") {
		t.Fatalf("%v", err)
	}
	if _, err := s.write.Exec("PRAGMA max_page_count=100000"); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(bg); err != nil {
		t.Fatal(err)
	}
	got, _, err := store.Inspect(bg, open(t, path), "s1", outcrop.Options{})
	if err != nil || outcrop.LogDigest(got.Log()) != outcrop.LogDigest(l.Session().Log()) {
		t.Errorf("%v", err)
	}
}

func TestAFileThatCannotBeWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	l := newSession(t, open(t, path), "s1")
	if err := errors.Join(l.Close(bg), open(t, path).Close()); err != nil {
		t.Fatal(err)
	}
	// Everything is in the one file now.
	raw(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if _, _, err := store.Inspect(bg, s, "s1", outcrop.Options{}); err != nil {
		t.Error(err)
	}
	if os.Geteuid() == 0 {
		// The superuser may write it all the same.
		return
	}
	if _, err := store.Open(bg, s, "s1", store.Options{}); err == nil {
		t.Error("it was opened for writing")
	}
}

func TestACancelledContextWritesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	l, err := s.Create(bg, storetest.Header("s1"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := l.Append(ctx, func(func(outcrop.Record) bool) { t.Error("records were read") }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Read(bg, "s1"); !errors.Is(err, outcrop.ErrNotFound) {
		t.Error(err)
	}
}

func TestRemovedRowsAreFound(t *testing.T) {
	for name, q := range map[string]string{
		"at the end":    "DELETE FROM events WHERE seq > 5",
		"in the middle": "DELETE FROM events WHERE seq = 2",
		"changed":       "UPDATE events SET data = x'7b' WHERE seq = 2",
		"misnumbered":   "UPDATE events SET count = 7 WHERE seq = 2",
	} {
		path := filepath.Join(t.TempDir(), "s.db")
		newSession(t, open(t, path), "s1").Close(bg)
		raw(t, path, q)
		s := open(t, path)
		if _, _, err := store.Inspect(bg, s, "s1", outcrop.Options{}); !errors.Is(err, outcrop.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		infos, err := s.List(bg, store.ListOptions{Full: true})
		if err != nil || len(infos) != 1 || infos[0].State != store.StateDamaged {
			t.Errorf("%s: %v, %v", name, infos, err)
		}
	}
}

// Each log of the corpus that can be read is copied here and is the same.
func TestTheCorpusIsTheSameHere(t *testing.T) {
	roots, err := filepath.Glob("../../testdata/corpus/*/sessions")
	if err != nil || len(roots) == 0 {
		t.Fatal("no corpus", err)
	}
	copied := 0
	for _, root := range roots {
		from, err := jsonl.New(root, jsonl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		infos, err := from.List(bg, store.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		to := open(t, filepath.Join(t.TempDir(), "s.db"))
		for _, in := range infos {
			want, tail, err := store.Inspect(bg, from, in.ID, outcrop.Options{})
			if err != nil || tail.Torn {
				continue
			}
			if err := store.Copy(bg, to, from, in.ID); err != nil {
				t.Errorf("%s: %v", root, err)
				continue
			}
			got, _, err := store.Inspect(bg, to, in.ID, outcrop.Options{})
			if err != nil || outcrop.LogDigest(got.Log()) != outcrop.LogDigest(want.Log()) || string(got.Header().Line()) != string(want.Header().Line()) {
				t.Errorf("%s differs: %v", root, err)
			}
			copied++
		}
	}
	if copied < 30 {
		t.Errorf("%d logs were copied", copied)
	}
}

// Several processes append to sessions of one file at the same time.
func TestManyProcessesWriteOneFile(t *testing.T) {
	if path := os.Getenv("OUTCROP_TEST_DB"); path != "" {
		s := open(t, path)
		l, err := store.Create(bg, s, storetest.Header(os.Getenv("OUTCROP_TEST_ID")), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for turn := 1; turn <= 20; turn++ {
			if err := storetest.Turn(l.Session(), turn); err != nil {
				t.Fatal(err)
			}
			if err := l.Flush(bg); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(bg); err != nil {
			t.Fatal(err)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "s.db")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			c := exec.Command(os.Args[0], "-test.run=^TestManyProcessesWriteOneFile$")
			c.Env = append(os.Environ(), "OUTCROP_TEST_DB="+path, fmt.Sprintf("OUTCROP_TEST_ID=s%d", i))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	s := open(t, path)
	for i := range 4 {
		got, _, err := store.Inspect(bg, s, fmt.Sprintf("s%d", i), outcrop.Options{})
		if err != nil || got.Len() < 20*10 {
			t.Errorf("%v", err)
		}
	}
	var verdict string
	if err := s.read.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("%s, %v", verdict, err)
	}
}
