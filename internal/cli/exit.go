package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
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

// explain is the one line that a person reads about an error: no usage, no
// stack, control characters escaped. "" when everything was said already.
func (a *app) explain(err error) string {
	parts := joined(err)
	if len(parts) > 0 && errors.Is(err, context.Canceled) && code(err) == 130 {
		return "interrupted"
	}
	var said []string
	for _, part := range parts {
		if text := escapeLine(withHint(part)); !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// joined are the errors that errors.Join put together, without those that say
// nothing.
func joined(err error) []error {
	if e, ok := err.(*exitError); ok {
		if e.err == nil {
			return nil
		}
		return joined(e.err)
	}
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var parts []error
	var texts []string
	for _, part := range several.Unwrap() {
		parts = append(parts, joined(part)...)
		texts = append(texts, part.Error())
	}
	if strings.Join(texts, "\n") != err.Error() { // it has words of its own
		return []error{err}
	}
	return parts
}

// withHint is the text of an error, and what can be done about it where the
// error itself does not say so.
func withHint(err error) string {
	text := err.Error()
	var oe *outcrop.Error
	switch {
	case errors.As(err, &oe) && oe.Hint != "":
	case errors.Is(err, syscall.ENOSPC):
		text += ": make room and try again; what was stored before is intact"
	case errors.Is(err, fs.ErrPermission):
		text += ": check who owns it and its mode"
	case errors.Is(err, fs.ErrNotExist):
		text += ": check the name"
	}
	return text
}
