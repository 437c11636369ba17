package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/outcrop-dev/outcrop/tool"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace; missing directories are made"`
	Content string `json:"content" jsonschema:"the complete new content of the file"`
}

func (w *Workspace) write() (tool.Tool, error) {
	return tool.Define(tool.Spec[writeArgs]{
		Name: "write",
		Description: "Create a file of the workspace or replace its whole content. Read an existing file first: " +
			"a file that changed since it was last read is refused.",
		Class:   tool.Edit,
		Run:     w.runWrite,
		Preview: w.previewWrite,
	})
}

// target is the file that a write would replace, as it is now.
type target struct {
	name   string
	old    []byte
	exists bool
	link   bool
	mode   fs.FileMode
}

// look checks that a write may go on: a regular file that is still as the
// model knows it, or nothing yet.
func (w *Workspace) look(given string) (target, error) {
	root, name, err := w.place(given, false)
	if err != nil {
		return target{}, told(given, err)
	}
	if name == "." {
		return target{}, &tool.Error{Name: "FileError", Code: "IS_A_DIRECTORY", Msg: given + " is a directory"}
	}
	t := target{name: name, mode: 0o644}
	lst, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, ok := w.knows(name); ok {
			return t, changed(given, "it was removed")
		}
		return t, nil
	}
	if err != nil {
		return t, told(given, err)
	}
	t.link = lst.Mode()&fs.ModeSymlink != 0
	old, info, err := load(root, name)
	if err != nil {
		return t, told(given, err)
	}
	t.old, t.exists, t.mode = old, true, info.Mode().Perm()
	if digest, ok := w.knows(name); ok && digest != digestOf(old) {
		return t, changed(given, "it is different now")
	}
	return t, nil
}

func changed(name, how string) error {
	return &tool.Error{Name: "FileError", Code: "CHANGED_ON_DISK",
		Msg: fmt.Sprintf("%s changed since it was last read (%s); read it again before writing", name, how)}
}

func (w *Workspace) previewWrite(_ context.Context, _ tool.Call, a writeArgs) (tool.Preview, error) {
	t, err := w.look(a.Path)
	if err != nil {
		return tool.Preview{}, err
	}
	title := "write " + t.name
	if !t.exists {
		title += " (new file)"
	}
	return tool.Preview{Title: title, Dir: w.dir, Body: Diff(t.name, string(t.old), a.Content)}, nil
}

func (w *Workspace) runWrite(ctx context.Context, _ tool.Call, a writeArgs) (tool.Result, error) {
	if len(a.Content) > MaxFile {
		return tool.Result{}, tooLarge(a.Path, int64(len(a.Content)))
	}
	t, err := w.look(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	if dir := path.Dir(t.name); dir != "." && !t.exists {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return tool.Result{}, told(a.Path, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	if t.link {
		// The link stays a link: its target is written in place.
		err = w.put(t.name, os.O_WRONLY|os.O_TRUNC, t.mode, false, a.Content)
	} else {
		err = w.swap(t, a.Content)
	}
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	digest := digestOf([]byte(a.Content))
	w.learn(t.name, digest)
	verb := "created"
	if t.exists {
		verb = "replaced"
	}
	n := strings.Count(a.Content, "\n")
	if a.Content != "" && !strings.HasSuffix(a.Content, "\n") {
		n++
	}
	res := tool.Text(fmt.Sprintf("%s %s: %d bytes, %d lines", verb, t.name, len(a.Content), n))
	res.Meta = meta(t.name, digest)
	return res, nil
}

// swap writes a file beside the target and renames it over the target, so that
// a crash leaves the old or the new content, never a part.
func (w *Workspace) swap(t target, content string) error {
	tmp := path.Join(path.Dir(t.name), "."+path.Base(t.name)+"."+strings.ToLower(rand.Text()[:12])+".tmp")
	err := w.put(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, t.mode, t.exists, content)
	if err == nil {
		err = w.root.Rename(tmp, t.name)
	}
	if err != nil {
		if rerr := w.root.Remove(tmp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// put writes and syncs one file. exact gives it just mode, whatever the umask
// takes from new files.
func (w *Workspace) put(name string, flag int, mode fs.FileMode, exact bool, content string) error {
	f, err := w.root.OpenFile(name, flag, mode)
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
