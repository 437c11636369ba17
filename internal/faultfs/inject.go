package faultfs

import (
	"io/fs"
)

// Kind is a kind of call.
type Kind string

// The calls that can go wrong. Reading in an open file is none of them.
const (
	OpOpen     Kind = "open"
	OpMkdir    Kind = "mkdir"
	OpRemove   Kind = "remove"
	OpRename   Kind = "rename"
	OpLink     Kind = "link"
	OpStat     Kind = "stat"
	OpReadDir  Kind = "readdir"
	OpSyncDir  Kind = "syncdir"
	OpLock     Kind = "lock"
	OpWrite    Kind = "write"
	OpTruncate Kind = "truncate"
	OpSync     Kind = "sync"
)

// Op is a call that is about to be made.
type Op struct {
	Kind Kind
	Path string
	To   string // the new name of a rename or a link
	Data []byte // what is written
	Flag int    // of open and lock
}

// Fault is what becomes of a call. The zero value lets it happen.
type Fault struct {
	// Err is the answer; nothing is done, except what Part says.
	Err error
	// Part is how many bytes of a write that fails or is short are written.
	Part int
	// Short makes a write write Part bytes and say so without an error.
	Short bool
	// Lie answers nil, and nothing is done: a sync that does not sync.
	Lie bool
	// Instead is what a write writes in the place of its bytes, and does not
	// say.
	Instead []byte
}

// Inject asks decide before each call what becomes of it.
func Inject(f FS, decide func(Op) Fault) FS { return &injected{f, decide} }

// Rule makes some calls of one kind go wrong.
type Rule struct {
	Kind  Kind
	Match func(Op) bool // nil: every call of that kind
	Skip  int           // so many of them are let through first
	Times int           // then so many go wrong; 0: all
	Fault Fault

	seen int
}

// ByRule is the first rule's fault that fits a call, for Inject. The rules count
// calls, so that each is for one file system, whose calls come one by one.
func ByRule(rules ...*Rule) func(Op) Fault {
	return func(op Op) Fault {
		for _, r := range rules {
			if r.Kind != op.Kind || r.Match != nil && !r.Match(op) {
				continue
			}
			r.seen++
			if r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times) {
				return r.Fault
			}
		}
		return Fault{}
	}
}

type injected struct {
	FS
	decide func(Op) Fault
}

// stopped reports whether a call is not to be made, and its answer.
func (i *injected) stopped(op Op) (bool, error) {
	f := i.decide(op)
	if f.Err != nil {
		return true, &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: f.Err}
	}
	return f.Lie, nil
}

func (i *injected) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if stop, err := i.stopped(Op{Kind: OpOpen, Path: name, Flag: flag}); stop && err != nil {
		return nil, err
	}
	f, err := i.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &injectedFile{f, i}, nil
}

func (i *injected) Mkdir(name string, perm fs.FileMode) error {
	if stop, err := i.stopped(Op{Kind: OpMkdir, Path: name}); stop {
		return err
	}
	return i.FS.Mkdir(name, perm)
}

func (i *injected) Remove(name string) error {
	if stop, err := i.stopped(Op{Kind: OpRemove, Path: name}); stop {
		return err
	}
	return i.FS.Remove(name)
}

func (i *injected) Rename(from, to string) error {
	if stop, err := i.stopped(Op{Kind: OpRename, Path: from, To: to}); stop {
		return err
	}
	return i.FS.Rename(from, to)
}

func (i *injected) RenameNew(from, to string) error {
	if stop, err := i.stopped(Op{Kind: OpRename, Path: from, To: to}); stop {
		return err
	}
	return i.FS.RenameNew(from, to)
}

func (i *injected) Link(from, to string) error {
	if stop, err := i.stopped(Op{Kind: OpLink, Path: from, To: to}); stop {
		return err
	}
	return i.FS.Link(from, to)
}

func (i *injected) Stat(name string) (fs.FileInfo, error) {
	if stop, err := i.stopped(Op{Kind: OpStat, Path: name}); stop && err != nil {
		return nil, err
	}
	return i.FS.Stat(name)
}

func (i *injected) ReadDir(name string) ([]fs.DirEntry, error) {
	if stop, err := i.stopped(Op{Kind: OpReadDir, Path: name}); stop && err != nil {
		return nil, err
	}
	return i.FS.ReadDir(name)
}

func (i *injected) SyncDir(name string) error {
	if stop, err := i.stopped(Op{Kind: OpSyncDir, Path: name}); stop {
		return err
	}
	return i.FS.SyncDir(name)
}

func (i *injected) Lock(name string, flag int, shared bool) (Lock, error) {
	if stop, err := i.stopped(Op{Kind: OpLock, Path: name, Flag: flag}); stop && err != nil {
		return nil, err
	}
	return i.FS.Lock(name, flag, shared)
}

type injectedFile struct {
	File
	i *injected
}

func (f *injectedFile) Write(p []byte) (int, error) {
	return f.write(p, f.File.Write)
}

func (f *injectedFile) WriteAt(p []byte, off int64) (int, error) {
	return f.write(p, func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}

func (f *injectedFile) write(p []byte, write func([]byte) (int, error)) (int, error) {
	op := Op{Kind: OpWrite, Path: f.Name(), Data: p}
	switch d := f.i.decide(op); {
	case d.Err != nil:
		n := 0
		if d.Part > 0 {
			n, _ = write(p[:min(d.Part, len(p))])
		}
		return n, &fs.PathError{Op: string(OpWrite), Path: op.Path, Err: d.Err}
	case d.Short:
		return write(p[:min(d.Part, len(p))])
	case d.Lie:
		return len(p), nil
	case d.Instead != nil:
		_, err := write(d.Instead)
		return len(p), err
	}
	return write(p)
}

func (f *injectedFile) Truncate(size int64) error {
	if stop, err := f.i.stopped(Op{Kind: OpTruncate, Path: f.Name()}); stop {
		return err
	}
	return f.File.Truncate(size)
}

func (f *injectedFile) Sync() error {
	if stop, err := f.i.stopped(Op{Kind: OpSync, Path: f.Name()}); stop {
		return err
	}
	return f.File.Sync()
}
