package tty

import (
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// rawState is how the console was set before.
type rawState struct {
	in, out         windows.Handle
	inMode, outMode uint32
}

// makeRaw lets keys come as a terminal sends them and sequences be obeyed.
func makeRaw(in, out *os.File) (*rawState, error) {
	s := &rawState{in: windows.Handle(in.Fd()), out: windows.Handle(out.Fd())}
	if err := windows.GetConsoleMode(s.in, &s.inMode); err != nil {
		return nil, err
	}
	if err := windows.GetConsoleMode(s.out, &s.outMode); err != nil {
		return nil, err
	}
	const cooked = windows.ENABLE_ECHO_INPUT | windows.ENABLE_LINE_INPUT | windows.ENABLE_PROCESSED_INPUT
	if err := windows.SetConsoleMode(s.in, s.inMode&^cooked|windows.ENABLE_VIRTUAL_TERMINAL_INPUT); err != nil {
		return nil, err
	}
	const obeyed = windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING | windows.ENABLE_PROCESSED_OUTPUT
	if err := windows.SetConsoleMode(s.out, s.outMode|obeyed); err != nil {
		_ = windows.SetConsoleMode(s.in, s.inMode) // the first error counts
		return nil, err
	}
	return s, nil
}

func (s *rawState) restore() error {
	err := windows.SetConsoleMode(s.in, s.inMode)
	if oerr := windows.SetConsoleMode(s.out, s.outMode); err == nil {
		err = oerr
	}
	return err
}

func sizeOf(out *os.File) (cols, rows int, err error) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(out.Fd()), &info); err != nil {
		return 0, 0, err
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1, nil
}

// lookAgain is how often the size is looked at: a console sends no signal.
const lookAgain = 250 * time.Millisecond

// watchSize tells of each change of the size until stop is called.
func watchSize(out *os.File, changed chan<- struct{}) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(lookAgain)
		defer tick.Stop()
		cols, rows, _ := sizeOf(out)
		for {
			select {
			case <-tick.C:
				c, r, err := sizeOf(out)
				if err != nil || c == cols && r == rows {
					continue
				}
				cols, rows = c, r
				select {
				case changed <- struct{}{}:
				default:
				}
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// Suspend does nothing: a console cannot stop a program.
func Suspend() error { return nil }
