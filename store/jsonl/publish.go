package jsonl

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// renameChecked looks before it renames. The session's lock is held, so no
// other writer of this program stands between the two steps.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

// publishAs gives a synced temporary file its name, which must be free.
func (m *medium) publishAs(temp, name string) error {
	err := m.link(temp, name)
	switch {
	case err == nil:
		os.Remove(temp) // a second name of the log does no harm
	case noLinks(err):
		err = renameNew(temp, name)
	}
	return err
}

// createTemp makes a new file beside the one that it will become.
func createTemp(name string, random io.Reader) (*os.File, error) {
	var b [6]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, err
	}
	return os.OpenFile(name+"."+hex.EncodeToString(b[:])+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// makeFolders makes a folder and what is missing above it, and returns what it
// made, the deepest last.
func makeFolders(dir string) (made []string, err error) {
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil:
		return []string{dir}, nil
	case errors.Is(err, fs.ErrExist):
		if fi, err := os.Stat(dir); err == nil && !fi.IsDir() {
			return nil, &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("a file is in the place of a folder")}
		}
		return nil, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if parent := filepath.Dir(dir); parent != dir {
		if made, err = makeFolders(parent); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	return append(made, dir), nil
}

// removeFolders takes back what makeFolders made, as far as nothing lies in it.
func removeFolders(made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		if os.Remove(made[i]) != nil {
			return
		}
	}
}

// syncFolders makes a new log's names durable: in its own folder, in the two
// above it up to the root, in the one that holds the root, and in each folder
// that holds one that was made. What an earlier process made and could not sync
// is so covered too.
func (m *medium) syncFolders(dir, root string, made []string) error {
	done := map[string]bool{}
	sync := func(d string) error {
		if done[d] {
			return nil
		}
		done[d] = true
		return m.syncDir(d)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if err := sync(d); err != nil {
			return err
		}
		if root == "" || d == filepath.Dir(root) || d == filepath.Dir(d) {
			break
		}
	}
	for _, d := range made {
		if err := sync(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}
