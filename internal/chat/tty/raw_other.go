//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package tty

import (
	"errors"
	"os"
)

type rawState struct{}

var errNoRaw = errors.New("this system has no terminals that can be set")

func makeRaw(_, _ *os.File) (*rawState, error)          { return nil, errNoRaw }
func (*rawState) restore() error                        { return nil }
func sizeOf(*os.File) (cols, rows int, err error)       { return 0, 0, errNoRaw }
func watchSize(*os.File, chan<- struct{}) (stop func()) { return func() {} }

// Suspend does nothing here.
func Suspend() error { return nil }
