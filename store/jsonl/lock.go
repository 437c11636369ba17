package jsonl

import (
	"bytes"
	"context"
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

// lock is a held lock file.
type lock struct {
	path string
	fl   *flock.Flock
}

// takeLock takes a lock file, which is made when it is missing, and writes the
// holder into it. Somebody else's lock gives a *store.LockedError.
func takeLock(path string, opt *Options) (*lock, error) {
	// The holder is written into it: never through a link into another file.
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		p := pathProblem("lock", path, fs.ErrInvalid).(*outcrop.Error)
		p.Msg, p.Hint = "the lock is not a regular file but "+kindOf(fi.Mode()), "remove it, a plain file takes its place"
		return nil, p
	}
	fl := flock.New(path, flock.SetPermissions(0o600))
	for {
		ok, err := try(fl)
		if err != nil {
			p := pathProblem("lock", path, err).(*outcrop.Error)
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
			return nil, pathProblem("lock", path, err)
		}
		if err2 != nil && !errors.Is(err2, fs.ErrNotExist) {
			return nil, pathProblem("lock", path, err2)
		}
	}
	l := &lock{path, fl}
	l.write(opt)
	return l, nil
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
func (l *lock) write(opt *Options) {
	h := store.Holder{PID: os.Getpid(), Program: opt.Program}
	h.Host, _ = os.Hostname()
	if opt.Now != nil {
		h.Since = opt.Now()
	}
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

// release empties the lock file and hands it back.
func (l *lock) release() error {
	os.Truncate(l.path, 0)
	return l.fl.Close()
}

// remove takes the lock file away with a session that was never published.
func (l *lock) remove() error {
	os.Remove(l.path)
	return l.fl.Close()
}

// holdMost is how long a folder is waited for: who holds one does so for a
// moment, unless it was stopped.
const holdMost = 2 * time.Second

// holdFolder waits until nobody else holds a folder, and holds it until free is
// called. Where folders cannot be locked nobody waits for anybody.
func holdFolder(dir string) (free func()) {
	fl := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	ctx, cancel := context.WithTimeout(context.Background(), holdMost)
	defer cancel()
	if ok, err := fl.TryLockContext(ctx, time.Millisecond); !ok || err != nil {
		fl.Close()
		return func() {}
	}
	return func() { fl.Close() }
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

// holderOf reports whether somebody holds a lock file, without taking it when
// the file says that nobody does.
func holderOf(path string) (h store.Holder, held bool) {
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
