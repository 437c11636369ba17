package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
)

// A session that is moved keeps its files as they are. Each gets a second name
// in the new folder, or, on another device, a copy that is synced and compared;
// when the folder is durable the old names go, that of the log first. A rename
// of the whole folder would be two changes, of two folders, of which a loss of
// power may keep the wrong one.

var _ store.Mover = (*Store)(nil)

// held is a locked session.
type held struct {
	s     *Store
	id    string
	dir   string
	place string
	lock  *filelock.Lock
}

// Hold is store.Mover's.
func (s *Store) Hold(_ context.Context, id string) (store.Held, error) {
	f, err := s.find(id)
	if err != nil {
		return nil, err
	}
	place, err := filepath.Rel(s.root, f.dir)
	if err != nil {
		return nil, pathProblem("move", f.dir, err)
	}
	lock, err := takeLock(s.disk, lockIn(f.dir), &s.opt)
	if err != nil {
		return nil, store.Problem("move", id, err, "", "end it there first")
	}
	h := &held{s, id, f.dir, filepath.ToSlash(place), lock}
	// Who had the lock before may have moved the session away.
	if _, ok, err := lookIn(s.disk, f.dir); err != nil || !ok {
		h.Close()
		_, err := s.find(id)
		return nil, err
	}
	return h, nil
}

// Place is store.Held's: the folder below the root.
func (h *held) Place() string { return h.place }

// Close is store.Held's.
func (h *held) Close() error {
	if h.lock == nil {
		return nil
	}
	lock := h.lock
	h.lock = nil
	return lock.Release()
}

// isLog reports the name of a log or of a later generation of one.
func isLog(name string) bool {
	_, ok := formatOf(name)
	return ok
}

// movable are the files of a session's folder, logs last. Locks and logs that
// were never published stay.
func movable(disk faultfs.FS, dir string) (others, logs []string, err error) {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case name == logStem+".lock", strings.HasSuffix(name, ".tmp"):
		case !e.Type().IsRegular():
			return nil, nil, fmt.Errorf("%s is not a regular file: move it away first", name)
		case isLog(name):
			logs = append(logs, name)
		default:
			others = append(others, name)
		}
	}
	return others, logs, nil
}

// HandOver is store.Held's.
func (h *held) HandOver(ctx context.Context, dir string) error {
	disk := h.s.disk
	fail := func(path string, err error) error { return h.s.moveProblem(h.id, path, err) }
	others, logs, err := movable(disk, h.dir)
	if err != nil {
		return fail(h.dir, err)
	}
	part := dir + ".part"
	if err := removeFolder(disk, part); err != nil {
		return fail(part, err)
	}
	if err := disk.Mkdir(part, 0o700); err != nil {
		return fail(part, err)
	}
	for _, name := range append(others, logs...) {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(err, removeFolder(disk, part))
		}
		if err := double(disk, filepath.Join(h.dir, name), filepath.Join(part, name)); err != nil {
			return errors.Join(fail(filepath.Join(h.dir, name), err), removeFolder(disk, part))
		}
	}
	if err := disk.SyncDir(part); err != nil {
		return fail(part, err)
	}
	if err := disk.Rename(part, dir); err != nil {
		return fail(dir, err)
	}
	if err := disk.SyncDir(filepath.Dir(dir)); err != nil {
		return fail(filepath.Dir(dir), err)
	}
	return h.vacate(others, logs)
}

