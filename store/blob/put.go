package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

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
		m, err := faultfs.MakeFolders(s.disk, dir)
		made = append(made, m...)
		if err != nil {
			return "", problem(writing, dir, err, "", "check who owns it and its mode")
		}
	}
	temp, err := s.writeTemp(temps, b)
	if err != nil {
		return "", err
	}
	defer s.disk.Remove(temp)
	if damaged {
		err = s.disk.Rename(temp, path)
	} else if err = s.disk.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		// Not every file system has links. What stands at that name has the
		// same bytes.
		err = s.disk.Rename(temp, path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", problem(writing, path, err, "", "")
	}
	return id, s.synced(path, made)
}

// writeTemp makes a synced temporary file.
func (s *Store) writeTemp(dir string, b []byte) (path string, err error) {
	f, err := s.disk.OpenFile(filepath.Join(dir, "put-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", problem(writing, dir, err, "", "")
	}
	n, err := f.Write(b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("%d of %d bytes written", n, len(b))
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			hint = "make room on the disk"
		}
		s.disk.Remove(f.Name())
		return "", problem(writing, f.Name(), err, "", hint)
	}
	return f.Name(), nil
}

// synced makes the name of an object durable: in its bucket, in objects/, and in
// each folder that holds one that was made. An earlier process may have made
// folders and died before it synced them, so the first time all the folders above
// are synced too.
func (s *Store) synced(path string, made []string) error {
	bucket := filepath.Dir(path)
	objects := filepath.Dir(bucket)
	err := errors.Join(s.disk.SyncDir(bucket), s.disk.SyncDir(objects))
	if !s.above.Load() {
		if err = errors.Join(err, faultfs.SyncAbove(s.disk, objects)); err == nil {
			s.above.Store(true)
		}
	} else {
		for _, d := range made {
			err = errors.Join(err, s.disk.SyncDir(filepath.Dir(d)))
		}
	}
	if err != nil {
		return problem(writing, path, err, "the disk did not keep the name of an attachment: "+err.Error(), "look after the disk")
	}
	return nil
}
