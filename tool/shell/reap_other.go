//go:build !linux

package shell

import "os/exec"

// reap waits for a command to end and kills what is left of its group.
func reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	killGroup(cmd)
	return err
}
