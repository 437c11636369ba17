//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package cli

func fdIsTerminal(uintptr) bool { return false }
