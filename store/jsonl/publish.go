package jsonl

import (
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

// publishAs gives a synced temporary file its name, which must be free.
func publishAs(disk faultfs.FS, temp, name string) error {
	err := disk.Link(temp, name)
	switch {
	case err == nil:
		disk.Remove(temp) // a second name of the log does no harm
	case noLinks(err):
		err = disk.RenameNew(temp, name)
	}
	return err
}

// tempBytes is how many random bytes are in the name of a temporary file.
const tempBytes = 6

// removeTemps takes away what writers left that died before they gave their log
// its name. The lock is held, so nobody is writing one.
func removeTemps(disk faultfs.FS, name string) {
	found, err := disk.ReadDir(filepath.Dir(name))
	if err != nil {
		return // they are in nobody's way but that of the room they take
	}
	for _, e := range found {
		id, ours := strings.CutPrefix(e.Name(), filepath.Base(name)+".")
		id, temp := strings.CutSuffix(id, ".tmp")
		if !ours || !temp || len(id) != 2*tempBytes {
			continue
		}
		if _, err := hex.DecodeString(id); err == nil && e.Type().IsRegular() {
			disk.Remove(filepath.Join(filepath.Dir(name), e.Name()))
		}
	}
}

// createTemp makes a new file beside the one that it will become.
func createTemp(disk faultfs.FS, name string, random io.Reader) (faultfs.File, error) {
	var b [tempBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, err
	}
	return disk.OpenFile(name+"."+hex.EncodeToString(b[:])+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

// removeFolders takes back what faultfs.MakeFolders made, as far as nothing lies in it.
func removeFolders(disk faultfs.FS, made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		if disk.Remove(made[i]) != nil {
			return
		}
	}
}

// syncFolders makes a log's names durable: in its own folder, in the two above
// it up to the root, in the one that holds the root, and in each folder that
// holds one that was made. An earlier process may have made folders and died
// before it synced them, so the first time all the folders above are synced too.
// A folder that may not be read is passed over: this program did not make it.
func (l *lease) syncFolders(made []string) error {
	dir, last := filepath.Dir(l.path), filepath.Dir(l.path)
	if l.root != "" {
		last = filepath.Dir(l.root)
	}
	done := map[string]bool{}
	sync := func(d string) error {
		if done[d] {
			return nil
		}
		done[d] = true
		if err := l.disk.SyncDir(d); !errors.Is(err, syscall.EACCES) {
			return err
		}
		return nil
	}
	for d := dir; ; d = filepath.Dir(d) {
		if err := sync(d); err != nil {
			return err
		}
		if d == last || d == filepath.Dir(d) {
			break
		}
	}
	if l.above == nil || !l.above.Load() {
		if err := faultfs.SyncAbove(l.disk, last); err != nil {
			return err
		}
		if l.above != nil {
			l.above.Store(true)
		}
		return nil
	}
	for _, d := range made {
		if err := sync(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}