// vacate removes the old names: the store has the session, with all its files,
// until its logs are gone for good.
func (h *held) vacate(others, logs []string) error {
	disk := h.s.disk
	for _, names := range [...][]string{logs, others} {
		for _, name := range names {
			if err := disk.Remove(filepath.Join(h.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return h.s.moveProblem(h.id, filepath.Join(h.dir, name), err)
			}
		}
		if err := disk.SyncDir(h.dir); err != nil {
			return h.s.moveProblem(h.id, h.dir, err)
		}
	}
	// What is left is no session: an empty folder, the lock, an unpublished log.
	lock := h.lock
	h.lock = nil
	if err := lock.Remove(); err != nil {
		return h.s.moveProblem(h.id, lock.Path(), err)
	}
	if disk.Remove(h.dir) == nil {
		return disk.SyncDir(filepath.Dir(h.dir))
	}
	return nil
}

// TakeBack is store.Mover's.
func (s *Store) TakeBack(ctx context.Context, id, place, dir string) (err error) {
	to, err := s.placeOf(id, place)
	if err != nil {
		return err
	}
	fail := func(path string, err error) error { return s.moveProblem(id, path, err) }
	others, logs, err := movable(s.disk, dir)
	if err != nil {
		return fail(dir, err)
	}
	if len(logs) == 0 {
		return fail(dir, errors.New("no log lies there"))
	}
	there, err := s.Holds(ctx, id, place, dir)
	if err != nil || there {
		return err
	}
	if err := s.free(id); err != nil {
		return err
	}
	if enc, example, err := s.rootEncoding(); err != nil {
		return err
	} else if f, _, err := lookIn(s.disk, dir); err == nil && enc != "" && f.enc != "" && f.enc != enc {
		return &outcrop.Error{Op: "move", Session: id, Path: dir, Code: "ROOT_ENCODING", Seq: -1, Offset: -1, Err: store.ErrEncoding,
			Msg:  fmt.Sprintf("the root has got %s logs since (%s), and a root has one encoding", enc, example),
			Hint: "restore it into another store, or convert the log " + f.path()}
	}
	made, err := faultfs.MakeFolders(s.disk, to)
	if err != nil {
		return fail(to, err)
	}
	lock, err := takeLock(s.disk, lockIn(to), &s.opt)
	if err != nil {
		return store.Problem("move", id, err, "", "end it there first")
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	for _, names := range [...][]string{others, logs} {
		for _, name := range names {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			err := double(s.disk, filepath.Join(dir, name), filepath.Join(to, name))
			if errors.Is(err, fs.ErrExist) {
				err = s.sameFile(filepath.Join(dir, name), filepath.Join(to, name))
			}
			if err != nil {
				return fail(filepath.Join(to, name), err)
			}
		}
		if err := s.disk.SyncDir(to); err != nil {
			return fail(to, err)
		}
	}
	if err := (&lease{disk: s.disk, path: filepath.Join(to, logs[0]), root: s.root}).syncFolders(made); err != nil {
		return fail(to, err)
	}
	return nil
}

// sameFile is nil when a file that is there already is the one that comes.
func (s *Store) sameFile(a, b string) error {
	same, err := beginsWith(s.disk, b, a)
	if err == nil && !same {
		err = errors.New("another file is in its place: move it away first")
	}
	return err
}

// placeOf is the folder of a place that Held.Place gave.
func (s *Store) placeOf(id, place string) (string, error) {
	project, name, ok := strings.Cut(place, "/")
	if !ok || project == "" || name == "" || strings.Contains(name, "/") || !filepath.IsLocal(filepath.FromSlash(place)) ||
		filepath.ToSlash(filepath.Clean(filepath.FromSlash(place))) != place || name != EncodeSegment(id) {
		return "", &outcrop.Error{Op: "move", Session: id, Seq: -1, Offset: -1, Err: outcrop.ErrRefused,
			Msg: fmt.Sprintf("%q is no place of this session", place)}
	}
	return filepath.Join(s.root, project, name), nil
}

// Holds is store.Mover's.
func (s *Store) Holds(_ context.Context, id, place, dir string) (bool, error) {
	to, err := s.placeOf(id, place)
	if err != nil {
		return false, err
	}
	_, logs, err := movable(s.disk, dir)
	if err != nil {
		return false, s.moveProblem(id, dir, err)
	}
	for _, name := range logs {
		same, err := beginsWith(s.disk, filepath.Join(to, name), filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil || !same {
			return false, err
		}
	}
	return len(logs) > 0, nil
}

func (s *Store) moveProblem(id, path string, err error) error {
	return store.Problem("move", id, pathProblem("move", path, err), "", "")
}

// double gives a file a second name, or makes a synced copy of it that was
// read back. fs.ErrExist when the name is taken.
func double(disk faultfs.FS, from, to string) error {
	err := disk.Link(from, to)
	if err == nil || !noLinks(err) {
		return err
	}
	if _, err := disk.Lstat(to); err == nil {
		return &fs.PathError{Op: "copy", Path: to, Err: fs.ErrExist}
	}
	temp := to + ".tmp"
	if err := disk.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := copySynced(disk, from, temp); err != nil {
		return errors.Join(err, disk.Remove(temp))
	}
	return disk.RenameNew(temp, to)
}

func copySynced(disk faultfs.FS, from, to string) error {
	in, err := faultfs.Open(disk, from)
	if err != nil {
		return err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := disk.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(in, 0, fi.Size()))
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	same, err := beginsWith(disk, to, from)
	if err == nil && !same {
		err = fmt.Errorf("the copy read back is not what was written: %w", outcrop.ErrDamaged)
	}
	return err
}

// beginsWith reports whether a file begins with all bytes of another one, which
// may be the same file.
func beginsWith(disk faultfs.FS, name, whole string) (bool, error) {
	a, err := faultfs.Open(disk, name)
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := faultfs.Open(disk, whole)
	if err != nil {
		return false, err
	}
	defer b.Close()
	ai, err := a.Stat()
	if err != nil {
		return false, err
	}
	bi, err := b.Stat()
	if err != nil {
		return false, err
	}
	if faultfs.SameFile(ai, bi) {
		return true, nil
	}
	if ai.Size() < bi.Size() {
		return false, nil
	}
	x, y := make([]byte, 256<<10), make([]byte, 256<<10)
	for at := int64(0); at < bi.Size(); {
		n := min(int64(len(x)), bi.Size()-at)
		if _, err := a.ReadAt(x[:n], at); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if _, err := b.ReadAt(y[:n], at); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if !bytes.Equal(x[:n], y[:n]) {
			return false, nil
		}
		at += n
	}
	return true, nil
}

// removeFolder removes a folder of files, which need not exist.
func removeFolder(disk faultfs.FS, dir string) error {
	entries, err := disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := disk.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return disk.Remove(dir)
}
