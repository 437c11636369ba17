package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
	"github.com/outcrop-dev/outcrop/wire"
)

// List is store.Store's. Without Full it reads of each log the header and at
// most the last 64 KiB, so that damage in the middle is not seen.
func (s *Store) List(ctx context.Context, o store.ListOptions) ([]store.Info, error) {
	dirs, infos, err := s.folders()
	if err != nil {
		return nil, err
	}
	// A file is opened and read in a few system calls; more workers than
	// processors do not make that faster.
	var mu sync.Mutex
	var workers sync.WaitGroup
	const portion = 16
	next := 0
	for range min(runtime.GOMAXPROCS(0), 8) {
		workers.Go(func() {
			lk := newLooker(s.disk, o)
			var mine []store.Info
			for ctx.Err() == nil {
				mu.Lock()
				infos = append(infos, mine...)
				part := dirs[next:min(next+portion, len(dirs))]
				next += len(part)
				mu.Unlock()
				if mine = mine[:0]; len(part) == 0 {
					return
				}
				for _, dir := range part {
					if in, ok := s.look(lk, dir); ok {
						mine = append(mine, in)
					}
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	markDuplicates(infos)
	store.SortInfos(infos)
	return infos, nil
}

// folders finds the session folders, and the entries that do not belong into a
// root.
func (s *Store) folders() (dirs []string, strays []store.Info, err error) {
	projects, err := s.disk.ReadDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, pathProblem("list", s.root, err)
	}
	projects = slices.DeleteFunc(projects, func(p fs.DirEntry) bool { return !p.IsDir() })
	all := make([]project, len(projects))
	var readers sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), 8) {
		readers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(projects); i = int(next.Add(1)) - 1 {
				all[i] = s.project(filepath.Join(s.root, projects[i].Name()))
			}
		})
	}
	readers.Wait()
	for i := range all {
		dirs, strays = append(dirs, all[i].dirs...), append(strays, all[i].strays...)
	}
	return dirs, strays, nil
}

// project is what lies in a folder of a root.
type project struct {
	dirs   []string
	strays []store.Info
}

func (s *Store) project(dir string) (p project) {
	entries, err := s.disk.ReadDir(dir)
	if err != nil {
		p.strays = append(p.strays, broken(dir, "the folder cannot be read: "+osReason(err)))
		return p
	}
	p.dirs = make([]string, 0, len(entries))
	below := dir + string(filepath.Separator)
	for _, e := range entries {
		path := below + e.Name()
		if e.IsDir() {
			p.dirs = append(p.dirs, path)
		} else if _, ok := wire.EncodingOf(e.Name()); ok && e.Type().IsRegular() {
			p.strays = append(p.strays, broken(path, "a log lies here outside a session folder, which stops dsh from reading this root: move it away"))
		}
	}
	return p
}

func broken(path, reason string) store.Info {
	return store.Info{Events: -1, Turns: -1, State: store.StateDamaged, Reason: reason, Path: path}
}

// look describes what lies in one session folder.
func (s *Store) look(lk *looker, dir string) (store.Info, bool) {
	f, ok, err := lookIn(s.disk, dir)
	return s.describe(lk, f, ok, err)
}

// describe is look for what lookIn said.
func (s *Store) describe(lk *looker, f folder, ok bool, err error) (store.Info, bool) {
	dir := f.dir
	name := decodeSegment(filepath.Base(dir))
	if err != nil {
		in := broken(dir, "the folder cannot be read: "+osReason(err))
		in.ID = name
		return in, !errors.Is(err, fs.ErrNotExist)
	}
	if !ok {
		return store.Info{}, false
	}
	if f.enc == "" {
		in := broken(dir, f.reason)
		if in.ID = name; f.state == folderNewer {
			in.State = store.StateNewer
		}
		return in, true
	}
	in := lk.file(f.path(), f.enc)
	if in.ID == "" {
		in.ID = name
	}
	switch {
	case f.state == folderNewer:
		in.State, in.Reason = store.StateNewer, f.reason
	case f.state == folderDamaged:
		in.State, in.Reason = store.StateDamaged, f.reason
	case in.Header.ID != "":
		if err := s.placed(in.Header, name, f); err != nil {
			// It is found under the name of its folder, whatever it says.
			in.ID, in.State, in.Reason = name, store.StateDamaged, err.(*outcrop.Error).Msg
		}
	}
	if f.state == folderLater && (in.State == store.StateOK || in.State == store.StateOpenTurn) {
		in.Reason = joinReason(in.Reason, f.reason)
	}
	if f.locked {
		lk.locked(&in, lockIn(dir))
	}
	return in, true
}

