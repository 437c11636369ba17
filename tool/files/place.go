package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop/tool"
)

// spot is where a path leads: a root and the name in it, slash-separated,
// without links and dots. What does not exist yet has a spot as well.
type spot struct {
	root  *os.Root
	name  string
	given string // as the model wrote it
	dir   string // the root's absolute path, "" for the workspace
}

// shown is how the model is told of a name in the spot's root, so that it can
// give it back.
func (s spot) shown(name string) string {
	if s.dir == "" {
		return name
	}
	return filepath.Join(s.dir, filepath.FromSlash(name))
}

// place finds the spot of a path that a model gave. An absolute path must lie
// in the workspace or, for reading, in one of the folders readable besides.
func (w *Workspace) place(given string, readOnly bool) (spot, error) {
	if given == "" {
		return spot{}, tool.InvalidArgs("path is empty")
	}
	if strings.IndexByte(given, 0) >= 0 {
		return spot{}, tool.InvalidArgs("path holds a NUL character")
	}
	s := spot{root: w.root, name: filepath.ToSlash(given), given: given}
	dir := w.dir
	if filepath.IsAbs(given) {
		rel, ok := below(w.dir, given)
		if !ok {
			i := -1
			if readOnly {
				i, rel = w.readable(given)
			}
			if i < 0 {
				return spot{}, outside(given)
			}
			root, err := w.open(i)
			if err != nil {
				return spot{}, told(given, err)
			}
			dir = w.extra[i].dir
			s.root, s.dir = root, dir
		}
		s.name = rel
	}
	name, err := follow(s.root, dir, s.name)
	if err != nil {
		return spot{}, told(given, err)
	}
	s.name = name
	return s, nil
}

// readable is the index of the folder that holds an absolute path, -1 when
// none does, and the path in it.
func (w *Workspace) readable(name string) (int, string) {
	for i := range w.extra {
		if rel, ok := below(w.extra[i].dir, name); ok {
			return i, rel
		}
	}
	return -1, ""
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

// maxHops is how many links one path may go through.
const maxHops = 40

// follow resolves the links of a name below a root, as far as it exists. What
// a link is replaced by in the meantime does no harm: the root is asked again
// when the result is opened, and does not let it lead out.
func follow(root *os.Root, dir, name string) (string, error) {
	rest := strings.Split(name, "/")
	done, link, hops := "", "", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if done == "" {
				return "", leadsOut(name, link)
			}
			if done = path.Dir(done); done == "." {
				done = ""
			}
			continue
		}
		next := path.Join(done, part)
		info, err := root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// The rest cannot hold links.
			next = path.Join(append([]string{next}, rest...)...)
			if next == ".." || strings.HasPrefix(next, "../") {
				return "", leadsOut(name, link)
			}
			return next, nil
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			done = next
			continue
		}
		if hops++; hops > maxHops {
			return "", &tool.Error{Name: "FileError", Code: "LINK_LOOP", Msg: fmt.Sprintf("%s goes through more than %d links", name, maxHops)}
		}
		link = next
		target, err := root.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			rel, ok := below(dir, target)
			if !ok {
				return "", leadsOut(name, link)
			}
			done, target = "", rel
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	if done == "" {
		done = "."
	}
	return done, nil
}

func leadsOut(name, link string) error {
	if link == "" {
		return outside(name)
	}
	return &tool.Error{Name: "FileError", Code: "OUTSIDE_WORKSPACE",
		Msg: fmt.Sprintf("%s: the link %s leads outside the workspace; only files inside it can be used", name, link)}
}
