package repair

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// Files says where a repair finds the log and where it writes.
type Files struct {
	Log string // absolute path of the log file
	// Keep is a folder for what is left out, for backups and for reports; it is
	// made. Each repair gets a folder of its own in it, which begins with Stamp.
	Keep, Stamp string
	// Program and Now, Unix milliseconds, are what the session's lock says of
	// its holder.
	Program string
	Now     int64

	disk faultfs.FS // nil: the real one
}

// Saved is what a repair wrote.
type Saved struct {
	Log    string // the repaired log
	Folder string // with report.jsonl, and what was left out
	Backup string // the log as it was; "" when it stays where it is
}

// Copy writes the repaired log to the path to, which must not exist (to "": a
// name in the folder of this repair), durably, and what is left out beside its
// report. The log itself is not touched. What is written has passed Verify, and
// a second repair finds nothing to do; else the error is ErrNotRepairable and
// nothing is left behind.
func Copy(ctx context.Context, f Files, o Options, to string) (*Plan, Saved, error) {
	return f.repair(ctx, o, func(w *workshop) error {
		name := to
		if name == "" {
			name = filepath.Join(w.saved.Folder, "repaired."+string(w.enc))
		}
		temp := name + ".tmp"
		if err := w.make(temp); err != nil {
			return err
		}
		if err := w.disk.RenameNew(temp, name); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return &outcrop.Error{Op: "repair", Path: name, Seq: -1, Offset: -1, Err: err, Msg: "there is a file of this name", Hint: "name another one with --out"}
			}
			return err
		}
		w.rename(temp, name)
		w.saved.Log = name
		return w.disk.SyncDir(filepath.Dir(name))
	})
}

// InPlace puts the repaired log in the place of the damaged one: under the
// session's lock, with a backup, as a new file that is synced and renamed. The
// errors are those of Copy, and store.ErrLocked when somebody writes the
// session. After an error the log is what it was, or the repaired one.
func InPlace(ctx context.Context, f Files, o Options) (*Plan, Saved, error) {
	return f.repair(ctx, o, func(w *workshop) (err error) {
		lock, err := filelock.Take(w.disk, w.lockFile(o.Place), f.Program, f.Now)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Release()) }()
		w.saved.Backup = filepath.Join(w.saved.Folder, "before."+string(w.enc))
		if err := w.copyFile(w.saved.Backup); err != nil {
			return err
		}
		temp := w.path + ".repaired.tmp"
		if err := w.make(temp); err != nil {
			return err
		}
		now, err := w.disk.Stat(w.path)
		if err != nil {
			return err
		}
		if !faultfs.SameFile(now, w.info) || now.Size() != w.info.Size() {
			return &outcrop.Error{Op: "repair", Path: w.path, Seq: -1, Offset: -1, Err: store.ErrMoved,
				Msg: "another program changed the log meanwhile", Hint: "end that program and try again"}
		}
		if err := w.disk.Rename(temp, w.path); err != nil {
			return err
		}
		w.rename(temp, w.path)
		w.made = slices.DeleteFunc(w.made, func(name string) bool { return name == w.path })
		w.kept = true
		w.saved.Log = w.path
		return w.disk.SyncDir(filepath.Dir(w.path))
	})
}

// workshop is one repair at work.
type workshop struct {
	Files
	ctx   context.Context
	path  string // of the log, symbolic links followed
	enc   wire.Encoding
	in    faultfs.File
	info  fs.FileInfo
	plan  *Plan
	saved Saved
	made  []string // files to be removed when it comes to nothing
	kept  bool     // nothing is to be removed any more
}

// repair plans, and lets put write when there is something to do.
func (f Files) repair(ctx context.Context, o Options, put func(*workshop) error) (_ *Plan, saved Saved, err error) {
	if f.disk == nil {
		f.disk = faultfs.Real
	}
	w := &workshop{Files: f, ctx: ctx, path: f.Log}
	if p, err := filepath.EvalSymlinks(f.Log); err == nil {
		w.path = p
	}
	var ok bool
	if w.enc, ok = wire.EncodingOf(w.path); !ok {
		return nil, saved, notRepairable("FILE_KIND", "the ending of the file says nothing about how the log is stored", "a log file ends in .jsonl or .jsonl.zstd")
	}
	if w.in, err = faultfs.Open(f.disk, w.path); err != nil {
		return nil, saved, err
	}
	defer func() { err = errors.Join(err, w.in.Close()) }()
	if w.info, err = w.in.Stat(); err != nil {
		return nil, saved, err
	}
	if w.plan, err = NewPlan(ctx, doctor.Target{Name: f.Log, R: w.in, Size: w.info.Size(), Encoding: w.enc}, o); err != nil {
		return nil, saved, err
	}
	if len(w.plan.Changes) == 0 {
		return w.plan, saved, nil
	}
	if err := w.folder(); err != nil {
		return w.plan, saved, err
	}
	err = put(w)
	if err == nil {
		err = w.report()
	}
	if err != nil && !w.kept {
		for _, name := range slices.Backward(w.made) {
			f.disk.Remove(name)
		}
		return w.plan, saved, err
	}
	return w.plan, w.saved, err
}

