package foreigndb

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
)

// folder is everything in a folder: names, sizes, times, contents; without the
// index of a write-ahead log when that is shared.
func folder(t *testing.T, dir string, shared bool) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if shared && strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		fi, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %d %v %x", e.Name(), fi.Size(), fi.ModTime(), sha256.Sum256(b)))
	}
	return all
}

// written makes a database with one row in the file and one in its log, in the
// journal mode, with its writer still there.
func written(t *testing.T, mode string) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.db")
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode("+mode+")")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	for _, q := range []string{"PRAGMA application_id = 77", "PRAGMA user_version = 5", "CREATE TABLE t(x)", "INSERT INTO t VALUES (1)", "PRAGMA wal_checkpoint(truncate)", "INSERT INTO t VALUES (2)"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	return path, db
}

// copied copies files of a database to a folder of their own.
func copied(t *testing.T, path string, suffixes ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "b.db")
	for _, s := range suffixes {
		b, err := os.ReadFile(path + s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+s, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestADatabaseIsReadAndNothingBesideItChanges(t *testing.T) {
	live, _ := written(t, "wal")
	old, _ := written(t, "delete")
	hot, w := written(t, "persist")
	// A journal that was left: the next read rolls the third row back.
	tx, err := w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("INSERT INTO t VALUES (3)"); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		// More than the cache holds, so that pages and journal are on the disk.
		if _, err := tx.Exec("INSERT INTO t VALUES (zeroblob(4000))"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		path string
		rows int
	}{
		{"a writer is at work", live, 2},
		{"the log and its index were left", copied(t, live, "", "-wal", "-shm"), 2},
		{"the log was left", copied(t, live, "", "-wal"), 2},
		{"there is no log", copied(t, live, ""), 1},
		{"an index was left", copied(t, live, "", "-shm"), 1},
		{"a rollback journal is not in use", copied(t, old, ""), 2},
		{"a rollback journal was left", copied(t, hot, "", "-journal"), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A writer of the same process shares its index with every reader of
			// the process, whatever they asked for.
			shared := c.path == live
			before := folder(t, filepath.Dir(c.path), shared)
			f, err := Open(t.Context(), c.path)
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if err := f.DB().QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil || n != c.rows {
				t.Errorf("%d rows, want %d, %v", n, c.rows, err)
			}
			if id := f.Identity(); id.ApplicationID != 77 || id.UserVersion != 5 || !slices.Equal(id.Tables, []string{"t"}) || !id.Has("t") || id.Has("u") {
				t.Errorf("it says that it is %+v", id)
			}
			if _, err := f.DB().Exec("INSERT INTO t VALUES (9)"); err == nil {
				t.Error("a row was written")
			}
			if f.Moved() {
				t.Error("it moved by being read")
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if after := folder(t, filepath.Dir(c.path), shared); !slices.Equal(before, after) {
				t.Errorf("the folder was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
			if f.copied != "" {
				if _, err := os.Stat(f.copied); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the private copy is still there: %v", err)
				}
			}
		})
	}
}

func TestAFileThatIsReadAsOneThatNobodyChangesTellsWhenSomebodyDid(t *testing.T) {
	live, _ := written(t, "wal")
	path := copied(t, live, "")
	f, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Moved() {
		t.Fatal("it moved, and nothing happened")
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("INSERT INTO t VALUES (3)"); err != nil {
		t.Fatal(err)
	}
	if !f.Moved() {
		t.Error("another program wrote it, and it did not move")
	}
	again, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	var n int
	if err := again.DB().QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil || n != 2 {
		t.Errorf("opened anew it has %d rows, %v; want 2", n, err)
	}
}

func TestWhatIsNoDatabaseIsNamed(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "a.txt")
	empty := filepath.Join(dir, "empty")
	broken := filepath.Join(dir, "broken.db")
	live, _ := written(t, "wal")
	b, err := os.ReadFile(live)
	if err != nil {
		t.Fatal(err)
	}
	// The first page of the schema is garbage.
	for i := 100; i < 4096; i++ {
		b[i] = byte(i*7 + 1)
	}
	for name, data := range map[string][]byte{text: []byte("not a database, but long enough to be one: " + strings.Repeat("x", 100)), empty: nil, broken: b} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path   string
		reason error
	}{
		{filepath.Join(dir, "absent"), fs.ErrNotExist}, {dir, outcrop.ErrRefused}, {text, outcrop.ErrRefused}, {empty, outcrop.ErrRefused}, {broken, outcrop.ErrDamaged},
	} {
		f, err := Open(t.Context(), c.path)
		var e *outcrop.Error
		if !errors.Is(err, c.reason) || !errors.As(err, &e) || e.Path != c.path || e.Msg == "" {
			t.Errorf("%s: %v, want one that is %v", c.path, err, c.reason)
		}
		if f != nil {
			f.Close()
		}
	}
	if Is(text) || Is(empty) || Is(dir) || Is(filepath.Join(dir, "absent")) || !Is(broken) || !Is(live) {
		t.Error("what begins as a database is not told from what does not")
	}
	if app, version, ok := HeadIdentity(live); !ok || app != 77 || version != 5 {
		t.Errorf("the head says %d %d %v", app, version, ok)
	}
}
