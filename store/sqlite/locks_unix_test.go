//go:build unix

package sqlite

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/outcrop-dev/outcrop/store"
)

// Closing a file frees every lock that the process has on it. The database may
// only be opened and closed by SQLite itself while it is in use: else another
// process takes itself for the last one and removes the write-ahead log.
func TestOpeningForWritingKeepsTheLocksOfTheReader(t *testing.T) {
	if path := os.Getenv("OUTCROP_TEST_LOCKED"); path != "" {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		// SQLite's range of shared locks.
		l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0x40000002, Len: 510}
		if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == unix.F_UNLCK {
			t.Error("nobody has a lock on the database")
		}
		return
	}
	path := filepath.Join(t.TempDir(), "s.db")
	first := open(t, path)
	newSession(t, first, "s1").Close(bg)
	first.Close()
	s := open(t, path)
	locked := func(when string) {
		t.Helper()
		c := exec.Command(os.Args[0], "-test.run=^TestOpeningForWritingKeepsTheLocksOfTheReader$")
		c.Env = append(os.Environ(), "OUTCROP_TEST_LOCKED="+path)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", when, err, out)
		}
	}
	if _, err := s.List(bg, store.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	locked("after a listing")
	if _, err := s.Objects().Put(bg, []byte("x")); err != nil {
		t.Fatal(err)
	}
	locked("after a write")
}
