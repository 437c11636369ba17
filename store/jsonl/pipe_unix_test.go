//go:build unix

package jsonl

import (
	"syscall"
	"testing"
)

// makePipe makes something that would hang whoever opened it.
func makePipe(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }
