//go:build !unix

package jsonl

import "time"

// cpuTime is not told by this system.
func cpuTime() time.Duration { return 0 }
