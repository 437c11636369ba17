package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
	"github.com/outcrop-dev/outcrop/wire"
)

// lease is the writer of one log file. Its life:
//
//	newLease ── publish ──┐
//	                      ├── append, sync ... ── Close
//	take ── Records ──────┘
//
// The file stays open. What the lease knows about it, its identity and the size
// that its own last write left, is compared before each write.
type lease struct {
	disk     faultfs.FS
	opt      Options
	header   outcrop.Header
	path     string
	lockPath string
	enc      wire.Encoding
	root     string       // "" for a file outside a root
	above    *atomic.Bool // the folders above the root were synced; nil for a file
	free     func() error // whether the id may be given to a new session; nil for a file
	agrees   func() error // whether the root takes logs of this encoding; nil for a file

	lock   *filelock.Lock
	file   faultfs.File // nil before a new log is published
	id     os.FileInfo
	size   int64 // of the file as we left it
	dirty  int64 // how far a failed write that could not be cut back may reach; 0: there is none
	synced bool
	dead   error // why nothing may be written any more

	in      *Log     // for loading; nil for a new log
	stop    wire.Pos // as in Log
	tail    wire.Tail
	encoder *wire.Encoder
	buf     []byte
}

func (l *lease) Header() outcrop.Header { return l.header }

// take locks a log that exists and opens it: first the lock, then the reading.
func (l *lease) take(context.Context) (err error) {
	if l.lock, err = takeLock(l.disk, l.lockPath, &l.opt); err != nil {
		e := l.problem("open", err)
		if errors.Is(err, store.ErrLocked) {
			e.Hint = "end it there first; reading needs no lock"
		}
		return e
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	// Never O_CREATE: a log that has vanished must not come back without its
	// header.
	if l.file, err = l.disk.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return pathProblem("open", l.path, err)
	}
	if l.id, err = l.file.Stat(); err != nil {
		return pathProblem("open", l.path, err)
	}
	l.size = l.id.Size()
	if l.in, err = openLog(l.disk, l.path, l.enc); err != nil {
		return err
	}
	if !faultfs.SameFile(l.in.info, l.id) || l.in.info.Size() != l.size {
		return l.moved("it changed while it was being opened")
	}
	l.header = l.in.Header()
	l.tail.Good = l.size
	return l.settle()
}

// settle makes durable what is there: whoever wrote it may have died before its
// sync, or before that of the folders, and from now on it counts as stored.
func (l *lease) settle() error {
	if err := l.file.Sync(); err != nil {
		return l.unsynced(l.path, err)
	}
	if err := l.syncFolders(nil); err != nil {
		return l.unsynced(filepath.Dir(l.path), err)
	}
	l.synced = true
	return nil
}

// Records is store.Lease's.
func (l *lease) Records() iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		if l.in == nil {
			return
		}
		in := l.in
		l.in = nil
		defer in.Close()
		for r, err := range in.Records() {
			if !yield(r, err) {
				l.stop = in.r.Pos()
				return
			}
		}
		l.tail = in.r.Tail()
	}
}

// Stopped is store.Placed's.
func (l *lease) Stopped() (path string, line int, offset int64) {
	return l.path, l.stop.Line, l.stop.Offset
}

// Tail is store.Lease's.
func (l *lease) Tail() store.Tail { return tailOf(l.tail, l.size) }

func tailOf(t wire.Tail, size int64) store.Tail {
	if !t.Torn {
		return store.Tail{Offset: size}
	}
	return store.Tail{Torn: true, Offset: t.Good, Bytes: size - t.Good, Recovered: t.Recovered, Reason: t.Reason}
}

