//go:build windows

package cputime

import (
	"syscall"
	"time"
)

// Used is what this process has used so far, on all processors, in user and
// kernel mode.
func Used() time.Duration {
	var created, ended, kernel, user syscall.Filetime
	p, err := syscall.GetCurrentProcess()
	if err == nil {
		err = syscall.GetProcessTimes(p, &created, &ended, &kernel, &user)
	}
	if err != nil {
		return 0
	}
	// These two are counts of 100 nanoseconds and no dates.
	count := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(100 * (count(kernel) + count(user)))
}
