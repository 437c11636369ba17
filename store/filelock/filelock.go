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

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
)

// Lock is a held lock file.
type Lock struct {
	path string
	disk faultfs.FS
	held faultfs.Lock
}

// Take takes a lock file on disk, which is made when it is missing, and writes program
// and since, in Unix milliseconds, into it. Somebody else's lock gives a
// *store.LockedError; other errors are *outcrop.Error.
func Take(disk faultfs.FS, path, program string, since int64) (*Lock, error) {
	// The holder is written into it: never through a link into another file.
	if fi, err := disk.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		p, kind := problem(path, fs.ErrInvalid), "a folder or a special file"
		if fi.Mode()&fs.ModeSymlink != 0 {
			kind = "a symbolic link"
		}
		p.Msg, p.Hint = "the lock is not a regular file but "+kind, "remove it, a plain file takes its place"
		return nil, p
	}
	for {
		held, err := try(disk, path)
		if err != nil && !errors.Is(err, faultfs.ErrHeld) {
			p := problem(path, err)
			if errors.Is(err, fs.ErrPermission) {
				p.Hint = "a session is continued only where its folder can be written; it can be read"
			}
			return nil, p
		}
		if err != nil {
			return nil, &store.LockedError{Holder: readHolder(disk, path)}
		}
		// The file may have been removed with its unpublished session between
		// the opening and the locking of it; then this is nobody's lock.
		mine, err := held.Stat()
		there, err2 := disk.Stat(path)
		if err == nil && err2 == nil && faultfs.SameFile(mine, there) {
			l := &Lock{path, disk, held}
			l.write(store.Holder{PID: os.Getpid(), Program: program, Since: since})
			return l, nil
		}
		if err := held.Close(); err != nil {
			return nil, problem(path, err)
		}
		if err2 != nil && !errors.Is(err2, fs.ErrNotExist) {
			return nil, problem(path, err2)
		}
	}
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
func try(disk faultfs.FS, path string) (faultfs.Lock, error) {
	const flag = os.O_CREATE | os.O_RDONLY
	held, err := disk.Lock(path, flag, false)
	if !errors.Is(err, faultfs.ErrHeld) {
		return held, err
	}
	time.Sleep(5 * time.Millisecond)
	return disk.Lock(path, flag, false)
}

// write says who holds the lock. It is for people: nothing depends on it, so
// that an error is no reason not to go on.
func (l *Lock) write(h store.Holder) {
	h.Host, _ = os.Hostname()
	b, err := jsonwire.Marshal(h)
	if err != nil {
		return
	}
	f, err := l.disk.OpenFile(l.path, os.O_WRONLY, 0)
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
	if f, err := l.disk.OpenFile(l.path, os.O_WRONLY, 0); err == nil {
		f.Truncate(0)
		f.Close()
	}
	return l.held.Close()
}

// Remove takes the lock file away with a session that was never published.
func (l *Lock) Remove() error {
	l.disk.Remove(l.path)
	return l.held.Close()
}

// readHolder reads who holds a lock, as far as it is written there.
func readHolder(disk faultfs.FS, path string) (h store.Holder) {
	f, err := faultfs.Open(disk, path)
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
func HolderOf(disk faultfs.FS, path string) (h store.Holder, held bool) {
	fi, err := disk.Stat(path)
	if err != nil || fi.Size() == 0 {
		return h, false
	}
	l, err := disk.Lock(path, os.O_RDONLY, true)
	if err == nil {
		l.Close() // its holder died
	}
	if !errors.Is(err, faultfs.ErrHeld) {
		return h, false
	}
	return readHolder(disk, path), true
}
