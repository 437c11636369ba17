package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// openFile opens a regular file for reading and nothing else: what is no file
// is not even opened, since that could wait (a pipe) or do something (a
// device). name is what errors call it.
func openFile(root *os.Root, at, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(at)
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, nil, err
	}
	// It may be another one by now; that one must not be waited for either.
	f, err := root.OpenFile(at, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func regular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return isDirectory(name)
	case !info.Mode().IsRegular():
		return refused("NOT_A_FILE", "%s is %s; only regular files can be used", name, kindOf(info.Mode()))
	}
	return nil
}

// load reads a whole regular file of at most MaxFile bytes.
func load(s spot) ([]byte, fs.FileInfo, error) {
	f, info, err := openFile(s.root, s.name, s.given)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > MaxFile {
		return nil, nil, tooLarge(s.given, info.Size())
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(b) > MaxFile {
		return nil, nil, tooLarge(s.given, int64(len(b)))
	}
	return b, info, nil
}

// ctxReader ends a long reading when its context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
