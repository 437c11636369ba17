package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/tool"
)

// MaxEntries is how many entries list shows at most.
const MaxEntries = 1000

// maxScan is how many entries of one directory are read at most, so that a
// directory of any size takes bounded memory and time.
const maxScan = 100_000

type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace; default the workspace itself"`
}

func (w *Workspace) list() (tool.Tool, error) {
	return tool.Define(tool.Spec[listArgs]{
		Name: "list",
		Description: "List a directory of the workspace, sorted by name. Directories end in a slash, links in an @; " +
			"files are followed by their size in bytes.",
		Class:    tool.Read,
		Parallel: true,
		Run:      w.runList,
	})
}

func (w *Workspace) runList(ctx context.Context, _ tool.Call, a listArgs) (tool.Result, error) {
	if a.Path == "" {
		a.Path = "."
	}
	s, err := w.place(a.Path, true)
	if err != nil {
		return tool.Result{}, err
	}
	dir, err := openDir(s.root, s.name, a.Path)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	defer dir.Close()
	entries, cut, err := entriesOf(ctx, dir)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	if len(entries) == 0 {
		return tool.Text("(empty directory)"), nil
	}
	var b strings.Builder
	for i, e := range entries {
		if i == MaxEntries {
			more := fmt.Sprintf("%d", len(entries)-i)
			if cut {
				more = "more than " + more
			}
			fmt.Fprintf(&b, "[%s more entries]\n", more)
			break
		}
		b.WriteString(shown(e.Name()))
		switch {
		case e.IsDir():
			b.WriteByte('/')
		case e.Type()&fs.ModeSymlink != 0:
			b.WriteByte('@')
		case e.Type().IsRegular():
			if info, err := s.root.Lstat(path.Join(s.name, e.Name())); err == nil {
				fmt.Fprintf(&b, "  %d", info.Size())
			}
		}
		b.WriteByte('\n')
	}
	return tool.Text(b.String()), nil
}

// openDir opens a directory and nothing else. name is what errors call it.
func openDir(root *os.Root, at, name string) (*os.File, error) {
	info, err := root.Stat(at)
	if err == nil && !info.IsDir() {
		err = refused("NOT_A_DIRECTORY", "%s is not a directory; read shows a file", name)
	}
	if err != nil {
		return nil, err
	}
	return root.OpenFile(at, os.O_RDONLY|nonblock, 0)
}

// entriesOf reads a directory, sorted by name. cut tells that there are more
// than maxScan entries; then not all are there.
func entriesOf(ctx context.Context, dir *os.File) (entries []fs.DirEntry, cut bool, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		more, err := dir.ReadDir(1000)
		entries = append(entries, more...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		if cut = len(entries) >= maxScan; cut {
			break
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, cut, nil
}

// shown is a file name on one line: what cannot be shown as escapes.
func shown(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(name) {
		return name
	}
	return fmt.Sprintf("%q", name)
}
