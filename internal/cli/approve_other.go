//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package cli

import "os"

// dropTyped does nothing here: the system offers no way that needs no window.
func dropTyped(*os.File) {}
