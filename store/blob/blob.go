// Package blob keeps attachments, which logs name by the digest of their bytes:
//
//	DIR/objects/xx/HASH     an object
//	DIR/tmp/put-*           an object that is being written, or was when its writer died
//
// where HASH is the SHA-256 of the bytes in 64 lower-case hexadecimal digits and
// xx its first two. DIR is attachments/v1 beside the folder of the sessions, as
// dsh has it. A log refers to the object as sha256:HASH. Objects never change,
// and nothing here removes one.
//
// # Writing
//
// An object appears whole or not at all: its bytes go to a temporary file, which
// is synced and then linked to its name; then the folders are synced, the new
// ones above them too. Folders are made with mode 0700, files with 0600. The
// same bytes twice are one object. An object whose bytes are not those of its
// name any more is replaced by good ones when they are put again.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

// MaxSize is the largest object, in bytes.
const MaxSize = 256 << 20

// Store is a folder of objects, which need not exist: it is made with the first
// object. All methods may be called from any goroutine and from several
// processes at once.
type Store struct {
	dir  string
	disk faultfs.FS

	above atomic.Bool // the folders above objects/ were synced
}

// Beside is the store of the attachments of a root folder of sessions.
func Beside(root string) *Store { return BesideOn(faultfs.Real, root) }

// BesideOn is Beside on a file system.
func BesideOn(disk faultfs.FS, root string) *Store {
	return OpenOn(disk, filepath.Join(filepath.Dir(filepath.Clean(root)), "attachments", "v1"))
}

// Open is the store in a folder that holds objects/.
func Open(dir string) *Store { return OpenOn(faultfs.Real, dir) }

// OpenOn is Open on a file system.
func OpenOn(disk faultfs.FS, dir string) *Store { return &Store{dir: dir, disk: disk} }

// Dir is the folder.
func (s *Store) Dir() string { return s.dir }

func (s *Store) path(hash string) string { return filepath.Join(s.dir, "objects", hash[:2], hash) }

// problem is an error about one path. hint may be empty.
func problem(op, path string, reason error, msg, hint string) error {
	if msg == "" {
		msg = reason.Error()
		if pe := (*fs.PathError)(nil); errors.As(reason, &pe) {
			msg = pe.Err.Error()
		}
	}
	return &outcrop.Error{Op: op, Path: path, Seq: -1, Offset: -1, Err: reason, Msg: msg, Hint: hint}
}

const reading = "read attachment"

// Has reports whether an object is here, without reading it. The errors wrap
// outcrop.ErrRefused for a text that is no id, and outcrop.ErrDamaged for
// something else in the object's place.
func (s *Store) Has(ctx context.Context, id string) (bool, error) {
	hash, err := parse(id)
	if err != nil {
		return false, err
	}
	_, err = s.stat(ctx, id, s.path(hash))
	if errors.Is(err, outcrop.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// stat looks at the file of an object.
func (s *Store) stat(ctx context.Context, id, path string) (fs.FileInfo, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	fi, err := s.disk.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem(reading, path, outcrop.ErrNotFound, id+" is missing", "copy it from where the session was made")
	case err != nil:
		return nil, problem(reading, path, err, "", "")
	case !fi.Mode().IsRegular():
		return nil, problem(reading, path, outcrop.ErrDamaged, "not a regular file", "")
	}
	return fi, nil
}

// Get returns the bytes of an object, checked against the id. The errors wrap
// outcrop.ErrNotFound for an object that is not here, outcrop.ErrDamaged for one
// whose bytes are not those that the id names, and outcrop.ErrRefused for a text
// that is no id and for an object over MaxSize.
func (s *Store) Get(ctx context.Context, id string) ([]byte, error) {
	hash, err := parse(id)
	if err != nil {
		return nil, err
	}
	path := s.path(hash)
	fi, err := s.stat(ctx, id, path)
	if err != nil {
		return nil, err
	}
	if fi.Size() > MaxSize {
		return nil, problem(reading, path, outcrop.ErrRefused, fmt.Sprintf("%d bytes are more than the %d that are read", fi.Size(), MaxSize), "")
	}
	f, err := faultfs.Open(s.disk, path)
	if err != nil {
		return nil, problem(reading, path, err, "", "")
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, MaxSize+1))
	if err != nil {
		return nil, problem(reading, path, err, "", "")
	}
	if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != hash {
		return nil, problem(reading, path, outcrop.ErrDamaged, fmt.Sprintf("its %d bytes are not those of %s", len(b), id), "copy it again from where the session was made")
	}
	return b, nil
}

// ID is the id of some bytes.
func ID(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

// Valid returns nil when a text is an id of an object, else an error that wraps
// outcrop.ErrRefused.
func Valid(id string) error {
	_, err := parse(id)
	return err
}

func parse(id string) (string, error) {
	hash, ok := strings.CutPrefix(id, "sha256:")
	if !ok || !isHash(hash) {
		return "", &outcrop.Error{Op: reading, Seq: -1, Offset: -1, Err: outcrop.ErrRefused,
			Msg: fmt.Sprintf("%q is no attachment id", id), Hint: "an id is sha256: and 64 lower-case hexadecimal digits"}
	}
	return hash, nil
}

func isHash(s string) bool {
	ok := len(s) == 2*sha256.Size
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
	}
	return ok
}
