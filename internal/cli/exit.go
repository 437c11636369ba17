package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// exitError is an error with its exit code. err nil: everything was said
// already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef makes an error of wrong use.
func usagef(format string, args ...any) error {
	return &exitError{2, fmt.Errorf(format, args...)}
}

// refusedf makes the error for an answer that is no.
func refusedf(format string, args ...any) error {
	return &exitError{1, fmt.Errorf(format, args...)}
}

// code is the exit code of an error.
func code(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, context.Canceled):
		return 130
	case errors.Is(err, store.ErrLocked):
		return 4
	case errors.Is(err, outcrop.ErrNotFound), errors.Is(err, store.ErrAmbiguous):
		return 2
	case errors.Is(err, outcrop.ErrDamaged), errors.Is(err, outcrop.ErrUnsupported), isFileCode(err):
		return 3
	}
	return 1
}

// isFileCode reports an error that says what a file is instead of a log.
func isFileCode(err error) bool {
	switch c := outcrop.CodeOf(err); {
	case c == "FILE_KIND", c == "FILE_EMPTY", c == "FILE_NO_HEADER":
		return true
	default:
		return len(c) > 7 && c[:7] == "HEADER_"
	}
}

// explain is the one sentence that a person reads about an error: no usage, no
// stack, control characters escaped.
func (a *app) explain(err error) string {
	var e *exitError
	if errors.As(err, &e) && e.err == nil {
		return ""
	}
	if errors.Is(err, context.Canceled) && code(err) == 130 {
		return "interrupted"
	}
	text := err.Error()
	var oe *outcrop.Error
	hinted := errors.As(err, &oe) && oe.Hint != ""
	switch {
	case hinted:
	case errors.Is(err, syscall.ENOSPC):
		text += ": make room and try again; what was stored before is intact"
	case errors.Is(err, fs.ErrPermission):
		text += ": see who may read and write it, ls -l shows that"
	case code(err) == 2 && errors.Is(err, fs.ErrNotExist):
		text += ": give the id of a session (outcrop ls lists them) or the path of a log file"
	}
	return escapeLine(text)
}
