package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// putAside copies the bytes [from, to) of a log to a file of their own and
// syncs it and its name. When an earlier attempt left the same bytes there, they
// do; other bytes are not touched, and a number is added to the name.
func (m *medium) putAside(log string, from, to int64, aside string) error {
	src, err := os.Open(log)
	if err != nil {
		return err
	}
	defer src.Close()
	tail := func() io.Reader { return io.NewSectionReader(src, from, to-from) }
	name := aside
	for n := 2; ; n++ {
		switch same, err := holds(name, tail(), to-from); {
		case errors.Is(err, fs.ErrNotExist):
			return m.writeAside(name, tail())
		case err != nil:
			return err
		case same:
			return nil
		}
		name = fmt.Sprintf("%s.%d", aside, n)
	}
}

func (m *medium) writeAside(name string, tail io.Reader) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(name)
		}
	}()
	_, err = io.Copy(writerFunc(func(p []byte) (int, error) { return m.write(f, p) }), tail)
	if err == nil {
		err = m.sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return m.syncDir(filepath.Dir(name))
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// holds reports whether a file has exactly the bytes of want.
func holds(name string, want io.Reader, size int64) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || fi.Size() != size {
		return false, err
	}
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(want, a)
		m, _ := io.ReadFull(f, b)
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
