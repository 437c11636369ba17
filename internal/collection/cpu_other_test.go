//go:build !unix

package collection_test

import "time"

// cpuTime is not told by this system.
func cpuTime() time.Duration { return 0 }
