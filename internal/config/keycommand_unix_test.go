//go:build unix

package config

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fifo is a pipe with a name: opening it waits for a writer, and reading it ends
// when the last writer is gone.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gone waits until no process writes to a fifo any more.
func gone(t *testing.T, r io.Reader) {
	t.Helper()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
}

func TestWhatAKeyCommandStartedEndsWithItAndItsFirstLineCounts(t *testing.T) {
	path := fifo(t)
	opened := make(chan *os.File, 1)
	go func() {
		f, err := os.Open(path)
		if err != nil {
			t.Error(err)
		}
		opened <- f
	}()
	// The child has the pipe and the fifo.
	key, err := runKeyCommand(t.Context(), "x", []string{"sh", "-c", `exec 3>"$0"; sleep 300 & echo sk-1; echo more`, path})
	if key != "sk-1" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
	f := <-opened
	defer f.Close()
	gone(t, f)
}

func TestACancelledKeyCommandIsKilledWithItsChildrenAndNamed(t *testing.T) {
	path := fifo(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := runKeyCommand(ctx, "deepseek", []string{"sh", "-c", `exec 3>"$0"; sleep 300 & wait`, path})
		done <- err
	}()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || err.Error() != "deepseek: key_command: sh was stopped: context canceled" {
		t.Errorf("got %v", err)
	}
	gone(t, f)
}

func TestAKeyCommandThatPrintsWithoutEndIsKilled(t *testing.T) {
	if _, err := runKeyCommand(t.Context(), "x", []string{"yes", strings.Repeat("sk", 500)}); err == nil || err.Error() != "x: key_command: yes printed more than 64 KiB" {
		t.Errorf("got %v", err)
	}
}
