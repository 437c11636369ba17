package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/outcrop-dev/outcrop/tool/files/ignore"
)

// maxWalk is how many names one call looks at, maxDepth how deep it goes.
const (
	maxWalk  = 1_000_000
	maxDepth = 200
)

// walker goes through the regular files and links below a directory, in the
// order of their names. It follows no links and leaves out .git, and what
// .gitignore files exclude unless all is set. A directory that cannot be read
// is counted and passed over.
type walker struct {
	root *os.Root
	all  bool
	// visit gets a path from the root's top and whether it is a link. Its
	// error ends the walk.
	visit func(name string, link bool) error

	seen     int
	unread   int  // directories that could not be read
	cutShort bool // there is more than is looked at
}

// walk goes through what is below dir, a name without links.
func (w *walker) walk(ctx context.Context, dir string) error {
	var rules *ignore.Stack
	if !w.all && dir != "." {
		// The directories above have their say about what is in dir, not
		// about dir itself: it was asked for.
		above := "."
		for _, part := range strings.Split(dir, "/") {
			rules = rules.Push(above, w.rules(above))
			above = path.Join(above, part)
		}
	}
	return w.below(ctx, dir, rules, 0)
}

func (w *walker) below(ctx context.Context, dir string, rules *ignore.Stack, depth int) error {
	f, err := openDir(w.root, dir, dir)
	if err != nil {
		if depth == 0 {
			return err
		}
		w.unread++
		return nil
	}
	entries, cut, err := entriesOf(ctx, f)
	f.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.unread++
		return nil
	}
	// Counted when they are in memory, not when their turn comes.
	if w.seen += len(entries); w.seen > maxWalk {
		w.cutShort = true
		return nil
	}
	if cut {
		w.cutShort = true
	}
	if !w.all {
		for _, e := range entries {
			if e.Name() == ".gitignore" && e.Type().IsRegular() {
				rules = rules.Push(dir, w.rules(dir))
			}
		}
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		name := path.Join(dir, e.Name())
		if rules.Excluded(name, e.IsDir()) {
			continue
		}
		switch {
		case e.IsDir() && depth == maxDepth:
			w.cutShort = true
		case e.IsDir():
			err = w.below(ctx, name, rules, depth+1)
		case e.Type().IsRegular():
			err = w.visit(name, false)
		case e.Type()&fs.ModeSymlink != 0:
			err = w.visit(name, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rules reads the .gitignore of a directory; none when it cannot be read.
func (w *walker) rules(dir string) ignore.Rules {
	name := path.Join(dir, ".gitignore")
	if info, err := w.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return ignore.Rules{}
	}
	f, _, err := openFile(w.root, name, name)
	if err != nil {
		return ignore.Rules{}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, ignore.MaxFile+1))
	if err != nil {
		return ignore.Rules{}
	}
	return ignore.Parse(b)
}

// notes says in brackets what the walk did not see.
func (w *walker) notes(b *strings.Builder) {
	if w.cutShort {
		fmt.Fprintf(b, "[not everything was looked at: too many names, or too deep; choose a smaller path]\n")
	}
	if w.unread > 0 {
		fmt.Fprintf(b, "[%d directories could not be read]\n", w.unread)
	}
}
