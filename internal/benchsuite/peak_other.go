//go:build !linux

package benchsuite

import "os/exec"

// watchPeak does not know here: the answer is 0.
func watchPeak(*exec.Cmd) (end func() float64) { return func() float64 { return 0 } }
