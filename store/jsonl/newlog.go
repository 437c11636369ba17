package jsonl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
	"github.com/outcrop-dev/outcrop/wire"
)

// newLog is a log that is being written and that nobody can see yet. Either
// show or drop ends it.
type newLog struct {
	l    *lease
	temp faultfs.File
	made []string // folders
	lock *filelock.Lock
	size int64
}

// begin makes the folders, takes the lock and opens the temporary file.
func (l *lease) begin() (n *newLog, err error) {
	if l.free != nil {
		if err := l.free(); err != nil {
			return nil, err
		}
	}
	n = &newLog{l: l}
	defer func() {
		if err != nil {
			n.drop()
		}
	}()
	dir := filepath.Dir(l.path)
	if n.made, err = faultfs.MakeFolders(l.disk, dir); err != nil {
		p := pathProblem("create", dir, err).(*outcrop.Error)
		if isNameError(err) {
			p.Hint = "choose a shorter session id"
		}
		return n, p
	}
	if n.lock, err = takeLock(l.disk, l.lockPath, &l.opt); err != nil {
		return n, l.problem("create", err)
	}
	if _, err := l.disk.Lstat(l.path); err == nil {
		return n, l.exists()
	}
	removeTemps(l.disk, l.path)
	if n.temp, err = createTemp(l.disk, l.path, l.opt.Rand); err != nil {
		return n, pathProblem("create", l.path, err)
	}
	return n, nil
}

func (l *lease) exists() error {
	return &outcrop.Error{Op: "create", Session: l.header.ID, Path: l.path, Code: outcrop.CodeSessionExists, Seq: -1, Offset: -1,
		Err: store.ErrExists, Hint: "open it, or choose another id"}
}

// Write appends to the temporary file.
func (n *newLog) Write(b []byte) (int, error) {
	w, err := n.temp.Write(b)
	if err == nil && w < len(b) {
		err = fmt.Errorf("%d of %d bytes written", w, len(b))
	}
	n.size += int64(w)
	if err != nil {
		return w, pathProblem("create", n.temp.Name(), err)
	}
	return w, nil
}

// movesOpenFiles: Windows neither renames nor removes a file that is open.
const movesOpenFiles = runtime.GOOS != "windows"

// show syncs the log and gives it its name. After it the lease has the lock
// and the open file.
func (n *newLog) show() (err error) {
	l, temp := n.l, n.temp.Name()
	if err := n.temp.Sync(); err != nil {
		// Nobody sees this file, so another one can be written.
		return pathProblem("create", temp, err)
	}
	if l.id, err = n.temp.Stat(); err != nil {
		return pathProblem("create", temp, err)
	}
	if !movesOpenFiles {
		if err := n.temp.Close(); err != nil {
			return pathProblem("create", temp, err)
		}
	}
	if err := n.publishAs(temp); err != nil {
		if errors.Is(err, store.ErrEncoding) {
			return err
		}
		if errors.Is(err, fs.ErrExist) {
			return l.exists()
		}
		return pathProblem("create", l.path, err)
	}
	// The open file goes on as the log, so that nothing can go wrong between
	// the name and the folders.
	l.file, n.temp = n.temp, nil
	l.lock, n.lock = n.lock, nil
	l.size = n.size
	if !movesOpenFiles {
		if l.file, err = l.disk.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			// It is there, complete; who opens the session again finds it.
			l.dead = pathProblem("create", l.path, err)
			return l.dead
		}
	}
	if err := l.syncFolders(n.made); err != nil {
		return l.unsynced(filepath.Dir(l.path), err)
	}
	l.synced = true
	return nil
}

// publishAs gives the log its name. Those who put the first log into a root at
// the same time do it one after the other, so that all have one encoding.
func (n *newLog) publishAs(temp string) error {
	l := n.l
	if l.agrees != nil {
		defer holdFolder(l.disk, l.root)()
		if err := l.agrees(); err != nil {
			return err
		}
	}
	return publishAs(l.disk, temp, l.path)
}

