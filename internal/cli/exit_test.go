package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/cli"
)

func TestAnErrorIsOneLineWithWhatCanBeDone(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "a.jsonl", Err: syscall.ENOSPC}
	hinted := &outcrop.Error{Op: "store", Path: "b.jsonl", Seq: -1, Offset: -1, Err: syscall.ENOSPC, Hint: "make room on the disk"}
	plain := errors.New("it broke")
	said := cli.ExitError(1, nil)
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a hint is added where the error has none", full, "write a.jsonl: no space left on device: make room and try again; what was stored before is intact"},
		{"the error's own hint stands alone", hinted, "store: b.jsonl: no space left on device: make room on the disk"},
		{"a file that a flag names", cli.ExitError(2, fmt.Errorf("--system: %w", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist})), "--system: open x: file does not exist: check the name"},
		{"joined errors are one line", errors.Join(plain, hinted), "it broke; store: b.jsonl: no space left on device: make room on the disk"},
		{"what is the same is told once", errors.Join(plain, errors.Join(plain, said)), "it broke"},
		{"an exit code alone says nothing", said, ""},
		{"what was said does not hide what was not", errors.Join(said, plain), "it broke"},
		{"an error with several reasons keeps its own words", fmt.Errorf("%w, and %w", plain, full), "it broke, and write a.jsonl: no space left on device: make room and try again; what was stored before is intact"},
		{"an interrupt is a word", fmt.Errorf("read: %w", context.Canceled), "interrupted"},
		{"control characters are escapes", errors.New("a\x1b[31m\nb"), `a\e[31m\nb`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cli.Explain(c.err); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
