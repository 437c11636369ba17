package collection

import (
	"cmp"
	"slices"
	"time"

	"github.com/outcrop-dev/outcrop/store"
)

// Rules say after how many days without a new event something happens to a
// session. 0: never.
type Rules struct {
	Archive int // it goes from the store to the archive
	Trash   int // it goes from the store or the archive to the trash
	Purge   int // days in the trash, then it is removed for good
}

// None reports that no rule is set.
func (r Rules) None() bool { return r == Rules{} }

// Deed is one thing that the rules ask for.
type Deed struct {
	Do     string // archive, trash or purge
	ID     string
	Title  string
	Since  int64 // the last event, or when it came into the trash; Unix milliseconds
	Bytes  int64
	Entry  *Entry // of the store; nil for an item
	Item   *Item  // of a shelf; nil for an entry
	Shelf  string // "archive" or "trash", where Item lies
	Family string // the root of its tree: trees of a store go as one
}

const day = int64(24 * time.Hour / time.Millisecond)

// Due is what the rules ask for at the time now, oldest first. A tree of
// sessions goes as one, by its newest event. What has a star stays, and so does
// its tree; so does a tree with a session that is in use, or that could not be
// read in good order: nothing goes because of what could not be known.
func (r Rules) Due(entries []Entry, archived, trashed []Item, now int64) []Deed {
	var out []Deed
	old := func(since int64, days int) bool { return days > 0 && since > 0 && now-since >= int64(days)*day }
	f := FamilyOf(entries)
	trees := map[string][]*Entry{}
	for i := range entries {
		if e := &entries[i]; e.ID != "" {
			root := f.Root(e.ID)
			trees[root] = append(trees[root], e)
		}
	}
	for root, tree := range trees {
		newest, stays := int64(0), false
		for _, e := range tree {
			newest = max(newest, e.UpdatedAt)
			stays = stays || e.Starred() || !e.Whole || e.State != store.StateOK && e.State != store.StateOpenTurn
		}
		do := ""
		switch {
		case stays:
		case old(newest, r.Trash):
			do = "trash"
		case old(newest, r.Archive):
			do = "archive"
		}
		if do == "" {
			continue
		}
		for _, e := range tree {
			out = append(out, Deed{Do: do, ID: e.ID, Title: e.Title, Since: e.UpdatedAt, Bytes: e.Bytes, Entry: e, Family: root})
		}
	}
	for i := range archived {
		if it := &archived[i]; !it.Starred && !it.Unfinished() && old(it.UpdatedAt, r.Trash) {
			out = append(out, Deed{Do: "trash", ID: it.ID, Title: it.Title, Since: it.UpdatedAt, Bytes: it.Bytes, Item: it, Shelf: "archive", Family: it.ID})
		}
	}
	for i := range trashed {
		if it := &trashed[i]; !it.Unfinished() && old(it.At, r.Purge) {
			out = append(out, Deed{Do: "purge", ID: it.ID, Title: it.Title, Since: it.At, Bytes: it.Bytes, Item: it, Shelf: "trash", Family: it.ID})
		}
	}
	slices.SortFunc(out, func(a, b Deed) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Do, b.Do))
	})
	return out
}
