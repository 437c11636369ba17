package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	// keyTimeout is how long a key_command may take: it may ask a person.
	keyTimeout = 2 * time.Minute
	// mostPrinted is how much it may print, in bytes.
	mostPrinted = 64 << 10
	// keyDrain is how long what it printed is read after it ended, when a
	// process that left its group keeps the pipe open.
	keyDrain = time.Second
)

// runKeyCommand runs the program and takes the first line that it prints. What
// it prints is never part of an error. It has a process group of its own, which
// is killed when the program ends, at its time limit, when ctx is done and when
// it prints too much: nothing that it started goes on.
func runKeyCommand(ctx context.Context, who string, command []string) (string, error) {
	name := command[0]
	fault := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%s: key_command: "+format, append([]any{who}, args...)...)
	}
	if err := ctx.Err(); err != nil {
		return fault("%s was stopped: %w", name, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fault("%w", err)
	}
	defer r.Close()
	cmd := exec.Command(name, command[1:]...)
	cmd.Stdout = w
	ownGroup(cmd)
	err = cmd.Start()
	w.Close()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fault("there is no program %s", name)
	case err != nil:
		return fault("%w", err)
	}
	printed, tooMuch := make(chan []byte, 1), make(chan struct{})
	go func() {
		out, _ := io.ReadAll(io.LimitReader(r, mostPrinted+1))
		if len(out) > mostPrinted {
			close(tooMuch)
		}
		printed <- out
	}()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	limit := time.NewTimer(keyTimeout)
	defer limit.Stop()
	kill := func() {
		killGroup(cmd)
		<-exited
	}
	select {
	case <-limit.C:
		kill()
		return fault("%s did not end within %s", name, keyTimeout)
	case <-ctx.Done():
		kill()
		return fault("%s was stopped: %w", name, ctx.Err())
	case <-tooMuch:
		kill()
		return fault("%s printed more than %d KiB", name, mostPrinted>>10)
	case err = <-exited:
		killGroup(cmd)
	}
	if err != nil {
		var ee *exec.ExitError
		if errors.As(err, &ee) {
			return fault("%s ended with %s", name, ee.ProcessState)
		}
		return fault("%w", err)
	}
	_ = r.SetReadDeadline(time.Now().Add(keyDrain))
	out := <-printed
	if len(out) > mostPrinted {
		return fault("%s printed more than %d KiB", name, mostPrinted>>10)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if key := string(bytes.TrimSpace(line)); key != "" {
		return key, nil
	}
	return fault("%s printed no key", name)
}
