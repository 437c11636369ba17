package jsonl

import (
	"errors"
	"os"
	"time"

	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store/filelock"
)

// takeLock takes the lock file of a session.
func takeLock(disk faultfs.FS, path string, opt *Options) (*filelock.Lock, error) {
	since := int64(0)
	if opt.Now != nil {
		since = opt.Now()
	}
	return filelock.Take(disk, path, opt.Program, since)
}

// holdMost is how long a folder is waited for: who holds one does so for a
// moment, unless it was stopped.
const holdMost = 2 * time.Second

// holdFolder waits until nobody else holds a folder, and holds it until free is
// called. Where folders cannot be locked nobody waits for anybody.
func holdFolder(disk faultfs.FS, dir string) (free func()) {
	for waited := time.Duration(0); ; waited += time.Millisecond {
		l, err := disk.Lock(dir, os.O_RDONLY, false)
		switch {
		case err == nil:
			return func() { l.Close() }
		case !errors.Is(err, faultfs.ErrHeld) || waited >= holdMost:
			return func() {}
		}
		time.Sleep(time.Millisecond)
	}
}
