//go:build unix

package group

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Own makes a command the leader of a session, and so of a process group, of its
// own. A session has no terminal until it opens one: a program that wants to ask
// for a password fails at once instead of waiting.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Kill kills the whole group of a started command. A group that is gone is no
// error.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// Guard is a process that kills the group of a command when this program is
// gone, even one that was killed itself: then the pipe that it reads from ends.
// (The kernel's signal at a parent's death would reach the command alone, not
// what the command has started, and comes when a thread ends, not the program.)
type Guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// The guard reads the group's id, then nothing until the pipe ends.
const guardScript = `read g && { read x; kill -9 "-$g"; }`

// NewGuard starts a guard that watches nothing yet.
func NewGuard() (*Guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	g := &Guard{pipe: w, cmd: exec.Command("/bin/sh", "-c", guardScript)}
	g.cmd.Dir, g.cmd.Env, g.cmd.Stdin = "/", []string{}, r
	Own(g.cmd)
	if err := g.cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return g, nil
}

// Watch gives the guard the group of a started command, once.
func (g *Guard) Watch(cmd *exec.Cmd) error {
	_, err := g.pipe.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
	return err
}

// Release ends the guard; it does nothing to the group.
func (g *Guard) Release() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	g.pipe.Close()
}
