package files

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/outcrop-dev/outcrop/tool"
)

func refused(code, format string, args ...any) error {
	return &tool.Error{Name: "FileError", Code: code, Msg: fmt.Sprintf(format, args...)}
}

func outside(name string) error {
	return refused("OUTSIDE_WORKSPACE", "%s is outside the workspace; only files inside it can be used", name)
}

// told turns an error of the file system into what a model is told, without
// the absolute path.
func told(name string, err error) error {
	var coded *tool.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return refused("NOT_FOUND", "%s does not exist; list shows what is there", name)
	case errors.Is(err, fs.ErrPermission):
		return refused("NO_PERMISSION", "%s: no permission", name)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	// os.Root has no exported error for a path that leads out.
	if strings.Contains(err.Error(), "escapes from parent") {
		return outside(name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func isDirectory(name string) error {
	return refused("IS_A_DIRECTORY", "%s is a directory; list shows what is in it", name)
}

// kindOf says what a name is that is neither file nor directory.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	}
	return "not a regular file"
}

func tooLarge(name string, size int64) error {
	return refused("TOO_LARGE", "%s has %d bytes, the limit is %d; use shell to change it", name, size, MaxFile)
}
