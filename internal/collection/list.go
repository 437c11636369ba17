package collection

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/outcrop-dev/outcrop/store"
)

// Entry is a session as a listing shows it.
type Entry struct {
	store.Info
	// Whole: the whole log was read as it is stored now, so that title, turns,
	// tags and attachments are known.
	Whole   bool
	Tags    []string // sorted
	Objects []string // attachments that the log names, sorted; some may be missing when the log is damaged

	rec *record
}

// Starred reports whether the session has a star.
func (e *Entry) Starred() bool { return slices.Contains(e.Tags, Star) }

// Parent is the session that this one was forked from or started by, "" for
// none.
func (e *Entry) Parent() string {
	if e.Header.ParentSession == nil {
		return ""
	}
	return *e.Header.ParentSession
}

// List lists the sessions of the store, newest first, with what is known of
// them.
func (c *Collection) List(ctx context.Context) ([]Entry, error) {
	// The catalogue is read while the store reads its folders.
	var loading sync.WaitGroup
	loading.Go(c.load)
	listed, err := c.listed(ctx, loading.Wait)
	loading.Wait()
	if err != nil {
		return nil, err
	}
	recs := c.take(listed)
	if out, ok := entries(recs); ok {
		return out, nil
	}
	// What is kept of an entry cannot be read, and the store did not look at it:
	// without the catalogue it does.
	c.known, c.dirty = map[string]*record{}, true
	if listed, err = c.listed(ctx, func() {}); err != nil {
		return nil, err
	}
	out, _ := entries(c.take(listed))
	return out, nil
}

// take brings what is known up to a listing, and gives the records of the
// entries.
func (c *Collection) take(listed []store.Listed) []*record {
	recs := make([]*record, 0, len(listed))
	gone := len(c.known)
	if gone == 0 {
		c.known = make(map[string]*record, len(listed))
	}
	for i := range listed {
		l := &listed[i]
		rec := c.known[l.Place]
		if rec != nil {
			gone--
		}
		if l.Info == nil && rec == nil {
			continue // no store says so
		}
		if l.Info != nil && !rec.still(l) {
			rec = rec.renewed(l)
			c.known[l.Place] = rec
			// What must not be kept is looked at again whatever the file says.
			c.dirty = c.dirty || l.Stamp != ""
		}
		recs = append(recs, rec)
	}
	if c.order = recs; gone > 0 {
		c.dirty = true
		clear(c.known)
		for _, rec := range recs {
			c.known[rec.place] = rec
		}
	}
	return recs
}

// listed asks the store. One that has no stamps says in its listing what there
// is to say, so that this is the stamp.
// Until loaded returns the catalogue is being read.
func (c *Collection) listed(ctx context.Context, loaded func()) ([]store.Listed, error) {
	if cat, ok := c.st.(store.Cataloguer); ok {
		return cat.ListKnown(ctx, func(place string) (store.Kept, bool) {
			loaded()
			rec := c.known[place]
			if rec == nil {
				return store.Kept{}, false
			}
			return rec.kept, true
		})
	}
	infos, err := c.st.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]store.Listed, len(infos))
	for i := range infos {
		in := &infos[i]
		out[i] = store.Listed{Info: in, Place: in.ID, Stamp: fmt.Sprintf("%d %d %d", in.Bytes, in.Events, in.UpdatedAt)}
		if in.ID == "" || in.State == store.StateLocked {
			out[i].Place, out[i].Stamp = in.ID+in.Path, ""
		}
	}
	return out, nil
}

// entries are the entries of records, newest first; false when one of them
// cannot be read.
func entries(recs []*record) ([]Entry, bool) {
	recs = slices.Clone(recs)
	slices.SortFunc(recs, func(a, b *record) int {
		return newestFirst(a.shown, b.shown, a.kept.ID, b.kept.ID, a.kept.Path, b.kept.Path)
	})
	out := make([]Entry, len(recs))
	var readers sync.WaitGroup
	var bad atomic.Bool
	part := max(leastPart, (len(recs)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for from := 0; from < len(recs); from += part {
		readers.Go(func() {
			var r rest
			for i := from; i < min(from+part, len(recs)); i++ {
				if !recs[i].entry(&out[i], &r) {
					bad.Store(true)
					return
				}
			}
		})
	}
	readers.Wait()
	return out, !bad.Load()
}

// leastPart is how many entries are worth a goroutine.
const leastPart = 500

// newestFirst compares two entries by time, id and path.
func newestFirst(timeA, timeB int64, idA, idB, pathA, pathB string) int {
	if timeA != timeB {
		return cmp.Compare(timeB, timeA)
	}
	return cmp.Or(strings.Compare(idA, idB), strings.Compare(pathA, pathB))
}

// Sort puts the newest first, as stores list.
func Sort(entries []Entry) { copy(entries, inOrder(entries)) }

// inOrder is what Sort makes of entries. They are large, so each is moved once,
// to where it belongs.
func inOrder(entries []Entry) []Entry {
	type place struct {
		updated int64
		at      int
	}
	places := make([]place, len(entries))
	for i := range entries {
		places[i] = place{entries[i].UpdatedAt, i}
	}
	slices.SortFunc(places, func(x, y place) int {
		a, b := &entries[x.at], &entries[y.at]
		return newestFirst(x.updated, y.updated, a.ID, b.ID, a.Path, b.Path)
	})
	out := make([]Entry, len(entries))
	for i, p := range places {
		out[i] = entries[p.at]
	}
	return out
}
