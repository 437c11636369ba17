//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a program the leader of a session, and so of a process group,
// of its own. A session has no terminal until it opens one: a program that wants
// to ask for a password fails at once instead of waiting.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killGroup kills the whole group of a started program. A group that is gone is
// no error.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
