package faultfs

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/gofrs/flock"
)

// Real is the file system of the machine.
var Real FS = real{}

type real struct{}

func (real) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return realFile{f}, nil
}

func (real) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (real) Remove(name string) error                   { return os.Remove(name) }
func (real) Rename(from, to string) error               { return os.Rename(from, to) }
func (real) RenameNew(from, to string) error            { return renameNew(from, to) }
func (real) Link(from, to string) error                 { return os.Link(from, to) }
func (real) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (real) Lstat(name string) (fs.FileInfo, error)     { return os.Lstat(name) }
func (real) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// SyncDir: Windows cannot, and some file systems refuse it; both keep names in
// order by themselves.
func (real) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

func (real) Lock(name string, flag int, shared bool) (Lock, error) {
	l := flock.New(name, flock.SetFlag(flag), flock.SetPermissions(0o600))
	try := l.TryLock
	if shared {
		try = l.TryRLock
	}
	ok, err := try()
	if err == nil && !ok {
		err = ErrHeld
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

type realFile struct{ *os.File }

// Truncate: on Windows a handle that appends may not cut.
func (f realFile) Truncate(size int64) error {
	if runtime.GOOS == "windows" {
		return os.Truncate(f.Name(), size)
	}
	return f.File.Truncate(size)
}

// renameChecked looks before it renames. Who calls it holds the session's lock,
// so that no other writer of this program stands between the two steps.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}
