package group

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Reap waits for a command to end and kills what is left of its group. The
// command is looked at before it is reaped: so long its id, which is the group's
// too, cannot have been given to anything else.
func Reap(cmd *exec.Cmd) error {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	Kill(cmd)
	return cmd.Wait()
}
