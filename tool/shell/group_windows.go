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

// guard is what stops a command when this program is gone; Windows has no such
// thing for a tree of processes that was started without a job object.
type guard struct{}

func (*guard) release() {}

// start starts a command that writes all output to out.
func start(o Options, command string, out *os.File) (*exec.Cmd, *guard, error) {
	cmd := exec.Command(shellPath, shellFlag, command)
	cmd.Dir, cmd.Env = o.Dir, o.Env
	cmd.Stdout, cmd.Stderr = out, out
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return cmd, &guard{}, nil
}

// signalOf names the signal that ended a process; Windows has none.
func signalOf(*os.ProcessState) string { return "killed" }
