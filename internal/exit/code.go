package exit

import (
	"context"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// Code is the exit code of an error.
func Code(err error) int {
	var e *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.Canceled):
		return 130
	case errors.Is(err, store.ErrLocked):
		return 4
	case errors.Is(err, outcrop.ErrNotFound), errors.Is(err, store.ErrAmbiguous):
		return 2
	case errors.Is(err, outcrop.ErrDamaged), errors.Is(err, outcrop.ErrUnsupported), isFileCode(err), isStored(err):
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

// isStored reports the refusal of an event that a file holds, not of one that
// was to be written.
func isStored(err error) bool {
	var e *outcrop.Error
	return errors.As(err, &e) && e.Line > 0 && errors.Is(err, outcrop.ErrRefused)
}
