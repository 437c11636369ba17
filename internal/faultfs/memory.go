package faultfs

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Memory is a file system in memory that knows what of it is durable. Its
// clock counts changes. It has no symbolic links, and does not look at modes.
type Memory struct {
	mu    sync.Mutex
	root  *node
	clock int64
}

// NewMemory makes an empty file system.
func NewMemory() *Memory { return &Memory{root: newNode(fs.ModeDir | 0o700)} }

// node is a file or a folder: as a running program sees it, and as it is on the
// medium.
type node struct {
	mode fs.FileMode
	mod  int64

	data []byte           // of a file
	kids map[string]*node // of a folder

	// The durable state, and what happened since, in order.
	keptData []byte
	keptKids map[string]*node
	since    []change

	shared int // holders of shared locks
	locked bool
}

// change is one write, cut, or step of names, which happens as a whole in the
// memory of the machine.
type change struct {
	data  []byte // written at off
	off   int64
	cut   bool // the file ends at off
	names []entry
}

// entry is what a name leads to afterwards, nil for nothing.
type entry struct {
	name string
	to   *node
}

func newNode(mode fs.FileMode) *node {
	n := &node{mode: mode}
	if mode.IsDir() {
		n.kids, n.keptKids = map[string]*node{}, map[string]*node{}
	}
	return n
}

// happens applies a change to the file or folder as programs see it.
func (m *Memory) happens(n *node, c change) {
	m.clock++
	n.mod = m.clock
	n.since = append(n.since, c)
	if n.mode.IsDir() {
		rename(n.kids, c.names)
		return
	}
	n.data = written(n.data, c)
}

func rename(kids map[string]*node, names []entry) {
	for _, e := range names {
		if e.to == nil {
			delete(kids, e.name)
		} else {
			kids[e.name] = e.to
		}
	}
}

// written is data after a write or a cut. It may write into data.
func written(data []byte, c change) []byte {
	end := c.off + int64(len(c.data))
	if n := end - int64(len(data)); n > 0 {
		data = append(data, make([]byte, n)...)
	}
	if c.cut {
		return data[:c.off]
	}
	copy(data[c.off:], c.data)
	return data
}

// sync makes a file or a folder durable.
func (n *node) sync() {
	for _, c := range n.since {
		if n.mode.IsDir() {
			rename(n.keptKids, c.names)
		} else {
			n.keptData = written(n.keptData, c)
		}
	}
	n.since = nil
}

func failed(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// steps are the names on the way from the root.
func steps(name string) []string {
	return strings.FieldsFunc(filepath.ToSlash(filepath.Clean(name)), func(r rune) bool { return r == '/' })
}

func (m *Memory) find(op, name string) (*node, error) {
	n := m.root
	for _, s := range steps(name) {
		if !n.mode.IsDir() {
			return nil, failed(op, name, syscall.ENOTDIR)
		}
		if n = n.kids[s]; n == nil {
			return nil, failed(op, name, syscall.ENOENT)
		}
	}
	return n, nil
}

// parent finds the folder of a name and what is there.
func (m *Memory) parent(op, name string) (dir *node, base string, n *node, err error) {
	way := steps(name)
	if len(way) == 0 {
		return nil, "", nil, failed(op, name, syscall.EEXIST)
	}
	dir, err = m.find(op, filepath.Dir(filepath.Clean(name)))
	if err != nil {
		return nil, "", nil, err
	}
	if !dir.mode.IsDir() {
		return nil, "", nil, failed(op, name, syscall.ENOTDIR)
	}
	base = way[len(way)-1]
	return dir, base, dir.kids[base], nil
}

// OpenFile is FS's.
func (m *Memory) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &memoryFile{m: m, n: n, name: name, flag: flag}, nil
}

func (m *Memory) open(name string, flag int, perm fs.FileMode) (*node, error) {
	dir, base, n, err := m.parent("open", name)
	switch {
	case len(steps(name)) == 0:
		n = m.root
	case err != nil:
		return nil, err
	}
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, failed("open", name, syscall.ENOENT)
	case n == nil:
		n = newNode(perm.Perm())
		m.happens(dir, change{names: []entry{{base, n}}})
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, failed("open", name, syscall.EEXIST)
	case n.mode.IsDir() && flag&(os.O_WRONLY|os.O_RDWR) != 0:
		return nil, failed("open", name, syscall.EISDIR)
	case flag&os.O_TRUNC != 0:
		m.happens(n, change{cut: true})
	}
	return n, nil
}

// Mkdir is FS's.
func (m *Memory) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, n, err := m.parent("mkdir", name)
	switch {
	case err != nil:
		return err
	case n != nil:
		return failed("mkdir", name, syscall.EEXIST)
	}
	m.happens(dir, change{names: []entry{{base, newNode(fs.ModeDir | perm.Perm())}}})
	return nil
}

// Remove is FS's.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, n, err := m.parent("remove", name)
	switch {
	case err != nil:
		return err
	case n == nil:
		return failed("remove", name, syscall.ENOENT)
	case len(n.kids) > 0:
		return failed("remove", name, syscall.ENOTEMPTY)
	}
	m.happens(dir, change{names: []entry{{base, nil}}})
	return nil
}

// Rename is FS's. In one folder it is one step; between two folders each of them
// has its own, so that a loss of power may keep both names, or none.
func (m *Memory) Rename(from, to string) error { return m.rename(from, to, true) }

