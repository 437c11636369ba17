package exit

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// Explain is the one line that a person reads about an error: no usage, no
// stack, control characters escaped. "" when everything was said already.
func Explain(err error) string {
	parts := joined(err)
	if len(parts) > 0 && errors.Is(err, context.Canceled) && Code(err) == 130 {
		return "interrupted"
	}
	var said []string
	for _, part := range parts {
		if text := term.Line(withHint(part)); !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// joined are the errors that errors.Join put together, without those that say
// nothing.
func joined(err error) []error {
	if e, ok := err.(*Error); ok {
		if e.Err == nil {
			return nil
		}
		return joined(e.Err)
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
