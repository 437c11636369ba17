package group

import (
	"os/exec"
	"strconv"
	"syscall"
)

// Own makes a command the leader of a process group of its own.
func Own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Kill kills a command and all its descendants.
func Kill(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	_ = cmd.Process.Kill()
}

// Guard is what stops a command when this program is gone; Windows has no such
// thing for a tree of processes that was started without a job object.
type Guard struct{}

// NewGuard makes a guard, which does nothing here.
func NewGuard() (*Guard, error) { return &Guard{}, nil }

// Watch does nothing.
func (*Guard) Watch(*exec.Cmd) error { return nil }

// Release does nothing.
func (*Guard) Release() {}
