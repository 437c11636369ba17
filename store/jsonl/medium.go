package jsonl

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// medium is what of the file system can go wrong on a full or dying disk. Tests
// put faults in its place.
type medium struct {
	write    func(f *os.File, p []byte) (int, error)
	sync     func(f *os.File) error
	truncate func(path string, f *os.File, size int64) error
	link     func(from, to string) error
	syncDir  func(dir string) error
}

var realMedium = medium{
	write:    (*os.File).Write,
	sync:     (*os.File).Sync,
	truncate: truncate,
	link:     os.Link,
	syncDir:  syncDir,
}

// truncate cuts a file that is open for appending. On Windows such a handle may
// not cut.
func truncate(path string, f *os.File, size int64) error {
	if runtime.GOOS == "windows" {
		return os.Truncate(path, size)
	}
	return f.Truncate(size)
}

// syncDir makes the names in a folder durable. Windows cannot, and some file
// systems refuse it; both keep names in order by themselves.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// isNameError reports that a path cannot lead to anything here.
func isNameError(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, syscall.EINVAL)
}

func isNoSpace(err error) bool {
	const windowsDiskFull = syscall.Errno(112)
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || runtime.GOOS == "windows" && errors.Is(err, windowsDiskFull)
}

// noLinks reports that a file system has no hard links.
func noLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMLINK) || errors.Is(err, syscall.EXDEV)
}
