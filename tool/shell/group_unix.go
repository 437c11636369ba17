//go:build unix

package shell

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const (
	shellName = "sh"
	shellPath = "/bin/sh"
	shellFlag = "-c"
)

// ownGroup makes the command the leader of a session, and so of a process
// group, of its own. A session has no terminal until it opens one: a program
// that wants to ask for a password fails at once instead of waiting.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killGroup kills the whole group of a started command. A group that is gone
// is no error.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// guard is a process that kills the group of a command when this program is
// gone, even one that was killed itself: then the pipe that it reads from ends.
// (The kernel's signal at a parent's death would reach the shell alone, not
// what the shell has started, and comes when a thread ends, not the program.)
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

const (
	// The guard reads the group's id, then nothing until the pipe ends.
	guardScript = `read g && { read x; kill -9 "-$g"; }`
	// The command waits until the guard has been told of it. Without the
	// line that lets it go, when this program is gone, it never runs.
	gateScript = `read g <&3 || exit; exec 3<&-; exec ` + shellPath + ` ` + shellFlag + ` "$1"`
)

// start starts a command that writes all output to out.
func start(o Options, command string, out *os.File) (*exec.Cmd, *guard, error) {
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer open.Close()
	defer gate.Close()
	g, err := newGuard()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(shellPath, shellFlag, gateScript, shellName, command)
	cmd.Dir, cmd.Env = o.Dir, o.Env
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{gate}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		g.release()
		return nil, nil, err
	}
	_, err = g.pipe.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
	if err == nil {
		_, err = open.WriteString("\n")
	}
	if err != nil {
		killGroup(cmd)
		_ = cmd.Wait()
		g.release()
		return nil, nil, err
	}
	return cmd, g, nil
}

func newGuard() (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	g := &guard{pipe: w, cmd: exec.Command(shellPath, shellFlag, guardScript)}
	g.cmd.Dir, g.cmd.Env, g.cmd.Stdin = "/", []string{}, r
	ownGroup(g.cmd)
	if err := g.cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return g, nil
}

// release ends the guard; it does nothing to the group.
func (g *guard) release() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	g.pipe.Close()
}

// signalOf names the signal that ended a process.
func signalOf(s *os.ProcessState) string {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return "unknown"
}
