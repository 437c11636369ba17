package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

// putAside copies the bytes [from, to) of a log to a file of their own and
// syncs it and its name. When an earlier attempt left the same bytes there, which
// may have died before it synced them, they are synced now; other bytes are not
// touched, and a number is added to the name.
func putAside(disk faultfs.FS, log string, from, to int64, aside string) error {
	src, err := faultfs.Open(disk, log)
	if err != nil {
		return err
	}
	defer src.Close()
	tail := func() io.Reader { return io.NewSectionReader(src, from, to-from) }
	name := aside
	for n := 2; ; n++ {
		switch same, err := holds(disk, name, tail(), to-from); {
		case errors.Is(err, fs.ErrNotExist):
			return writeAside(disk, name, tail())
		case err != nil:
			return err
		case same:
			return syncAside(disk, name)
		}
		name = fmt.Sprintf("%s.%d", aside, n)
	}
}

func writeAside(disk faultfs.FS, name string, tail io.Reader) (err error) {
	f, err := disk.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			disk.Remove(name)
		}
	}()
	_, err = io.Copy(f, tail)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return syncAside(disk, name)
}

func syncAside(disk faultfs.FS, name string) error {
	f, err := disk.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(name))
}

// holds reports whether a file has exactly the bytes of want.
func holds(disk faultfs.FS, name string, want io.Reader, size int64) (bool, error) {
	f, err := faultfs.Open(disk, name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || fi.Size() != size {
		return false, err
	}
	have := io.NewSectionReader(f, 0, size)
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(want, a)
		m, _ := io.ReadFull(have, b)
		if n != m || !bytes.Equal(a[:n], b[:m]) {
			return false, nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return err == nil, err
		}
	}
}
