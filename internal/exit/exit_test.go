package exit_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/store"
)

func TestAnErrorIsOneLineWithWhatCanBeDone(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "a.jsonl", Err: syscall.ENOSPC}
	hinted := &outcrop.Error{Op: "store", Path: "b.jsonl", Seq: -1, Offset: -1, Err: syscall.ENOSPC, Hint: "make room on the disk"}
	plain := errors.New("it broke")
	said := exit.With(1, nil)
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a hint is added where the error has none", full, "write a.jsonl: no space left on device: make room and try again; what was stored before is intact"},
		{"the error's own hint stands alone", hinted, "store: b.jsonl: no space left on device: make room on the disk"},
		{"a file that a flag names", exit.With(2, fmt.Errorf("--system: %w", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist})), "--system: open x: file does not exist: check the name"},
		{"joined errors are one line", errors.Join(plain, hinted), "it broke; store: b.jsonl: no space left on device: make room on the disk"},
		{"what is the same is told once", errors.Join(plain, errors.Join(plain, said)), "it broke"},
		{"an exit code alone says nothing", said, ""},
		{"what was said does not hide what was not", errors.Join(said, plain), "it broke"},
		{"an error with several reasons keeps its own words", fmt.Errorf("%w, and %w", plain, full), "it broke, and write a.jsonl: no space left on device: make room and try again; what was stored before is intact"},
		{"an interrupt is a word", fmt.Errorf("read: %w", context.Canceled), "interrupted"},
		{"control characters are escapes", errors.New("a\x1b[31m\nb"), `a\e[31m\nb`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := exit.Explain(c.err); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A locked session can be read, and somebody who wants to write it is told who
// holds it; see the scripts of run.
func TestExitCodesOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("something"), 1},
		{&outcrop.Error{Code: "OPEN_TURN", Err: outcrop.ErrRefused}, 1},
		{&outcrop.Error{Err: outcrop.ErrNotFound}, 2},
		{&outcrop.Error{Err: outcrop.ErrDamaged}, 3},
		{&outcrop.Error{Err: outcrop.ErrUnsupported}, 3},
		{&outcrop.Error{Code: "HEADER_SHAPE", Err: outcrop.ErrRefused}, 3},
		{&outcrop.Error{Code: "FILE_EMPTY", Err: outcrop.ErrDamaged}, 3},
		{fmt.Errorf("x: %w", context.Canceled), 130},
		{&store.LockedError{}, 4},
		{&outcrop.Error{Err: &store.LockedError{Holder: store.Holder{PID: 1}}}, 4},
		{&outcrop.Error{Err: store.ErrAmbiguous}, 2},
		{&outcrop.Error{Err: store.ErrExists}, 1},
		// A file that may not be opened is as good as none.
		{exit.Unreadable(&outcrop.Error{Err: fs.ErrPermission}), 2},
		{exit.Unreadable(&outcrop.Error{Err: outcrop.ErrDamaged}), 3},
	} {
		if got := exit.Code(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}
