//go:build unix

package shell

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/outcrop-dev/outcrop/tool/internal/group"
)

const (
	shellName = "sh"
	shellPath = "/bin/sh"
	shellFlag = "-c"
)

// The command waits until the guard has been told of it. Without the line that
// lets it go, when this program is gone, it never runs.
const gateScript = `read g <&3 || exit; exec 3<&-; exec ` + shellPath + ` ` + shellFlag + ` "$1"`

// start starts a command that writes all output to out.
func start(o Options, command string, out *os.File) (*exec.Cmd, *group.Guard, error) {
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer open.Close()
	defer gate.Close()
	g, err := group.NewGuard()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(shellPath, shellFlag, gateScript, shellName, command)
	cmd.Dir, cmd.Env = o.Dir, o.Env
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{gate}
	group.Own(cmd)
	if err := cmd.Start(); err != nil {
		g.Release()
		return nil, nil, err
	}
	if err = g.Watch(cmd); err == nil {
		_, err = open.WriteString("\n")
	}
	if err != nil {
		group.Kill(cmd)
		_ = cmd.Wait()
		g.Release()
		return nil, nil, err
	}
	return cmd, g, nil
}

// signalOf names the signal that ended a process.
func signalOf(s *os.ProcessState) string {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return "unknown"
}
