// Package files has the tools that work on the files of a workspace: read,
// list, glob, grep, write and edit.
//
// Every path is opened through an os.Root on the workspace, so neither "..",
// nor an absolute path, nor a symbolic link leads out of it; links inside are
// followed, and a file has one name here, the one behind all links. An absolute
// path that lies inside the workspace is taken as the relative one. Folders that
// are readable besides (the outputs that were too long for the log) are opened
// the same way, each through its own root. Only regular files are opened:
// nothing waits for the other end of a pipe.
//
// A result of read, write and edit carries as meta
//
//	{"path":"a.txt","digest":"sha256:..."}
//
// the digest of the whole file as the model now knows it, for files of at most
// MaxFile bytes. write and edit compare it with what is on disk and refuse when
// the file changed in between, and a file that was never read.
// Learn takes the digests from a log, so that the rule also holds in a session
// that was opened again.
//
// A file is replaced by renaming a new one over it, so a crash leaves the old
// or the new content. The mode stays; owner and other hard links do not.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/tool"
)

// MaxFile is the largest file that write and edit replace, in bytes; read and
// grep take larger ones as well.
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

// Tools returns edit, glob, grep, list, read and write.
func (w *Workspace) Tools() ([]tool.Tool, error) {
	var out []tool.Tool
	for _, make := range []func() (tool.Tool, error){w.edit, w.glob, w.grep, w.list, w.read, w.write} {
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
