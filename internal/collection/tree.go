package collection

import "slices"

// Family says who descends from whom among the sessions of a store: forks, and
// sessions that another one started.
type Family struct {
	entries  []Entry
	at       map[string]int
	children map[string][]int
}

// FamilyOf reads the headers of a listing.
func FamilyOf(entries []Entry) *Family {
	f := &Family{entries: entries, at: map[string]int{}, children: map[string][]int{}}
	for i := range entries {
		if id := entries[i].ID; id != "" {
			f.at[id] = i
		}
	}
	for i := range slices.Backward(entries) { // oldest first
		e := &entries[i]
		if p := e.Parent(); p != "" && e.ID != "" && p != e.ID {
			f.children[p] = append(f.children[p], i)
		}
	}
	return f
}

// Below are all sessions that descend from one, each before its own children.
// Headers may name each other in a circle; every session is there once.
func (f *Family) Below(id string) []Entry {
	seen := map[string]bool{id: true}
	var out []Entry
	var visit func(id string)
	visit = func(id string) {
		for _, i := range f.children[id] {
			if e := &f.entries[i]; !seen[e.ID] {
				seen[e.ID] = true
				out = append(out, *e)
				visit(e.ID)
			}
		}
	}
	visit(id)
	return out
}

// Root is the oldest ancestor of a session that the store still has: itself
// when it has no parent there, and in a circle the one that is met twice.
func (f *Family) Root(id string) string {
	seen := map[string]bool{}
	for !seen[id] {
		seen[id] = true
		i, ok := f.at[id]
		if !ok {
			return id
		}
		p := f.entries[i].Parent()
		if _, ok := f.at[p]; p == "" || !ok {
			return id
		}
		id = p
	}
	return id
}
