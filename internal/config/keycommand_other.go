//go:build !unix

package config

import "os/exec"

// Here a command has no group that could be killed: only itself.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
