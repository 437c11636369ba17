package shell

import (
	"os"
	"os/exec"

	"github.com/outcrop-dev/outcrop/tool/internal/group"
)

const (
	shellName = "cmd"
	shellPath = "cmd"
	shellFlag = "/C"
)

// start starts a command that writes all output to out.
func start(o Options, command string, out *os.File) (*exec.Cmd, *group.Guard, error) {
	cmd := exec.Command(shellPath, shellFlag, command)
	cmd.Dir, cmd.Env = o.Dir, o.Env
	cmd.Stdout, cmd.Stderr = out, out
	group.Own(cmd)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return cmd, &group.Guard{}, nil
}

// signalOf names the signal that ended a process; Windows has none.
func signalOf(*os.ProcessState) string { return "killed" }
