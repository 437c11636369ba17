//go:build unix

package natstest

import "syscall"

func (p *process) pause(on bool) error {
	if on {
		return p.cmd.Process.Signal(syscall.SIGSTOP)
	}
	return p.cmd.Process.Signal(syscall.SIGCONT)
}
