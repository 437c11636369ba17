package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/outcrop-dev/outcrop"
)

// medium is what of the file system can go wrong on a full or dying disk. Tests
// put faults in its place.
type medium struct {
	write   func(f *os.File, p []byte) (int, error)
	sync    func(f *os.File) error
	link    func(from, to string) error
	syncDir func(dir string) error
}

var realMedium = medium{write: (*os.File).Write, sync: (*os.File).Sync, link: os.Link, syncDir: syncDir}

const writing = "store attachment"

// Put stores some bytes and returns their id; they are durable then. Bytes that
// are stored already are compared, not written. More than MaxSize bytes are
// refused (outcrop.ErrRefused). After an error there is no new object, or a
// whole one that may not survive a loss of power.
func (s *Store) Put(ctx context.Context, b []byte) (id string, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if len(b) > MaxSize {
		return "", problem(writing, s.dir, outcrop.ErrRefused, fmt.Sprintf("%d bytes are more than the %d that an attachment may have", len(b), MaxSize), "")
	}
	id = ID(b)
	hash := id[len("sha256:"):]
	path := s.path(hash)
	_, err = s.Get(ctx, id)
	switch {
	case err == nil:
		// Who stored it may have died before its name was durable.
		return id, s.synced(path, nil)
	case !errors.Is(err, outcrop.ErrNotFound) && !errors.Is(err, outcrop.ErrDamaged):
		return "", err
	}
	damaged := errors.Is(err, outcrop.ErrDamaged)
	bucket, temps := filepath.Dir(path), filepath.Join(s.dir, "tmp")
	var made []string
	for _, dir := range [...]string{bucket, temps} {
		m, err := makeFolders(dir)
		made = append(made, m...)
		if err != nil {
			return "", problem(writing, dir, err, "", "check who owns it and its mode")
		}
	}
	temp, err := s.writeTemp(temps, b)
	if err != nil {
		return "", err
	}
	defer os.Remove(temp)
	if damaged {
		err = os.Rename(temp, path)
	} else if err = s.m.link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		// Not every file system has links. What stands at that name has the
		// same bytes.
		err = os.Rename(temp, path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", problem(writing, path, err, "", "")
	}
	return id, s.synced(path, made)
}

// writeTemp makes a synced temporary file.
func (s *Store) writeTemp(dir string, b []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, "put-*") // with mode 0600
	if err != nil {
		return "", problem(writing, dir, err, "", "")
	}
	n, err := s.m.write(f, b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("%d of %d bytes written", n, len(b))
	}
	if err == nil {
		err = s.m.sync(f)
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			hint = "make room on the disk"
		}
		os.Remove(f.Name())
		return "", problem(writing, f.Name(), err, "", hint)
	}
	return f.Name(), nil
}

// synced makes the name of an object durable: in its bucket, in objects/, and in
// each folder that holds one that was made.
func (s *Store) synced(path string, made []string) error {
	bucket := filepath.Dir(path)
	done := map[string]bool{}
	dirs := []string{bucket, filepath.Dir(bucket)}
	for _, d := range made {
		dirs = append(dirs, filepath.Dir(d))
	}
	for _, d := range dirs {
		if done[d] {
			continue
		}
		done[d] = true
		if err := s.m.syncDir(d); err != nil {
			return problem(writing, d, err, "the disk did not keep the name of an attachment: "+err.Error(), "look after the disk")
		}
	}
	return nil
}

// makeFolders makes a folder and what is missing above it, and returns what it
// made.
func makeFolders(dir string) (made []string, err error) {
	if fi, err := os.Stat(dir); err == nil {
		if !fi.IsDir() {
			return nil, &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("a file is in the place of a folder")}
		}
		return nil, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if up := filepath.Dir(dir); up != dir {
		if made, err = makeFolders(up); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	return append(made, dir), nil
}

// syncDir makes the names in a folder durable. Windows cannot, and some file
// systems refuse it; both keep names in order by themselves.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
