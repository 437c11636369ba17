package cli

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// newFile is a file that is being written and that has its name when it is
// whole: an export that is interrupted leaves nothing. It may hold secrets, so
// only its owner may read it from the first byte on.
type newFile struct {
	path  string
	temp  *os.File
	w     *bufio.Writer
	size  int64
	force bool
}

func createFile(path string, force bool) (*newFile, error) {
	if fi, err := os.Stat(path); err == nil {
		switch {
		case fi.IsDir():
			return nil, exit.Usagef("%s is a folder: name a file in it", term.Line(path))
		case !force:
			return nil, exit.Refusedf("%s exists: choose another name, or --force overwrites it", term.Line(path))
		}
	}
	var b [6]byte
	rand.Read(b[:])
	temp, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+hex.EncodeToString(b[:])+".tmp"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, exit.Usagef("there is no folder %s to write into", term.Line(filepath.Dir(path)))
		}
		return nil, exit.With(1, err)
	}
	return &newFile{path: path, temp: temp, w: bufio.NewWriterSize(temp, 256<<10), force: force}, nil
}

// Write is io.Writer's.
func (f *newFile) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.size += int64(n)
	return n, err
}

// publish gives the file its name.
func (f *newFile) publish() error {
	name := f.temp.Name()
	err := f.w.Flush()
	if err == nil {
		err = f.temp.Sync()
	}
	if closeErr := f.temp.Close(); err == nil {
		err = closeErr
	}
	f.temp = nil
	if err == nil && !f.force {
		// Somebody may have made one meanwhile.
		if _, statErr := os.Lstat(f.path); statErr == nil {
			err = fmt.Errorf("%s exists now: choose another name", term.Line(f.path))
		}
	}
	if err == nil {
		err = os.Rename(name, f.path)
	}
	if err != nil {
		os.Remove(name)
		return exit.With(1, fmt.Errorf("the export cannot be written: %w", err))
	}
	return nil
}

// drop removes what was not published.
func (f *newFile) drop() {
	if f.temp != nil {
		f.temp.Close()
		os.Remove(f.temp.Name())
		f.temp = nil
	}
}
