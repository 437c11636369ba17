package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// DropTyped drops what was typed into a terminal and not read yet, so that no
// key pressed earlier answers a question that nobody has seen.
func DropTyped(f *os.File) {
	_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // fails for what is no terminal
}
