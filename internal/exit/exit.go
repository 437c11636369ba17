// Package exit is how a command ends: its exit code, and the one line that a
// person reads about an error.
//
// # Exit codes
//
//	0    done
//	1    the answer is no: not ok, refused, a failed or limited turn; output or
//	     storage that cannot be written
//	2    wrong use: flags, configuration, no model, no key, no such TARGET
//	3    the input is damaged, or newer than this program can read. Readers
//	     print the good prefix and say on stderr what is missing. A torn tail
//	     alone is no damage: 0, and a note
//	4    somebody else holds the session
//	130  interrupted
package exit

import (
	"errors"
	"fmt"
	"io/fs"
)

// Error is an error with its exit code. Err nil: everything was said already.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap is for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// With gives an error its exit code.
func With(code int, err error) error { return &Error{code, err} }

// Usagef makes an error of wrong use.
func Usagef(format string, args ...any) error {
	return With(2, fmt.Errorf(format, args...))
}

// Refusedf makes the error for an answer that is no.
func Refusedf(format string, args ...any) error {
	return With(1, fmt.Errorf(format, args...))
}

// Misuse marks an error as one of wrong use.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	return With(2, err)
}

// Unreadable gives the errors of opening a log their exit codes: a file that
// cannot be opened is wrong use.
func Unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return With(2, err)
	}
	return err
}
