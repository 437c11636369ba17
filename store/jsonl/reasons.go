package jsonl

import (
	"errors"
	"io/fs"
	"runtime"
	"syscall"
)

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
