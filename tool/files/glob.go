package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/tool"
)

const (
	// MaxFound is how many files glob names at most.
	MaxFound = 1000
	// maxKept is how many it keeps to sort them.
	maxKept = 100_000
)

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"for example *.go, src/**/*.{ts,tsx} or /*.md; without a slash it matches names in every directory"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to look below, relative to the workspace; default the workspace"`
	Newest  bool   `json:"newest,omitempty" jsonschema:"sort by time of change, newest first; default by name"`
	Ignored bool   `json:"ignored,omitempty" jsonschema:"also files that .gitignore excludes"`
}

func (w *Workspace) glob() (tool.Tool, error) {
	return tool.Define(tool.Spec[globArgs]{
		Name: "glob",
		Description: fmt.Sprintf("Find files by a pattern for their path: * and ? stop at a slash, ** takes any directories. "+
			"Sorted by name, at most %d. .git and what .gitignore files exclude are left out; links are named, not followed.", MaxFound),
		Class:    tool.Read,
		Parallel: true,
		Run:      w.runGlob,
	})
}

func (w *Workspace) runGlob(ctx context.Context, _ tool.Call, a globArgs) (tool.Result, error) {
	if a.Path == "" {
		a.Path = "."
	}
	s, err := w.place(a.Path, true)
	if err != nil {
		return tool.Result{}, err
	}
	pattern, err := parsePattern(a.Pattern, w.dir)
	if err != nil {
		return tool.Result{}, err
	}
	type file struct {
		name string
		time time.Time
	}
	var found []file
	wk := &walker{root: s.root, all: a.Ignored, visit: func(name string, _ bool) error {
		if !pattern.match(inside(s.name, name)) {
			return nil
		}
		f := file{name: name}
		if a.Newest {
			info, err := s.root.Lstat(name)
			if err != nil {
				return nil // gone meanwhile
			}
			f.time = info.ModTime()
		}
		if len(found) == maxKept {
			return errEnough
		}
		found = append(found, f)
		return nil
	}}
	err = wk.walk(ctx, s.name)
	full := errors.Is(err, errEnough)
	if err != nil && !full {
		return tool.Result{}, told(a.Path, err)
	}
	slices.SortFunc(found, func(a, b file) int {
		return cmp.Or(b.time.Compare(a.time), cmp.Compare(a.name, b.name))
	})
	var b strings.Builder
	for i, f := range found {
		if i == MaxFound {
			more := ""
			if full {
				more = "more than "
			}
			fmt.Fprintf(&b, "[%s%d more files match; choose a narrower pattern or path]\n", more, len(found)-i)
			break
		}
		b.WriteString(shown(s.shown(f.name)))
		b.WriteByte('\n')
	}
	if len(found) == 0 {
		b.WriteString("(no file matches)\n")
	}
	wk.notes(&b)
	return tool.Text(b.String()), nil
}

// inside is the path of name seen from the directory dir.
func inside(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}
