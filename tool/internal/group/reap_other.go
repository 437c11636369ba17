//go:build !linux

package group

import "os/exec"

// Reap waits for a command to end and kills what is left of its group.
func Reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	Kill(cmd)
	return err
}