// Append is store.Lease's.
func (l *lease) Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error {
	if l.dead != nil {
		return l.dead
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if l.encoder == nil {
		l.encoder = wire.NewEncoder(l.enc)
	}
	if l.file == nil {
		return l.publish(recs)
	}
	ends := false
	b, err := l.encoder.Batch(l.buf[:0], watch(recs, &ends))
	if err != nil {
		return l.problem("append", err)
	}
	l.keep(b)
	if err := l.check(); err != nil {
		return err
	}
	if l.tail.Torn {
		if err := l.cutTail(); err != nil {
			return err
		}
	}
	if ends {
		// A medium may keep this batch and lose an earlier one. Damage before
		// the end of a turn would be no torn tail.
		if err := l.Sync(ctx); err != nil {
			return err
		}
	}
	return l.append(b)
}

// watch passes records on and notes whether one of them ends a turn.
func watch(recs iter.Seq[outcrop.Record], ends *bool) iter.Seq[outcrop.Record] {
	return func(yield func(outcrop.Record) bool) {
		for r := range recs {
			*ends = *ends || r.Type == outcrop.TypeTurnEnd
			if !yield(r) {
				return
			}
		}
	}
}

// keep holds a batch's memory for the next one, unless it was an unusually
// large one.
func (l *lease) keep(b []byte) {
	if l.buf = nil; cap(b) <= 1<<20 {
		l.buf = b
	}
}

// check compares the file with what the last write left.
func (l *lease) check() error {
	fi, err := l.disk.Stat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.moved("it is gone")
	case err != nil:
		return pathProblem("append", l.path, err)
	case !faultfs.SameFile(fi, l.id):
		return l.moved("another file stands in its place")
	case l.dirty > 0 && fi.Size() >= l.size && fi.Size() <= l.dirty:
		// What a failed write left is still there.
		return l.cutBack()
	case fi.Size() != l.size:
		return l.moved(fmt.Sprintf("it has %d bytes and not %d", fi.Size(), l.size))
	}
	return nil
}

// append is one write, taken back when it does not succeed.
func (l *lease) append(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := l.file.Write(b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("%d of %d bytes written", n, len(b))
	}
	if err != nil {
		l.dirty = l.size + int64(len(b))
		return errors.Join(l.problem("append", pathProblem("append", l.path, err)), l.cutBack())
	}
	l.size += int64(n)
	l.synced = false
	return nil
}

// cutBack removes what a failed write left, so that the next one is not glued
// to it.
func (l *lease) cutBack() error {
	if err := l.file.Truncate(l.size); err != nil {
		return pathProblem("take back a failed write", l.path, err)
	}
	l.dirty = 0
	return nil
}

// Sync is store.Lease's.
func (l *lease) Sync(context.Context) error {
	if l.dead != nil {
		return l.dead
	}
	if l.file == nil || l.synced {
		return nil
	}
	if err := l.file.Sync(); err != nil {
		return l.unsynced(l.path, err)
	}
	l.synced = true
	return nil
}

// unsynced ends the writing: after a failed sync the system may drop what it
// could not write and say nothing the next time.
func (l *lease) unsynced(path string, err error) error {
	l.dead = &outcrop.Error{Op: "sync", Session: l.header.ID, Path: path, Seq: -1, Offset: -1, Err: errors.Join(store.ErrSync, err),
		Msg:  "the disk did not keep what was written: " + err.Error(),
		Hint: "look after the disk, then open the session again; this process does not write it any more"}
	return l.dead
}

func (l *lease) moved(how string) error {
	l.dead = &outcrop.Error{Op: "append", Session: l.header.ID, Path: l.path, Seq: -1, Offset: -1, Err: store.ErrMoved,
		Msg:  "another program changed the log: " + how,
		Hint: "nothing was written over it; open the session again to go on from what is there"}
	return l.dead
}

// cutTail puts the bytes of a torn tail aside and cuts the file.
func (l *lease) cutTail() error {
	aside := filepath.Join(filepath.Dir(l.path), fmt.Sprintf("%s.torn-%d", logStem, l.tail.Good))
	if l.root == "" {
		aside = fmt.Sprintf("%s.torn-%d", l.path, l.tail.Good)
	}
	if err := putAside(l.disk, l.path, l.tail.Good, l.size, aside); err != nil {
		return pathProblem("put a torn tail aside", aside, err)
	}
	if err := l.file.Truncate(l.tail.Good); err != nil {
		return pathProblem("cut a torn tail", l.path, err)
	}
	l.size, l.tail.Torn = l.tail.Good, false
	if err := l.file.Sync(); err != nil {
		return l.unsynced(l.path, err)
	}
	return nil
}

// Close is store.Lease's.
func (l *lease) Close() error {
	var errs []error
	if l.in != nil {
		errs = append(errs, l.in.Close())
	}
	if l.file != nil {
		errs = append(errs, l.file.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Release())
	}
	l.in, l.file, l.lock = nil, nil, nil
	if l.dead == nil {
		l.dead = l.problem("append", store.ErrClosed)
	}
	return errors.Join(errs...)
}

// problem adds session and path to an error.
func (l *lease) problem(op string, err error) *outcrop.Error {
	e := store.Problem(op, l.header.ID, err, "", "")
	if e.Path == "" {
		e.Path = l.path
	}
	return e
}
