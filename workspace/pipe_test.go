//go:build unix

package workspace_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestAPipeIsNoInstructionFileAndIsNotWaitedFor(t *testing.T) {
	p := newPlace(t)
	if err := syscall.Mkfifo(filepath.Join(p.dir, "AGENTS.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.wants("a pipe")
}