// folder makes the folder of this repair.
func (w *workshop) folder() error {
	if _, err := faultfs.MakeFolders(w.disk, w.Keep); err != nil {
		return err
	}
	for n := 1; ; n++ {
		dir := filepath.Join(w.Keep, w.Stamp)
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", dir, n)
		}
		err := w.disk.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		w.saved.Folder = dir
		w.made = append(w.made, dir)
		return faultfs.SyncAbove(w.disk, dir)
	}
}

// create makes a file that must not exist yet.
func (w *workshop) create(name string) (*synced, error) {
	f, err := w.disk.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	w.made = append(w.made, name)
	return &synced{bufio.NewWriterSize(f, 256<<10), f}, nil
}

func (w *workshop) rename(from, to string) {
	if i := slices.Index(w.made, from); i >= 0 {
		w.made[i] = to
	}
}

// synced is a file that is durable when it was closed without an error.
type synced struct {
	*bufio.Writer
	f faultfs.File
}

func (s *synced) Close() error {
	err := s.Flush()
	if err == nil {
		err = s.f.Sync()
	}
	return errors.Join(err, s.f.Close())
}

// make writes the repaired log to a new file and checks it.
func (w *workshop) make(name string) error {
	out, err := w.create(name)
	if err != nil {
		return err
	}
	err = w.plan.Write(w.ctx, out, func(part string) (io.WriteCloser, error) {
		return w.create(filepath.Join(w.saved.Folder, part))
	})
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err := w.disk.SyncDir(w.saved.Folder); err != nil {
		return err
	}
	return w.check(name)
}

// check makes sure that what came out is a log that can be continued, and that
// nothing is left to be done.
func (w *workshop) check(name string) error {
	f, err := faultfs.Open(w.disk, name)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	t := doctor.Target{Name: name, R: f, Size: fi.Size(), Encoding: w.enc}
	findings, sum := doctor.Verify(w.ctx, t, doctor.Options{})
	var bad *doctor.Finding
	for found := range findings {
		if found.Severity == doctor.SeverityError && bad == nil {
			bad = &found
		}
	}
	switch {
	case sum.Err != nil && outcrop.CodeOf(sum.Err) == "":
		return sum.Err
	case bad != nil:
		return notRepairable(bad.Code, "what a repair would give is no log that can be continued: "+bad.Message, "fork the session before that event")
	}
	again, err := NewPlan(w.ctx, t, Options{})
	if err != nil {
		return err
	}
	if len(again.Changes) > 0 {
		return notRepairable(again.Changes[0].Code, "a second repair would find more to do: "+again.Changes[0].Message, "")
	}
	return nil
}

// copyFile copies the log as it is.
func (w *workshop) copyFile(name string) error {
	out, err := w.create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(w.in, 0, w.info.Size()))
	return errors.Join(err, out.Close())
}

// report writes what was done, one change a line.
func (w *workshop) report() error {
	out, err := w.create(filepath.Join(w.saved.Folder, "report.jsonl"))
	if err != nil {
		return err
	}
	for _, c := range w.plan.Changes {
		if _, err := out.Write(append(c.AppendJSON(nil), '\n')); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return w.disk.SyncDir(w.saved.Folder)
}

// lockFile is the lock that a writer of the log takes: the one of its folder in
// a root, else one beside the file.
func (w *workshop) lockFile(p *doctor.Place) string {
	dir := filepath.Dir(w.path)
	h := w.plan.Header
	project := "_no-cwd"
	if h.Cwd != nil {
		project = jsonl.ProjectKey(*h.Cwd)
	}
	if p != nil || filepath.Base(w.path) == "session."+string(w.enc) &&
		filepath.Base(dir) == jsonl.EncodeSegment(h.ID) && filepath.Base(filepath.Dir(dir)) == project {
		return filepath.Join(dir, "session.lock")
	}
	return w.path + ".lock"
}
