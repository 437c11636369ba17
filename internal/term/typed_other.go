//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package term

import "os"

// DropTyped does nothing here: the system offers no way that needs no window.
func DropTyped(*os.File) {}
