package collection

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

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

// record is what the catalogue keeps of one place.
type record struct {
	listed store.Listed
	sum    summary // the zero value: never read
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
	out := make([]Entry, len(listed))
	same := 0 // what is in the catalogue as it is
	for i := range listed {
		l := &listed[i]
		rec := c.known[l.Place]
		if rec == nil || rec.listed.Info.ID != l.Info.ID {
			rec = &record{}
		} else if rec.listed.Stamp == l.Stamp && l.Stamp != "" {
			same++
			out[i] = rec.entry()
			continue
		}
		rec.listed = *l
		out[i] = rec.entry()
	}
	if same < len(listed) || same < len(c.known) {
		c.dirty = true
		c.known = make(map[string]*record, len(out))
		for i := range out {
			c.known[listed[i].Place] = out[i].rec
		}
	}
	return inOrder(out), nil
}

// listed asks the store. One that has no stamps says in its listing what there
// is to say, so that this is the stamp.
// Until loaded returns the catalogue is being read.
func (c *Collection) listed(ctx context.Context, loaded func()) ([]store.Listed, error) {
	if cat, ok := c.st.(store.Cataloguer); ok {
		return cat.ListKnown(ctx, func(place string) (store.Listed, bool) {
			loaded()
			rec := c.known[place]
			if rec == nil {
				return store.Listed{}, false
			}
			return rec.listed, true
		})
	}
	infos, err := c.st.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]store.Listed, len(infos))
	for i, in := range infos {
		out[i] = store.Listed{Info: in, Place: in.ID, Stamp: fmt.Sprintf("%d %d %d", in.Bytes, in.Events, in.UpdatedAt)}
		if in.ID == "" || in.State == store.StateLocked {
			out[i].Place, out[i].Stamp = in.ID+in.Path, ""
		}
	}
	return out, nil
}

// entry puts together what a listing and the reading of the log said.
func (r *record) entry() Entry {
	e := Entry{Info: r.listed.Info, rec: r}
	if r.listed.Stamp == "" || r.sum.stamp != r.listed.Stamp {
		return e
	}
	r.sum.into(&e)
	return e
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
		if x.updated != y.updated {
			return cmp.Compare(y.updated, x.updated)
		}
		a, b := &entries[x.at], &entries[y.at]
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Path, b.Path))
	})
	out := make([]Entry, len(entries))
	for i, p := range places {
		out[i] = entries[p.at]
	}
	return out
}
