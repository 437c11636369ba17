//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package tty

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// rawState is how a terminal was set before.
type rawState struct {
	in    *os.File
	saved unix.Termios
}

// makeRaw turns off line editing, echo, and the keys that send signals.
func makeRaw(in, _ *os.File) (*rawState, error) {
	t, err := unix.IoctlGetTermios(int(in.Fd()), getTermios)
	if err != nil {
		return nil, err
	}
	s := &rawState{in: in, saved: *t}
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag &^= unix.CSIZE | unix.PARENB
	t.Cflag |= unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(in.Fd()), setTermios, t); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *rawState) restore() error {
	return unix.IoctlSetTermios(int(s.in.Fd()), setTermios, &s.saved)
}

func sizeOf(out *os.File) (cols, rows int, err error) {
	ws, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, err
	}
	return int(ws.Col), int(ws.Row), nil
}

// watchSize tells of each change of the size until stop is called.
func watchSize(_ *os.File, changed chan<- struct{}) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				select {
				case changed <- struct{}{}:
				default:
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// Suspend stops the process as Ctrl-Z does, until the shell lets it go on.
func Suspend() error { return syscall.Kill(0, syscall.SIGTSTP) }
