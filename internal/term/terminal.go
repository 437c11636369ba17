package term

import "os"

// Is reports whether a stream is a terminal of this system.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && fdIsTerminal(f.Fd())
}
