package workspace

import (
	"context"
	"runtime"
	"strings"
	"time"
)

// RuntimeName is the name of the context that Facts make.
const RuntimeName = "runtime"

// Facts are what the model is told about where and when it works. They are
// sampled at the start of a turn and hold nothing that changes at each step, so
// that the beginning of the request stays the same and stays cached.
type Facts struct {
	Dir      string // the working directory
	Day      string // "2026-03-01", local time
	Platform string // "linux/amd64"
	Branch   string // git branch, or the commit when detached; "" outside a repository
	Dirty    Tri    // whether tracked files differ from the last commit
}

// Tri is yes, no or not known.
type Tri int

const (
	Unknown Tri = iota
	No
	Yes
)

// Sample looks at a directory. now is the time that gives the day. A fact that
// cannot be found is left out; it never fails.
func Sample(ctx context.Context, dir string, now time.Time) Facts {
	f := Facts{Dir: dir, Day: now.Format(time.DateOnly), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	head, ok := gitHead(dir)
	if !ok {
		return f
	}
	f.Branch = head
	f.Dirty = gitDirty(ctx, dir)
	return f
}

// Context is the facts as the context that is sent.
func (f Facts) Context() Context {
	var b strings.Builder
	b.WriteString("Facts about the environment:\n")
	b.WriteString("- working directory: " + oneLine(f.Dir) + "\n")
	b.WriteString("- date: " + f.Day + "\n")
	b.WriteString("- platform: " + f.Platform)
	if f.Branch != "" {
		b.WriteString("\n- git: on " + f.Branch)
		switch f.Dirty {
		case Yes:
			b.WriteString(", with uncommitted changes")
		case No:
			b.WriteString(", clean")
		}
	}
	return Context{Name: RuntimeName, Text: b.String()}
}

// oneLine keeps a name from breaking out of its line, or turning it around.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, s)
}
