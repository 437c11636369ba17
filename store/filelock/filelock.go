// Package filelock is the lock of a session that lives in files: a lock file
// that the system frees when the process ends, with the name of its holder
// written in it for people. The file stays when the lock is handed back.
package filelock

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
)

// Lock is a held lock file.
type Lock struct {
	path string
	fl   *flock.Flock
}

// Take takes a lock file, which is made when it is missing, and writes program
// and since, in Unix milliseconds, into it. Somebody else's lock gives a
// *store.LockedError; other errors are *outcrop.Error.
func Take(path, program string, since int64) (*Lock, error) {
	// The holder is written into it: never through a link into another file.
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		p, kind := problem(path, fs.ErrInvalid), "a folder or a special file"
		if fi.Mode()&fs.ModeSymlink != 0 {
			kind = "a symbolic link"
		}
		p.Msg, p.Hint = "the lock is not a regular file but "+kind, "remove it, a plain file takes its place"
		return nil, p
	}
	fl := flock.New(path, flock.SetPermissions(0o600))
	for {
		ok, err := try(fl)
		if err != nil {
			p := problem(path, err)
			if errors.Is(err, fs.ErrPermission) {
				p.Hint = "a session is continued only where its folder can be written; it can be read"
			}
			return nil, p
		}
		if !ok {
			return nil, &store.LockedError{Holder: readHolder(path)}
		}
		// The file may have been removed with its unpublished session between
		// the opening and the locking of it; then this is nobody's lock.
		mine, err := fl.Stat()
		there, err2 := os.Stat(path)
		if err == nil && err2 == nil && os.SameFile(mine, there) {
			break
		}
		if err := fl.Close(); err != nil {
			return nil, problem(path, err)
		}
		if err2 != nil && !errors.Is(err2, fs.ErrNotExist) {
			return nil, problem(path, err2)
		}
	}
	l := &Lock{path, fl}
	l.write(store.Holder{PID: os.Getpid(), Program: program, Since: since})
	return l, nil
}

func problem(path string, err error) *outcrop.Error {
	msg := err.Error()
	var pe *fs.PathError
	if errors.As(err, &pe) {
		msg = pe.Err.Error()
	}
	return &outcrop.Error{Op: "lock", Path: path, Seq: -1, Offset: -1, Err: err, Msg: msg}
}

// try takes the lock, and tries once more when it was held: a listing holds a
// dead writer's lock for a moment, to see that it is dead.
func try(fl *flock.Flock) (bool, error) {
	ok, err := fl.TryLock()
	if ok || err != nil {
		return ok, err
	}
	time.Sleep(5 * time.Millisecond)
	return fl.TryLock()
}

// write says who holds the lock. It is for people: nothing depends on it, so
// that an error is no reason not to go on.
func (l *Lock) write(h store.Holder) {
	h.Host, _ = os.Hostname()
	b, err := jsonwire.Marshal(h)
	if err != nil {
		return
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	f.Truncate(0)
	f.WriteAt(append(b, '\n'), 1)
	f.WriteAt([]byte{' '}, 0)
}

// Path is the lock file.
func (l *Lock) Path() string { return l.path }

// Release empties the lock file and hands it back.
func (l *Lock) Release() error {
	os.Truncate(l.path, 0)
	return l.fl.Close()
}

// Remove takes the lock file away with a session that was never published.
func (l *Lock) Remove() error {
	os.Remove(l.path)
	return l.fl.Close()
}

// readHolder reads who holds a lock, as far as it is written there.
func readHolder(path string) (h store.Holder) {
	f, err := os.Open(path)
	if err != nil {
		return h
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 1, 64<<10))
	if err != nil || jsonwire.Unmarshal(bytes.TrimSpace(b), &h) != nil {
		return store.Holder{}
	}
	return h
}

// HolderOf reports whether somebody holds a lock file, without taking it when
// the file says that nobody does.
func HolderOf(path string) (h store.Holder, held bool) {
	fi, err := os.Stat(path)
	if err != nil || fi.Size() == 0 {
		return h, false
	}
	fl := flock.New(path, flock.SetFlag(os.O_RDONLY))
	if ok, err := fl.TryRLock(); ok || err != nil {
		// Its holder died.
		fl.Close()
		return h, false
	}
	return readHolder(path), true
}
