package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// file is an instruction file as it was last read.
type file struct {
	info   fs.FileInfo
	fresh  bool // it was written so shortly before the reading that its time proves nothing
	digest string
	text   string // at most MaxBytes of it, cleaned; "" when there is none
	size   int64  // of the whole file
}

// errNone: there is no such instruction file.
var errNone = errors.New("no instruction file")

// settled is how old a file must be for its time and size to prove that it is
// the same: shorter changes may leave both as they are.
const settled = 2 * time.Second

// gathering is one pass over all files.
type gathering struct {
	in      *Instructions
	left    int // bytes
	out     []Context
	wanted  map[string]bool
	unknown map[string]bool // names whose file cannot be read at the moment
	infos   []fs.FileInfo
}

// collect looks at every place.
func (in *Instructions) collect(ctx context.Context) ([]Context, error) {
	g := &gathering{in: in, left: in.o.MaxTotal, wanted: map[string]bool{}, unknown: map[string]bool{}}
	if in.o.Config != "" {
		if root, err := os.OpenRoot(in.o.Config); err == nil {
			g.folder(root, ".", in.own(), []string{"AGENTS.md"}, func(title string) string {
				return "The person's own instructions, from the file " + title + "; they hold for all work."
			})
			root.Close()
		} else if !absent(err) {
			g.unknown[instructionPrefix+clean(in.own()+"/AGENTS.md")] = true
		}
	}
	root, err := os.OpenRoot(in.top)
	if err != nil {
		in.warn("the workspace cannot be opened to look for instructions", in.top, err)
		return g.out, nil
	}
	defer root.Close()
	prefix := in.above[len(in.above)-1]
	for i, dir := range in.above {
		shown := strings.TrimSuffix(strings.Repeat("../", len(in.above)-1-i), "/")
		g.folder(root, dir, shown, in.o.Names, func(title string) string {
			return "The project's instructions, from the file " + title + "; they hold for all work here."
		})
	}
	for _, dir := range in.named {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		g.folder(root, path.Join(prefix, dir), dir, in.o.Names, func(title string) string {
			return "The project's instructions for the folder " + clean(dir) + ", from the file " + title + "; they hold for work in it, beside those for all work."
		})
	}
	for _, name := range in.told {
		if !g.wanted[name] && !g.unknown[name] {
			g.out = append(g.out, Context{Name: name, Gone: true,
				Text: "The instructions from the file " + strings.TrimPrefix(name, instructionPrefix) + " do not hold any more."})
		}
	}
	return g.out, nil
}

// own is how the folder of the person's own instructions is shown.
func (in *Instructions) own() string {
	if rel, err := filepath.Rel(in.o.Home, in.o.Config); in.o.Home != "" && err == nil && filepath.IsLocal(rel) {
		return "~/" + filepath.ToSlash(rel)
	}
	return filepath.ToSlash(in.o.Config)
}

// folder takes the instruction files of one folder. dir is its path in root,
// shown how it is named to the model.
func (g *gathering) folder(root *os.Root, dir, shown string, names []string, heading func(title string) string) {
	var texts []string // of this folder
	for _, base := range names {
		title := clean(path.Join(shown, base))
		name := instructionPrefix + title
		if g.wanted[name] || g.unknown[name] {
			continue // an odd name that looks like another one
		}
		f, err := g.in.read(root, path.Join(dir, base))
		switch {
		case errors.Is(err, errNone):
			continue
		case err != nil:
			g.unknown[name] = true
			g.in.warn("an instruction file cannot be read", title, err)
			continue
		}
		if g.again(f, texts) {
			continue
		}
		if len(g.infos) >= g.in.o.MaxFiles {
			g.unknown[name] = true
			g.in.warn("there are too many instruction files", title, nil)
			continue
		}
		texts = append(texts, f.text)
		g.infos = append(g.infos, f.info)
		g.wanted[name] = true
		g.out = append(g.out, Context{Name: name, Digest: f.digest, Text: heading(title) + "\n\n" + g.take(f, title)})
	}
}

// again reports a file that was taken already.
func (g *gathering) again(f *file, texts []string) bool {
	for _, fi := range g.infos {
		if os.SameFile(fi, f.info) {
			return true
		}
	}
	for _, t := range texts {
		if strings.TrimSpace(t) == strings.TrimSpace(f.text) {
			return true
		}
	}
	return false
}

// take is as much of a file as the limits leave.
func (g *gathering) take(f *file, title string) string {
	text := f.text
	if len(text) > g.left {
		text = cut(text, g.left)
	}
	g.left -= len(text)
	switch {
	case text == "":
		return fmt.Sprintf("[left out: there are too many instructions; read %s when you work there]", title)
	case len(text) < len(f.text) || f.size > int64(g.in.o.MaxBytes):
		return text + fmt.Sprintf("\n[cut here: the file has %d bytes; read %s for the rest]", f.size, title)
	}
	return text
}

// read reads a file of root, unless it is known and the same.
func (in *Instructions) read(root *os.Root, name string) (*file, error) {
	key := root.Name() + "\x00" + name
	fi, err := root.Stat(name)
	if err != nil {
		if absent(err) || !errors.Is(err, fs.ErrPermission) && escapes(root, name) {
			delete(in.cache, key)
			return nil, errNone
		}
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		delete(in.cache, key)
		return nil, errNone
	}
	f := in.cache[key]
	if f == nil || f.fresh || !os.SameFile(f.info, fi) || f.info.Size() != fi.Size() || !f.info.ModTime().Equal(fi.ModTime()) {
		if f, err = in.load(root, name); err != nil {
			return nil, err
		}
		in.cache[key] = f
	}
	if strings.TrimSpace(f.text) == "" {
		return nil, errNone
	}
	return f, nil
}

// maxSource is the largest file that is read, in bytes: its digest is of all of
// it.
const maxSource = 16 << 20

// load reads a file.
func (in *Instructions) load(root *os.Root, name string) (*file, error) {
	// What is no regular file any more must not be waited for.
	r, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errNone
	}
	if fi.Size() > maxSource {
		return nil, fmt.Errorf("%d bytes are no instructions", fi.Size())
	}
	b, err := io.ReadAll(io.LimitReader(r, maxSource))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	f := &file{info: fi, digest: "sha256:" + hex.EncodeToString(sum[:]), size: int64(len(b)),
		fresh: in.o.Now().Sub(fi.ModTime()) < settled}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if bytes.IndexByte(b[:min(len(b), 8<<10)], 0) >= 0 {
		in.warn("an instruction file is no text", name, nil)
		return f, nil
	}
	if len(b) > in.o.MaxBytes {
		b = b[:len(cut(string(b[:in.o.MaxBytes+1]), in.o.MaxBytes))]
	}
	f.text = strings.TrimRight(strings.ReplaceAll(strings.ToValidUTF8(strings.ReplaceAll(string(b), "\x00", ""), "\ufffd"), "\r\n", "\n"), " \t\r\n")
	return f, nil
}

// cut is the start of a text, at most n bytes, without a part of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// clean is a path that can stand in a line of text.
func clean(p string) string { return oneLine(strings.ToValidUTF8(p, "\ufffd")) }

// absent reports that a path leads to nothing.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// escapes reports a name that leads out of root by a link: it is there and
// cannot be followed.
func escapes(root *os.Root, name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if fi, err := root.Lstat(at); err == nil {
			return fi.Mode()&fs.ModeSymlink != 0
		}
	}
	return false
}
