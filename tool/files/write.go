package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"

	"github.com/outcrop-dev/outcrop/tool"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace; missing directories are made"`
	Content string `json:"content" jsonschema:"the complete new content of the file"`
}

func (w *Workspace) write() (tool.Tool, error) {
	return w.changes(tool.Define(tool.Spec[writeArgs]{
		Name: "write",
		Description: "Create a file of the workspace or replace its whole content. Read an existing file first: " +
			"one that was not read, or that changed since it was last read, is refused.",
		Class:   tool.Edit,
		Run:     w.runWrite,
		Preview: w.previewWrite,
	}))
}

// target is the file that a write would replace, as it is now.
type target struct {
	name   string
	old    []byte
	exists bool
	known  bool // the model has seen it
	mode   fs.FileMode
}

// look checks that a write may go on: a regular file that is still as the
// model knows it, or nothing yet.
func (w *Workspace) look(given string) (target, error) {
	s, err := w.place(given, false)
	if err != nil {
		return target{}, err
	}
	t := target{name: s.name, mode: 0o644}
	digest, known := w.knows(s.name)
	t.known = known
	old, info, err := load(s)
	if errors.Is(err, fs.ErrNotExist) {
		if known {
			return t, changed(given, "it was removed")
		}
		return t, nil
	}
	if err != nil {
		return t, told(given, err)
	}
	t.old, t.exists, t.mode = old, true, info.Mode().Perm()
	if t.mode&0o200 == 0 {
		return t, refused("NO_PERMISSION", "%s is read-only (mode %04o)", given, t.mode)
	}
	if known && digest != digestOf(old) {
		return t, changed(given, "it is different now")
	}
	return t, nil
}

func changed(name, how string) error {
	return refused("CHANGED_ON_DISK", "%s changed since it was last read (%s); read it again before changing it", name, how)
}

// overwrite is look for a write: nobody replaces what was never seen.
func (w *Workspace) overwrite(given string) (target, error) {
	t, err := w.look(given)
	if err == nil && t.exists && !t.known {
		return t, refused("NOT_READ", "%s exists and was not read yet; read it first, or write to a new name", given)
	}
	return t, err
}

func (w *Workspace) previewWrite(_ context.Context, _ tool.Call, a writeArgs) (tool.Preview, error) {
	t, err := w.overwrite(a.Path)
	if err != nil {
		return tool.Preview{}, err
	}
	title := "write " + t.name
	switch {
	case !t.exists:
		title += " (new file)"
	case string(t.old) == a.Content:
		title += " (no change)"
	}
	return tool.Preview{Title: title, Dir: w.dir, Body: Diff(t.name, string(t.old), a.Content)}, nil
}

func (w *Workspace) runWrite(ctx context.Context, _ tool.Call, a writeArgs) (tool.Result, error) {
	if len(a.Content) > MaxFile {
		return tool.Result{}, tooLarge(a.Path, int64(len(a.Content)))
	}
	t, err := w.overwrite(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	verb := "created"
	if t.exists {
		verb = "replaced"
	}
	digest, err := w.save(ctx, t, a.Content)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	text := fmt.Sprintf("%s %s: %s", verb, t.name, size(a.Content))
	if ends, crlf := lineEnds(string(t.old)); ends > 0 && ends == crlf && !strings.Contains(a.Content, "\r\n") {
		text += "; its line ends were CRLF and are LF now"
	}
	if bytes.HasPrefix(t.old, []byte(utf8BOM)) && !strings.HasPrefix(a.Content, utf8BOM) {
		text += "; its byte order mark is gone"
	}
	res := tool.Text(text)
	res.Meta = meta(t.name, digest)
	return res, nil
}

// save gives a target its new content and learns it.
func (w *Workspace) save(ctx context.Context, t target, content string) (digest string, err error) {
	if dir := path.Dir(t.name); dir != "." && !t.exists {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := w.swap(t, content); err != nil {
		return "", err
	}
	digest = digestOf([]byte(content))
	w.learn(t.name, digest)
	return digest, nil
}

// swap writes a file beside the target and renames it over the target, so that
// a crash leaves the old or the new content, never a part.
func (w *Workspace) swap(t target, content string) error {
	// Short enough for every file system, whatever the target's name.
	tmp := path.Join(path.Dir(t.name), ".outcrop-"+strings.ToLower(rand.Text()[:16])+".tmp")
	err := w.put(tmp, t.mode, t.exists, content)
	if err == nil {
		err = w.root.Rename(tmp, t.name)
	}
	if err != nil {
		if rerr := w.root.Remove(tmp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		return err
	}
	return w.syncDir(path.Dir(t.name))
}

// syncDir makes the names in a directory durable, where the file system can do
// it.
func (w *Workspace) syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := w.root.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a directory that may be written, not read
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// put makes and syncs one file. exact gives it just mode, whatever the umask
// takes from new files.
func (w *Workspace) put(name string, mode fs.FileMode, exact bool, content string) error {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil && exact {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
