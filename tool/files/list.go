package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

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
	root, name, err := w.place(a.Path, true)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	info, err := root.Stat(name)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	if !info.IsDir() {
		return tool.Result{}, &tool.Error{Name: "FileError", Code: "NOT_A_DIRECTORY", Msg: a.Path + " is not a directory; read shows a file"}
	}
	dir, err := root.Open(name)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	defer dir.Close()
	var entries []fs.DirEntry
	cut := false
	for {
		if err := ctx.Err(); err != nil {
			return tool.Result{}, err
		}
		more, err := dir.ReadDir(1000)
		entries = append(entries, more...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return tool.Result{}, told(a.Path, err)
		}
		if cut = len(entries) >= maxScan; cut {
			break
		}
	}
	if len(entries) == 0 {
		return tool.Text("(empty directory)"), nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
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
			if info, err := root.Lstat(path.Join(name, e.Name())); err == nil {
				fmt.Fprintf(&b, "  %d", info.Size())
			}
		}
		b.WriteByte('\n')
	}
	return tool.Text(b.String()), nil
}

// shown is a file name on one line: control characters as escapes.
func shown(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f }) < 0 {
		return name
	}
	return fmt.Sprintf("%q", name)
}