// drop removes everything that begin made.
func (n *newLog) drop() {
	if n.temp != nil {
		n.temp.Close()
		n.l.disk.Remove(n.temp.Name())
	}
	if n.lock != nil {
		// Only a log needs its lock; that of a file is left out of somebody's
		// folder when there is none after all.
		_, err := n.l.disk.Lstat(n.l.path)
		alone := n.l.root == "" && errors.Is(err, fs.ErrNotExist)
		if alone || len(n.made) > 0 && n.made[len(n.made)-1] == filepath.Dir(n.lock.Path()) {
			n.lock.Remove()
		} else {
			n.lock.Release()
		}
	}
	removeFolders(n.l.disk, n.made)
}

// publish writes header and first batch of a new session.
func (l *lease) publish(recs iter.Seq[outcrop.Record]) error {
	b, err := l.encoder.Batch(l.encoder.Header(l.buf[:0], l.header), recs)
	if err != nil {
		return l.problem("create", err)
	}
	l.keep(b)
	n, err := l.begin()
	if err != nil {
		return err
	}
	if _, err := n.Write(b); err != nil {
		n.drop()
		return err
	}
	return n.finish()
}

// finish shows the log, or drops it when that does not succeed.
func (n *newLog) finish() error {
	err := n.show()
	if err != nil && n.temp != nil {
		n.drop()
	}
	return err
}

// batchBytes is about how much text goes into one frame when a whole log is
// written at once: enough to be compressed well, and little enough that a
// listing finds the last frame in the last 64 KiB and decodes it quickly.
const batchBytes = 64 << 10

// writeBytes is about how much is written at once then.
const writeBytes = 256 << 10

// put writes a whole log, reads it back, and publishes it when it is the same.
func (l *lease) put(ctx context.Context, recs iter.Seq2[outcrop.Record, error]) (err error) {
	l.encoder = wire.NewEncoder(l.enc)
	l.encoder.Quick = true
	n, err := l.begin()
	if err != nil {
		return err
	}
	shown := false
	defer func() {
		if !shown {
			n.drop()
		}
	}()
	given := newTally()
	if err := n.write(ctx, given.through(recs)); err != nil {
		return err
	}
	if err := n.compare(given); err != nil {
		return err
	}
	shown = true
	err = n.finish()
	return errors.Join(err, l.Close())
}

// write encodes header and records in batches of moderate size. One is compressed
// and written while the next is made.
func (n *newLog) write(ctx context.Context, recs iter.Seq2[outcrop.Record, error]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches, spare := make(chan []byte), make(chan []byte, 2)
	for range cap(spare) {
		spare <- nil
	}
	var written sync.WaitGroup
	var failed error
	written.Go(func() {
		for text := range batches {
			if failed == nil {
				if failed = n.frame(text); failed != nil {
					cancel(failed)
				}
			}
			if cap(text) > 8*batchBytes {
				text = nil
			}
			spare <- text
		}
	})
	n.l.buf = n.l.encoder.Header(n.l.buf[:0], n.l.header)
	err := n.texts(ctx, recs, batches, spare)
	close(batches)
	written.Wait()
	if failed != nil || err != nil {
		return cmp.Or(failed, err)
	}
	_, err = n.Write(n.l.buf)
	return err
}

// frame encodes a text, and writes what has come together when that is much.
func (n *newLog) frame(text []byte) error {
	l := n.l
	l.buf = l.encoder.Frame(l.buf, text)
	if len(l.buf) < writeBytes {
		return nil
	}
	_, err := n.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// texts makes the texts of batches, each in room that is to spare.
func (n *newLog) texts(ctx context.Context, recs iter.Seq2[outcrop.Record, error], batches chan<- []byte, spare <-chan []byte) error {
	next, stop := iter.Pull2(recs)
	defer stop()
	var failed error
	for more := true; more; {
		bytes := 0
		batch := func(yield func(outcrop.Record) bool) {
			for bytes < batchBytes {
				r, err, ok := next()
				if !ok || err != nil {
					failed, more = err, false
					return
				}
				bytes += recordSize(&r)
				if !yield(r) {
					return
				}
			}
		}
		text, err := n.l.encoder.Text((<-spare)[:0], batch)
		if err != nil {
			return n.l.problem("create", err)
		}
		if failed != nil {
			return failed
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		batches <- text
	}
	return nil
}

func recordSize(r *outcrop.Record) int {
	if r.Run != nil {
		return len(r.Run.Line())
	}
	return max(len(r.Line()), len(r.Data)+64)
}
