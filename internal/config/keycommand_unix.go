//go:build unix

package config

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a session, and so of a process group,
// of its own. Without a terminal a program that wants to ask there fails at
// once; one in the background of ours would be stopped until its time is over.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killGroup kills the group of a started command. One that is gone is no error.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
