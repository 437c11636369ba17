package mcp

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// reap waits for a program to end and kills what is left of its group. The
// program is looked at before it is reaped: so long its id, which is the group's
// too, belongs to nothing else.
func reap(cmd *exec.Cmd) {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	killGroup(cmd)
	_ = cmd.Wait() // how it ended is in ProcessState
}
