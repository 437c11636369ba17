package jsonl

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
)

var _ store.Cataloguer = (*Store)(nil)

// ListKnown is store.Cataloguer's. The stamp of an entry is when its folder
// changed, so that no file came or went, and identity, size and time of its
// log, which grows in place. An entry is looked at as long as somebody has its
// lock, and while its times are so new that another change might leave them as
// they are.
func (s *Store) ListKnown(ctx context.Context, known func(place string) (store.Kept, bool)) ([]store.Listed, error) {
	dirs, strays, err := s.folders()
	if err != nil {
		return nil, err
	}
	if known == nil {
		known = func(string) (store.Kept, bool) { return store.Kept{}, false }
	}
	var workers sync.WaitGroup
	out := make([]store.Listed, len(dirs), len(dirs)+len(strays))
	ids := make([]string, len(dirs))
	const portion = 64
	var portions atomic.Int64
	for range min(runtime.GOMAXPROCS(0), 8) {
		workers.Go(func() {
			lk := newLooker(s.disk, store.ListOptions{})
			at := &glancer{disk: s.disk}
			defer at.close()
			for ctx.Err() == nil {
				end := int(portions.Add(1)) * portion
				if end-portion >= len(dirs) {
					return
				}
				for i := end - portion; i < min(end, len(dirs)); i++ {
					out[i], ids[i] = s.lookKnown(lk, at, dirs[i], known)
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.markListedTwice(out, ids)
	out = slices.DeleteFunc(out, func(l store.Listed) bool { return l.Place == "" })
	for i := range strays {
		out = append(out, store.Listed{Info: &strays[i], Place: strays[i].Path})
	}
	return out, nil
}

// markListedTwice marks sessions that are in more than one folder; that may
// change without a change of either, so such an entry is not kept.
func (s *Store) markListedTwice(all []store.Listed, ids []string) {
	at := make(map[string]int, len(all))
	var twice []int
	for i, id := range ids {
		if id == "" {
			continue
		}
		if first, dup := at[id]; !dup {
			at[id] = i
		} else {
			twice = append(twice, first, i)
		}
	}
	if twice == nil {
		return
	}
	slices.Sort(twice)
	twice = slices.Compact(twice)
	lk := newLooker(s.disk, store.ListOptions{})
	infos := make([]store.Info, len(twice))
	for n, i := range twice {
		l := &all[i]
		if l.Stamp = ""; l.Info == nil {
			in, ok := s.look(lk, l.Place)
			if !ok {
				in = broken(l.Place, "the log went away while it was looked at")
				in.ID = ids[i]
			}
			l.Info = &in
		}
		infos[n] = *l.Info
	}
	markDuplicates(infos)
	for n, i := range twice {
		all[i].Info = &infos[n]
	}
}

// lookKnown gives the entry of a session folder, and its id; nothing when there
// is no session in it.
func (s *Store) lookKnown(lk *looker, at *glancer, dir string, known func(string) (store.Kept, bool)) (store.Listed, string) {
	if k, ok := known(dir); ok && k.Stamp != "" && liesIn(dir, k.Path) {
		locked := strings.HasPrefix(k.Stamp, stampLock)
		if string(s.stamp(at, dir, k.Path[len(dir)+1:], locked)) == k.Stamp && !(locked && s.held(at, dir)) {
			return store.Listed{Place: dir, Stamp: k.Stamp}, k.ID
		}
	}
	// What the stamp says is taken before what it stands for is read: a change in
	// between gives another one the next time.
	l := store.Listed{Place: dir}
	d, derr := at.look(dir, "")
	f, ok, err := lookIn(s.disk, dir)
	if derr == nil && err == nil && ok && f.enc != "" {
		l.Stamp = string(s.stampWith(at, d, dir, filepath.Base(f.path()), f.locked))
	}
	in, ok := s.describe(lk, f, ok, err)
	if !ok {
		return store.Listed{}, ""
	}
	if in.State == store.StateLocked {
		l.Stamp = ""
	}
	l.Info = &in
	return l, in.ID
}

// liesIn reports whether a path is that of something in a folder itself.
func liesIn(dir, path string) bool {
	return len(path) > len(dir)+1 && path[:len(dir)] == dir && os.IsPathSeparator(path[len(dir)]) &&
		filepath.Base(path) == path[len(dir)+1:]
}

// held reports whether somebody has the lock of a session: nobody has an empty
// one.
func (s *Store) held(at *glancer, dir string) bool {
	lock, err := at.look(dir, logStem+".lock")
	if err == nil && lock.size == 0 {
		return false
	}
	_, held := filelock.HolderOf(s.disk, lockIn(dir))
	return held
}

// stampLock begins the stamp of a folder that has a lock file.
const stampLock = "lock "

// settled is how old a time must be before it tells one change from the next.
const settled = 100 * time.Millisecond

// stamp is the stamp of a session folder and its log, until the next one is made;
// nil: it must not be kept.
func (s *Store) stamp(at *glancer, dir, log string, locked bool) []byte {
	d, err := at.look(dir, "")
	if err != nil {
		return nil
	}
	return s.stampWith(at, d, dir, log, locked)
}

// stampWith is stamp when the folder was looked at.
func (s *Store) stampWith(at *glancer, d glance, dir, log string, locked bool) []byte {
	f, err := at.look(dir, log)
	if err != nil || !f.regular {
		return nil
	}
	if s.opt.Now != nil {
		now := s.opt.Now()
		for _, g := range [...]glance{d, f} {
			if age := now - g.changedMillis(); age >= 0 && age < settled.Milliseconds() {
				return nil
			}
		}
	}
	b := at.text[:0]
	if locked {
		b = append(b, stampLock...)
	}
	b = append(strconv.AppendInt(b, d.changed, 10), ' ')
	b = append(strconv.AppendInt(b, f.changed, 10), ' ')
	b = append(strconv.AppendInt(b, f.size, 10), ' ')
	b = strconv.AppendUint(b, f.id, 10)
	at.text = b
	return b
}
