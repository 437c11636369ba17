package shell

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const (
	shellName = "cmd"
	shellPath = "cmd"
	shellFlag = "/C"
)

// ownGroup makes the command the leader of a process group of its own.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the command and all its descendants.
func killGroup(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	_ = cmd.Process.Kill()
}

// signalOf names the signal that ended a process; Windows has none.
func signalOf(*os.ProcessState) string { return "killed" }
