// Package blob reads attachments, which logs name by the digest of their bytes:
//
//	DIR/objects/xx/HASH
//
// where HASH is the SHA-256 of the bytes in 64 lower-case hexadecimal digits and
// xx its first two. DIR is attachments/v1 beside the folder of the sessions. A
// log refers to the object as sha256:HASH. Objects never change.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop"
)

// MaxSize is the largest object that is read, in bytes.
const MaxSize = 256 << 20

// Store is a folder of objects, which need not exist.
type Store struct {
	dir string
}

// Beside is the store of the attachments of a root folder of sessions.
func Beside(root string) *Store {
	return Open(filepath.Join(filepath.Dir(filepath.Clean(root)), "attachments", "v1"))
}

// Open is the store in a folder that holds objects/.
func Open(dir string) *Store { return &Store{dir} }

// Get returns the bytes of an object, checked against the id. The errors wrap
// outcrop.ErrNotFound for an object that is not here, outcrop.ErrDamaged for one
// whose bytes are not those that the id names, and outcrop.ErrRefused for a text
// that is no id.
func (s *Store) Get(ctx context.Context, id string) ([]byte, error) {
	hash, err := parse(id)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, "objects", hash[:2], hash)
	bad := func(reason error, msg, hint string) error {
		return &outcrop.Error{Op: "read attachment", Path: path, Seq: -1, Offset: -1, Err: reason, Msg: msg, Hint: hint}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, bad(outcrop.ErrNotFound, id+" is missing", "copy it from where the session was made")
	case err != nil:
		return nil, bad(err, err.Error(), "")
	case !fi.Mode().IsRegular():
		return nil, bad(outcrop.ErrDamaged, "not a regular file", "")
	case fi.Size() > MaxSize:
		return nil, bad(outcrop.ErrRefused, fmt.Sprintf("%d bytes are more than the %d that are read", fi.Size(), MaxSize), "")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bad(err, err.Error(), "")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, bad(err, err.Error(), "")
	}
	if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != hash {
		return nil, bad(outcrop.ErrDamaged, fmt.Sprintf("its %d bytes are not those of %s", len(b), id), "copy it again from where the session was made")
	}
	return b, nil
}

// ID is the id of some bytes.
func ID(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

func parse(id string) (string, error) {
	hash, ok := strings.CutPrefix(id, "sha256:")
	ok = ok && len(hash) == 2*sha256.Size
	for i := 0; ok && i < len(hash); i++ {
		c := hash[i]
		ok = c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
	}
	if !ok {
		return "", &outcrop.Error{Op: "read attachment", Seq: -1, Offset: -1, Err: outcrop.ErrRefused,
			Msg: fmt.Sprintf("%q is no attachment id", id), Hint: "an id is sha256: and 64 lower-case hexadecimal digits"}
	}
	return hash, nil
}
