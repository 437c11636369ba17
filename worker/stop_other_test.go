//go:build !unix

package worker_test

import "os"

// stopProcess does nothing where processes cannot be stopped: the killer has
// other ways.
func stopProcess(*os.Process, bool) error { return nil }
