package workspace

import (
	"context"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
)

// InstructionOptions say where instruction files are looked for. Dir is needed.
type InstructionOptions struct {
	// Dir is the workspace.
	Dir string
	// Home is the home directory, "" for none: nothing above it is looked at,
	// and Config lies in it.
	Home string
	// Config is the folder of the person's own instructions. Empty:
	// .config/outcrop in Home, none without Home.
	Config string
	// Names are the names of the files, best first. Empty: AGENTS.md, CLAUDE.md.
	// What is no plain file name is passed over.
	Names []string
	// MaxBytes is how much of one file is taken, in bytes; default 32 KiB.
	MaxBytes int
	// MaxTotal is how much of all files is taken, in bytes; default 128 KiB.
	MaxTotal int
	// MaxFiles is how many files are taken; default 32.
	MaxFiles int
	// Now is the clock that file times are compared with. Nil: the system's.
	Now    func() time.Time
	Logger *slog.Logger
}

// Instructions are the files that people leave for agents: AGENTS.md, CLAUDE.md.
// One context is made of each:
//
//	name                                  file
//	instructions:~/.config/outcrop/A…     the person's own, AGENTS.md alone, for every workspace
//	instructions:../../AGENTS.md          from the top of the git repository …
//	instructions:AGENTS.md                … down to the workspace
//	instructions:sub/AGENTS.md            below it, once a tool named a path in sub
//
// and they come in that order, those below in the order in which their folders
// were first named. Only in a repository anything above the workspace is read,
// and never above Home, nor through a folder that everybody may write to: what a
// stranger may have put there does not speak for this work. Below the workspace
// .git, node_modules and vendor are left out, for the same reason.
//
// All names count in each folder. A file that is another one under a second name,
// and one with the same text as an earlier one in its folder, count once. A file
// without text, a folder or a pipe of that name, and a link that leads out of the
// repository (out of the workspace where there is none) are as good as none.
// Nothing that a file refers to is read.
//
// What is in force is kept in the log alone: an unchanged file is not told again,
// a changed one is told anew, and of one that is gone it is said once that it
// does not hold any more. A file that cannot be read at the moment is neither
// changed nor gone. All methods may be called from any goroutine.
type Instructions struct {
	o      InstructionOptions
	logger *slog.Logger

	mu     sync.Mutex
	placed bool
	top    string   // the folder that is opened as root: above everything
	dir    string   // the workspace, links resolved
	above  []string // folders from top to dir, relative to top
	next   outcrop.Seq
	named  []string // folders below the workspace that a tool named, in order
	isIn   map[string]bool
	told   []string // names of contexts that the log has, in order
	isTold map[string]bool
	cache  map[string]*file
	warned map[string]bool
}

// prefix begins the names of these contexts.
const instructionPrefix = "instructions:"

// maxNamed is how many folders below the workspace are remembered.
const maxNamed = 256

// NewInstructions looks at nothing yet.
func NewInstructions(o InstructionOptions) *Instructions {
	if len(o.Names) == 0 {
		o.Names = []string{"AGENTS.md", "CLAUDE.md"}
	}
	o.Names = slices.DeleteFunc(slices.Clone(o.Names), func(n string) bool {
		return n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\\\x00") || !filepath.IsLocal(n)
	})
	if o.Config == "" && o.Home != "" {
		o.Config = filepath.Join(o.Home, ".config", "outcrop")
	}
	for _, d := range [...]struct {
		n     *int
		usual int
	}{{&o.MaxBytes, 32 << 10}, {&o.MaxTotal, 128 << 10}, {&o.MaxFiles, 32}} {
		if *d.n <= 0 {
			*d.n = d.usual
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	in := &Instructions{o: o, logger: o.Logger, cache: map[string]*file{}, warned: map[string]bool{}}
	if in.logger == nil {
		in.logger = slog.New(slog.DiscardHandler)
	}
	in.forget()
	return in
}

// forget drops what was learnt from a log.
func (in *Instructions) forget() {
	in.next, in.named, in.told = 0, nil, nil
	in.isIn, in.isTold = map[string]bool{}, map[string]bool{}
}

// Contexts returns what should be in force now, and what holds no more. Of the
// log it reads the events that came since the last call; of the files only those
// that changed. An error is one of ctx, or the workspace cannot be opened.
func (in *Instructions) Contexts(ctx context.Context, log outcrop.Log) ([]Context, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := in.place(); err != nil {
		in.warn("the workspace cannot be opened to look for instructions", in.o.Dir, err)
		return nil, nil
	}
	in.learn(log)
	return in.collect(ctx)
}

// place finds the folders from the top of the repository to the workspace.
func (in *Instructions) place() error {
	if in.placed {
		return nil
	}
	abs, err := filepath.Abs(in.o.Dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return err
	}
	home := in.o.Home
	if h, err := filepath.EvalSymlinks(home); err == nil {
		home = h
	}
	in.dir, in.top = abs, repository(abs, home)
	in.above = []string{"."}
	if rel, err := filepath.Rel(in.top, in.dir); err == nil && rel != "." {
		at := ""
		for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
			at = path.Join(at, part)
			in.above = append(in.above, at)
		}
	}
	in.placed = true
	return nil
}

// repository is the nearest folder at or above dir that holds .git, else dir.
// home ends the search, and so does a folder that everybody may write to.
func repository(dir, home string) string {
	for at := dir; ; {
		if at != dir && open(at) {
			return dir
		}
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		up := filepath.Dir(at)
		if up == at || at == home {
			return dir
		}
		at = up
	}
}

// open reports a folder that everybody may write to.
func open(dir string) bool {
	fi, err := os.Stat(dir)
	return err != nil || runtime.GOOS != "windows" && fi.Mode().Perm()&0o002 != 0
}

// warn tells a problem once.
func (in *Instructions) warn(msg, path string, err error) {
	key := msg + "\x00" + path
	if in.warned[key] || len(in.warned) > maxNamed {
		return
	}
	in.warned[key] = true
	if err == nil {
		in.logger.Warn(msg, "path", path)
		return
	}
	in.logger.Warn(msg, "path", path, "err", err)
}
