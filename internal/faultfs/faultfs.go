// Package faultfs is the file system as the stores of files need it: an
// interface, the real one behind it, one in memory that loses power, and one
// that makes calls go wrong.
//
// # What is durable
//
// Only what was synced. The bytes of a file are durable when File.Sync
// returned nil, what a folder holds (which names, and which file or folder each
// of them leads to) when SyncDir of that folder did. The two are independent: a
// synced file whose folder was not synced may have no name after a loss of
// power, and a name may lead to a file that has lost its bytes. A new folder
// needs a sync of the folder above it.
//
// What was not synced may be there after a loss of power or not, in any part
// and in any order: of two writes the second one alone, with zero bytes where
// the first one was; of one write its first bytes, perhaps with zero bytes in
// the place of the others; a removal without the new name that was made before
// it. One thing is taken for granted: of one write the first bytes arrive
// first. Disks and file systems that promise more are not relied on.
package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is a file system. Names are absolute paths. Errors are those of package
// os. All methods may be called from any goroutine.
type FS interface {
	// OpenFile opens a file as os.OpenFile does.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// Rename renames a file and takes the place of another one.
	Rename(from, to string) error
	// RenameNew renames a file to a name that must be free (fs.ErrExist).
	RenameNew(from, to string) error
	// Link gives a file a second name, which must be free (fs.ErrExist).
	Link(from, to string) error
	Stat(name string) (fs.FileInfo, error)
	// Lstat is Stat without following a symbolic link at the end.
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir lists a folder by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes durable what a folder holds.
	SyncDir(name string) error
	// Lock opens a file or folder with flag and takes the system's lock on it,
	// which ends with the process, without waiting: ErrHeld when somebody else
	// has it. Shared locks do not exclude each other.
	Lock(name string, flag int, shared bool) (Lock, error)
}

// File is an open file.
type File interface {
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name is the name that it was opened with.
	Name() string
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Sync makes its bytes durable. After an error nobody knows which of them
	// are.
	Sync() error
}

// Lock is a lock that is held until it is closed.
type Lock interface {
	// Stat describes the locked file, which its name may not lead to any more.
	Stat() (fs.FileInfo, error)
	Close() error
}

// ErrHeld: somebody else holds the lock.
var ErrHeld = errors.New("the lock is held")

// SameFile reports whether two descriptions are of the same file.
func SameFile(a, b fs.FileInfo) bool {
	if n, ok := a.Sys().(*node); ok {
		m, ok := b.Sys().(*node)
		return ok && n == m
	}
	return os.SameFile(a, b)
}

// Open opens a file for reading.
func Open(f FS, name string) (File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// ReadFile reads a whole file.
func ReadFile(f FS, name string) ([]byte, error) {
	in, err := Open(f, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, fi.Size())
	n, err := in.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// MakeFolders makes a folder and what is missing above it, for nobody else to
// look into, and returns what it made, the deepest last. It syncs nothing.
func MakeFolders(f FS, dir string) (made []string, err error) {
	switch err := f.Mkdir(dir, 0o700); {
	case err == nil:
		return []string{dir}, nil
	case errors.Is(err, fs.ErrExist):
		return nil, isFolder(f, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if parent := filepath.Dir(dir); parent != dir {
		if made, err = MakeFolders(f, parent); err != nil {
			return made, err
		}
	}
	if err := f.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = isFolder(f, dir)
		}
		return made, err
	}
	return append(made, dir), nil
}

func isFolder(f FS, name string) error {
	if fi, err := f.Stat(name); err == nil && !fi.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: name, Err: errors.New("a file is in the place of a folder")}
	}
	return nil
}

// SyncAbove makes the name of a folder durable, and those of all the folders
// above it. A folder that may not be read is passed over: this program did not
// make it.
func SyncAbove(f FS, dir string) error {
	for d := filepath.Dir(dir); ; d = filepath.Dir(d) {
		if err := f.SyncDir(d); err != nil && !errors.Is(err, syscall.EACCES) {
			return err
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}
