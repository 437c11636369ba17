// Package files has the tools that work on the files of a workspace: read,
// list and write.
//
// Every path is opened through an os.Root on the workspace, so neither "..",
// nor an absolute path, nor a symbolic link leads out of it. An absolute path
// that lies inside the workspace is taken as the relative one. Folders that
// are readable besides (the outputs that were too long for the log) are opened
// the same way, each through its own root.
//
// A result of read and write carries as meta
//
//	{"path":"a.txt","digest":"sha256:..."}
//
// the digest of the whole file as the model now knows it. write compares it
// with what is on disk and refuses when the file changed in between. Learn
// takes the digests from a log, so that the rule also holds in a session that
// was opened again.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/tool"
)

// MaxFile is the largest file that is read or replaced, in bytes.
const MaxFile = 10 << 20

// Workspace is the folder that the tools work in. Its tools may be used from
// many goroutines.
type Workspace struct {
	dir   string // absolute
	root  *os.Root
	extra []extraRoot

	mu    sync.Mutex
	known map[string]string // workspace path -> digest that the model knows
}

type extraRoot struct {
	dir  string
	root *os.Root
}

// Open opens a workspace. readable are further folders that read may look
// into; those that do not exist yet are looked for again at each use.
func Open(dir string, readable ...string) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	w := &Workspace{dir: abs, root: root, known: map[string]string{}}
	for _, d := range readable {
		d, err := filepath.Abs(d)
		if err != nil {
			return nil, errors.Join(err, root.Close())
		}
		w.extra = append(w.extra, extraRoot{dir: d})
	}
	return w, nil
}

// Dir is the workspace's absolute path.
func (w *Workspace) Dir() string { return w.dir }

// Close releases the folders.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.root.Close()
	for _, x := range w.extra {
		if x.root != nil {
			err = errors.Join(err, x.root.Close())
		}
	}
	return err
}

// Tools returns list, read and write.
func (w *Workspace) Tools() ([]tool.Tool, error) {
	var out []tool.Tool
	for _, make := range []func() (tool.Tool, error){w.list, w.read, w.write} {
		t, err := make()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Learn takes from a log what its session last knew of each file: the meta of
// its tool results, later ones over earlier ones.
func (w *Workspace) Learn(log outcrop.Log) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rec := range log.Records(0) {
		if rec.Type != outcrop.TypeToolResult {
			continue
		}
		meta := jsonwire.Get(rec.Data, "meta")
		if jsonwire.Kind(meta) != '{' {
			continue
		}
		name, ok := jsonwire.Text(jsonwire.Get(meta, "path"))
		digest, ok2 := jsonwire.Text(jsonwire.Get(meta, "digest"))
		if ok && ok2 && strings.HasPrefix(digest, "sha256:") {
			w.known[name] = digest
		}
	}
}

func (w *Workspace) knows(name string) (digest string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	digest, ok = w.known[name]
	return digest, ok
}

func (w *Workspace) learn(name, digest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[name] = digest
}

func (w *Workspace) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, name)
}

// meta is the member of a result that Learn reads.
func meta(name, digest string) json.RawMessage {
	b := append([]byte(nil), '{')
	b = jsonwire.AppendStringMember(b, "path", name)
	b = jsonwire.AppendStringMember(b, "digest", digest)
	return append(b, '}')
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// place resolves the path that a model gave: the root that holds it and the
// slash-separated name inside. An absolute path must lie in one of the roots.
func (w *Workspace) place(name string, readOnly bool) (*os.Root, string, error) {
	if name == "" {
		return nil, "", tool.InvalidArgs("path is empty")
	}
	if strings.IndexByte(name, 0) >= 0 {
		return nil, "", tool.InvalidArgs("path holds a NUL character")
	}
	if !filepath.IsAbs(name) {
		return w.root, path.Clean(filepath.ToSlash(name)), nil
	}
	if rel, ok := below(w.dir, name); ok {
		return w.root, rel, nil
	}
	if readOnly {
		for i := range w.extra {
			rel, ok := below(w.extra[i].dir, name)
			if !ok {
				continue
			}
			root, err := w.open(i)
			return root, rel, err
		}
	}
	return nil, "", outside(name)
}

func (w *Workspace) open(i int) (*os.Root, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &w.extra[i]
	if x.root == nil {
		root, err := os.OpenRoot(x.dir)
		if err != nil {
			return nil, err
		}
		x.root = root
	}
	return x.root, nil
}

func below(dir, name string) (string, bool) {
	rel, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

func outside(name string) error {
	return &tool.Error{Name: "FileError", Code: "OUTSIDE_WORKSPACE",
		Msg: fmt.Sprintf("%s is outside the workspace; only files inside it can be used", name)}
}

// told turns an error of the file system into what a model is told, without
// the absolute path.
func told(name string, err error) error {
	var coded *tool.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &tool.Error{Name: "FileError", Code: "NOT_FOUND", Msg: fmt.Sprintf("%s does not exist; list shows what is there", name)}
	case errors.Is(err, fs.ErrPermission):
		return &tool.Error{Name: "FileError", Code: "NO_PERMISSION", Msg: fmt.Sprintf("%s: no permission", name)}
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	// os.Root has no exported error for a path that leads out.
	if strings.Contains(err.Error(), "escapes from parent") {
		return outside(name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// load reads a whole regular file of at most MaxFile bytes.
func load(root *os.Root, name string) ([]byte, fs.FileInfo, error) {
	// Looked at before it is opened: opening a pipe would wait for its writer.
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if err := regular(name, info); err != nil {
		return nil, nil, err
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(b) > MaxFile {
		return nil, nil, tooLarge(name, int64(len(b)))
	}
	return b, info, nil
}

func regular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &tool.Error{Name: "FileError", Code: "IS_A_DIRECTORY", Msg: name + " is a directory; list shows what is in it"}
	case !info.Mode().IsRegular():
		return &tool.Error{Name: "FileError", Code: "NOT_A_FILE", Msg: name + " is not a regular file"}
	case info.Size() > MaxFile:
		return tooLarge(name, info.Size())
	}
	return nil
}

func tooLarge(name string, size int64) error {
	return &tool.Error{Name: "FileError", Code: "TOO_LARGE",
		Msg: fmt.Sprintf("%s has %d bytes, the limit is %d; use shell to look at a part of it", name, size, MaxFile)}
}
