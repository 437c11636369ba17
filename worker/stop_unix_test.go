//go:build unix

package worker_test

import (
	"os"
	"syscall"
)

// stopProcess stops a process, or lets it go on.
func stopProcess(p *os.Process, on bool) error {
	if on {
		return p.Signal(syscall.SIGSTOP)
	}
	return p.Signal(syscall.SIGCONT)
}
