package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// DirSpill saves whole outputs as files in a folder: 0700 the folder, 0600 the
// files, one a call, named TOOL-CALLID.txt, never overwritten. The folder is
// made at the first save.
//
// No file is ever removed here: results in the log name them, and a model may
// read them again after a resume. Give each session a folder of its own and
// remove it with the session; without it the log stays whole, only the parts
// that were cut out of long results are gone.
type DirSpill struct{ Dir string }

// Save implements Spill.
func (d DirSpill) Save(_ context.Context, call Call, text string) (string, error) {
	if err := d.makeDir(); err != nil {
		return "", err
	}
	stem := fileStem(call.Name) + "-" + fileStem(call.ID)
	for n := 1; ; n++ {
		name := stem + ".txt"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.txt", stem, n)
		}
		path := filepath.Join(d.Dir, name)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 10_000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(text)
		if err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = syncDir(d.Dir)
		}
		if err != nil {
			return "", errors.Join(err, os.Remove(path))
		}
		return path, nil
	}
}

func (d DirSpill) makeDir() error {
	if _, err := os.Stat(d.Dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(d.Dir))
}

// syncDir makes the names in a folder durable, where the file system can do it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// fileStem turns any text into a short name that every file system takes.
func fileStem(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
	if len(s) > 64 {
		s = s[:64]
	}
	if s == "" {
		return "x"
	}
	return s
}
