package files

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/tool"
)

// guardedNames are folders whose files steer programs: git runs what its hooks
// and its configuration name, and ours says how this program works.
var guardedNames = [...]string{".git", ".outcrop"}

// changer is a tool that changes files. A call that changes one in a guarded
// folder counts as one that runs something.
type changer struct {
	changerTool
	w *Workspace
}

type changerTool interface {
	tool.Tool
	tool.Previewer
}

// changes makes a changer of a tool that was made with a preview.
func (w *Workspace) changes(t tool.Tool, err error) (tool.Tool, error) {
	if err != nil {
		return nil, err
	}
	p, ok := t.(changerTool)
	if !ok {
		return nil, fmt.Errorf("tool %s has no preview", t.Name())
	}
	return changer{p, w}, nil
}

// ClassOf implements tool.Classifier.
func (c changer) ClassOf(call tool.Call) tool.Class {
	var a struct {
		Path string `json:"path"`
	}
	if err := jsonwire.Unmarshal(call.Arguments, &a); err != nil || c.w.guarded(a.Path) {
		return tool.Exec
	}
	return c.Class()
}

// guarded reports whether a path leads to a guarded folder, as it is written or
// behind its links. One that leads nowhere is guarded as well.
func (w *Workspace) guarded(given string) bool {
	name := filepath.ToSlash(given)
	if filepath.IsAbs(given) {
		rel, ok := below(w.dir, given)
		if !ok {
			return true
		}
		name = rel
	}
	s, err := w.place(given, false)
	return err != nil || guardedName(path.Clean(name)) || guardedName(s.name)
}

// guardedName reports whether a part of a name is a guarded folder's. Some file
// systems do not tell upper from lower case, and drop dots and blanks at the end
// and what follows a colon; a repository may lie inside another.
func guardedName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		part, _, _ = strings.Cut(part, ":")
		part = strings.TrimRight(part, ". ")
		for _, g := range guardedNames {
			if strings.EqualFold(part, g) {
				return true
			}
		}
	}
	return false
}
