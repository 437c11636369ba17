package jsonl

import (
	"context"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop/store"
)

var _ store.Cataloguer = (*Store)(nil)

// ListKnown is store.Cataloguer's. The stamp of an entry is when its folder
// changed, so that no file came or went, and identity, size and time of its
// log. An entry is looked at as long as somebody has its lock, and while its
// times are so new that another change might leave them as they are.
func (s *Store) ListKnown(ctx context.Context, known func(place string) (store.Listed, bool)) ([]store.Listed, error) {
	dirs, strays, err := s.folders()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	out := make([]store.Listed, 0, len(dirs)+len(strays))
	const portion = 64
	next := 0
	for range min(runtime.GOMAXPROCS(0), 8) {
		workers.Go(func() {
			lk := newLooker(s.disk, store.ListOptions{})
			at := &glancer{disk: s.disk}
			defer at.close()
			var mine []store.Listed
			for ctx.Err() == nil {
				mu.Lock()
				out = append(out, mine...)
				part := dirs[next:min(next+portion, len(dirs))]
				next += len(part)
				mu.Unlock()
				if mine = mine[:0]; len(part) == 0 {
					return
				}
				for _, dir := range part {
					if l, ok := s.lookKnown(lk, at, dir, known); ok {
						mine = append(mine, l)
					}
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, in := range strays {
		out = append(out, store.Listed{Info: in, Place: in.Path})
	}
	markListedTwice(out)
	return out, nil
}

// markListedTwice marks sessions that are in more than one folder; that may
// change without a change of either, so such an entry is not kept.
func markListedTwice(all []store.Listed) {
	at := make(map[string]int, len(all))
	twice := false
	for i := range all {
		id := all[i].Info.ID
		if j, dup := at[id]; dup && id != "" {
			all[i].Stamp, all[j].Stamp = "", ""
			twice = true
		}
		at[id] = i
	}
	if !twice {
		return
	}
	infos := make([]store.Info, len(all))
	for i := range all {
		infos[i] = all[i].Info
	}
	markDuplicates(infos)
	for i := range all {
		all[i].Info = infos[i]
	}
}

func (s *Store) lookKnown(lk *looker, at *glancer, dir string, known func(string) (store.Listed, bool)) (store.Listed, bool) {
	if k, ok := known(dir); ok && k.Stamp != "" && filepath.Dir(k.Info.Path) == dir {
		locked := strings.HasPrefix(k.Stamp, stampLock)
		if string(s.stamp(at, dir, filepath.Base(k.Info.Path), locked)) == k.Stamp {
			k.Place = dir
			if locked && s.mayBeHeld(at, dir) {
				if lk.locked(&k.Info, lockIn(dir)); k.Info.State == store.StateLocked {
					k.Stamp = ""
				}
			}
			return k, true
		}
	}
	// The stamp is taken before the log is read: what changes in between gives
	// another one the next time.
	l := store.Listed{Place: dir}
	f, ok, err := lookIn(s.disk, dir)
	if err == nil && ok && f.enc != "" {
		l.Stamp = string(s.stamp(at, dir, filepath.Base(f.path()), f.locked))
	}
	if l.Info, ok = s.look(lk, dir); !ok {
		return l, false
	}
	if l.Info.State == store.StateLocked || l.Info.Path != f.path() {
		l.Stamp = ""
	}
	return l, true
}

// mayBeHeld looks at the lock file of a session: nobody has an empty one.
func (s *Store) mayBeHeld(at *glancer, dir string) bool {
	lock, err := at.look(dir, logStem+".lock")
	return err != nil || lock.size > 0
}

// stampLock begins the stamp of a folder that has a lock file.
const stampLock = "lock "

// settled is how old a time must be before it tells one change from the next.
const settled = 100 * time.Millisecond

// stamp is the stamp of a session folder and its log; nil: it must not be kept.
func (s *Store) stamp(at *glancer, dir, log string, locked bool) []byte {
	d, err := at.look(dir, "")
	if err != nil {
		return nil
	}
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
	b := make([]byte, 0, 96)
	if locked {
		b = append(b, stampLock...)
	}
	b = append(strconv.AppendInt(b, d.changed, 10), ' ')
	b = append(strconv.AppendInt(b, f.changed, 10), ' ')
	b = append(strconv.AppendInt(b, f.size, 10), ' ')
	return strconv.AppendUint(b, f.id, 10)
}
