package jsonl

import (
	"context"
	"os"
	"time"

	"github.com/gofrs/flock"

	"github.com/outcrop-dev/outcrop/store/filelock"
)

// takeLock takes the lock file of a session.
func takeLock(path string, opt *Options) (*filelock.Lock, error) {
	since := int64(0)
	if opt.Now != nil {
		since = opt.Now()
	}
	return filelock.Take(path, opt.Program, since)
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