// RenameNew is FS's.
func (m *Memory) RenameNew(from, to string) error { return m.rename(from, to, false) }

func (m *Memory) rename(from, to string, replace bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, n, err := m.parent("rename", from)
	if err == nil && n == nil {
		err = failed("rename", from, syscall.ENOENT)
	}
	if err != nil {
		return err
	}
	toDir, toBase, there, err := m.parent("rename", to)
	switch {
	case err != nil:
		return err
	case there != nil && !replace:
		return failed("rename", to, syscall.EEXIST)
	case there != nil && there.mode.IsDir():
		return failed("rename", to, syscall.EISDIR)
	case dir == toDir:
		m.happens(dir, change{names: []entry{{base, nil}, {toBase, n}}})
		return nil
	}
	m.happens(toDir, change{names: []entry{{toBase, n}}})
	m.happens(dir, change{names: []entry{{base, nil}}})
	return nil
}

// Link is FS's.
func (m *Memory) Link(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("link", from)
	if err != nil {
		return err
	}
	dir, base, there, err := m.parent("link", to)
	switch {
	case err != nil:
		return err
	case there != nil:
		return failed("link", to, syscall.EEXIST)
	}
	m.happens(dir, change{names: []entry{{base, n}}})
	return nil
}

// Stat is FS's.
func (m *Memory) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("stat", name)
	if err != nil {
		return nil, err
	}
	return n.info(filepath.Base(name)), nil
}

// Lstat is FS's.
func (m *Memory) Lstat(name string) (fs.FileInfo, error) { return m.Stat(name) }

// ReadDir is FS's.
func (m *Memory) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("open", name)
	if err == nil && !n.mode.IsDir() {
		err = failed("readdir", name, syscall.ENOTDIR)
	}
	if err != nil {
		return nil, err
	}
	list := make([]fs.DirEntry, 0, len(n.kids))
	for _, base := range slices.Sorted(maps.Keys(n.kids)) {
		list = append(list, fs.FileInfoToDirEntry(n.kids[base].info(base)))
	}
	return list, nil
}

// SyncDir is FS's.
func (m *Memory) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("sync", name)
	if err != nil {
		return err
	}
	n.sync()
	return nil
}

// Lock is FS's.
func (m *Memory) Lock(name string, flag int, shared bool) (Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.open(name, flag, 0o600)
	switch {
	case err != nil:
		return nil, err
	case n.locked || n.shared > 0 && !shared:
		return nil, ErrHeld
	case shared:
		n.shared++
	default:
		n.locked = true
	}
	return &memoryLock{m, n, filepath.Base(name), shared}, nil
}

type memoryLock struct {
	m      *Memory
	n      *node
	name   string
	shared bool
}

func (l *memoryLock) Stat() (fs.FileInfo, error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return l.n.info(l.name), nil
}

func (l *memoryLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.shared {
		l.n.shared--
	} else {
		l.n.locked = false
	}
	return nil
}

type memoryFile struct {
	m      *Memory
	n      *node
	name   string
	flag   int
	at     int64
	closed bool
}

// may is the error of a call that the file was not opened for.
func (f *memoryFile) may(op string, write bool) error {
	switch {
	case f.closed:
		return failed(op, f.name, fs.ErrClosed)
	case write && f.flag&(os.O_WRONLY|os.O_RDWR) == 0:
		return failed(op, f.name, syscall.EBADF)
	}
	return nil
}

func (f *memoryFile) Name() string { return f.name }

func (f *memoryFile) Write(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.flag&os.O_APPEND != 0 {
		f.at = int64(len(f.n.data))
	}
	n, err := f.writeAt(p, f.at)
	f.at += int64(n)
	return n, err
}

func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if len(p) == 0 && !f.closed {
		// The machine is not asked, so it does not say that the file was opened
		// for reading.
		return 0, nil
	}
	return f.writeAt(p, off)
}

func (f *memoryFile) writeAt(p []byte, off int64) (int, error) {
	if err := f.may("write", true); err != nil {
		return 0, err
	}
	if len(p) > 0 {
		f.m.happens(f.n, change{data: slices.Clone(p), off: off})
	}
	return len(p), nil
}

func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.may("read", false); err != nil {
		return 0, err
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memoryFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.may("truncate", true); err != nil {
		return err
	}
	f.m.happens(f.n, change{cut: true, off: size})
	return nil
}

func (f *memoryFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.may("sync", false); err != nil {
		return err
	}
	f.n.sync()
	return nil
}

func (f *memoryFile) Stat() (fs.FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.may("stat", false); err != nil {
		return nil, err
	}
	return f.n.info(filepath.Base(f.name)), nil
}

func (f *memoryFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.may("close", false)
	f.closed = true
	return err
}

func (n *node) info(name string) fs.FileInfo {
	return &info{n: n, name: name, size: int64(len(n.data)), mode: n.mode, mod: n.mod}
}

type info struct {
	n    *node
	name string
	size int64
	mode fs.FileMode
	mod  int64
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.size }
func (i *info) Mode() fs.FileMode  { return i.mode }
func (i *info) ModTime() time.Time { return time.UnixMilli(i.mod) }
func (i *info) IsDir() bool        { return i.mode.IsDir() }
func (i *info) Sys() any           { return i.n }