// markDuplicates marks sessions whose id is in more than one folder.
func markDuplicates(infos []store.Info) {
	seen := map[string]int{}
	for i := range infos {
		id := infos[i].ID
		if id == "" {
			continue
		}
		j, dup := seen[id]
		if !dup {
			seen[id] = i
			continue
		}
		for a, b := range map[int]int{i: j, j: i} {
			if infos[a].State != store.StateDamaged {
				infos[a].State, infos[a].Reason = store.StateDamaged, "the same session id is also in "+filepath.Dir(infos[b].Path)
			}
		}
	}
}

// looker reads what a listing says about one log. One goroutine uses it.
type looker struct {
	disk faultfs.FS
	full bool
	buf  []byte
}

// wholeRead is the size up to which a log is read at once.
const wholeRead = 16 << 10

func newLooker(disk faultfs.FS, o store.ListOptions) *looker {
	return &looker{disk: disk, full: o.Full, buf: make([]byte, wholeRead)}
}

// file describes one log file.
func (lk *looker) file(path string, enc wire.Encoding) store.Info {
	in := broken(path, "")
	bad := func(err error) store.Info {
		in.Reason = osReason(err)
		return in
	}
	f, fi, err := openBytes(lk.disk, path)
	if err != nil {
		return bad(err)
	}
	defer f.Close()
	size := fi.Size()
	in.Bytes, in.UpdatedAt = size, fi.ModTime().UnixMilli()
	var r io.ReaderAt = f
	if size <= wholeRead {
		n, err := f.ReadAt(lk.buf[:size], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return bad(err)
		}
		size = int64(n)
		r = bytes.NewReader(lk.buf[:n])
	}
	h, line, err := wire.ReadHeader(io.NewSectionReader(r, 0, size), enc)
	if err != nil {
		if loose, _ := outcrop.ParseHeaderLoose(line); loose.ID != "" {
			in.ID, in.CreatedAt = loose.ID, loose.CreatedAt
		}
		if errors.Is(err, outcrop.ErrUnsupported) {
			in.State = store.StateNewer
		}
		in.Reason = reasonOf(err)
		return in
	}
	in.Header, in.ID, in.CreatedAt, in.State = h, h.ID, h.CreatedAt, store.StateOK
	if h.Cwd != nil {
		in.Cwd = *h.Cwd
	}
	if lk.full {
		lk.whole(&in, r, size, enc)
		return in
	}
	last, err := wire.LastEvents(r, size, enc)
	switch {
	case err != nil:
		in.State, in.Reason = store.StateDamaged, osReason(err)
	case last.Known:
		if in.Events = int64(last.Seq) + 1; h.Format >= 2 {
			in.Events = -1 // its seqs are not those of the view
		}
		if last.Time > 0 {
			in.UpdatedAt = last.Time
		}
		if last.Turn == wire.TurnOpen {
			in.State, in.Reason = store.StateOpenTurn, "the last turn was not closed"
		}
		if last.Torn {
			in.Reason = joinReason(in.Reason, "the tail is torn")
		}
	}
	return in
}

func joinReason(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// whole reads every record of a log.
func (lk *looker) whole(in *store.Info, r io.ReaderAt, size int64, enc wire.Encoding) {
	wr, err := wire.NewReader(r, size, enc)
	if err != nil {
		in.State, in.Reason = store.StateDamaged, reasonOf(err)
		return
	}
	var sum store.Summary
	var failed error
	for rec, err := range wr.Records() {
		if err != nil {
			failed = err
			break
		}
		sum.Add(rec)
	}
	sum.Into(in)
	if failed != nil {
		in.State, in.Reason = store.StateDamaged, reasonOf(failed)
	} else if wr.Tail().Torn {
		in.Reason = joinReason(in.Reason, "the tail is torn")
	}
}

// locked notes that somebody writes the log.
func (lk *looker) locked(in *store.Info, path string) {
	if in.State == store.StateDamaged || in.State == store.StateNewer {
		return
	}
	if h, held := filelock.HolderOf(lk.disk, path); held {
		in.State = store.StateLocked
		in.Reason = (&store.LockedError{Holder: h}).Error()
	}
}

// reasonOf is an error's text without path and place, which an entry of a
// listing has.
func reasonOf(err error) string {
	var e *outcrop.Error
	if errors.As(err, &e) && e.Msg != "" {
		if e.Code != "" {
			return fmt.Sprintf("%s (%s)", e.Msg, e.Code)
		}
		return e.Msg
	}
	return osReason(err)
}

func osReason(err error) string {
	var pe *fs.PathError
	var e *outcrop.Error
	switch {
	case errors.As(err, &pe):
		return pe.Err.Error()
	case errors.As(err, &e) && e.Msg != "":
		return e.Msg
	}
	return err.Error()
}
