//go:build !linux

package mcp

import "os/exec"

// reap waits for a program to end and kills what is left of its group.
func reap(cmd *exec.Cmd) {
	_ = cmd.Wait() // how it ended is in ProcessState
	killGroup(cmd)
}
