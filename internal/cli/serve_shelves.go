package cli

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer"
)

// shelves are archive and trash for the pages of a store.
type shelves struct {
	a  *app
	st store.Store
}

// named is a shelf of a collection.
func named(c *collection.Collection, shelf string) *collection.Shelf {
	if shelf == "archive" {
		return c.Archive()
	}
	return c.Trash()
}

// Put implements viewer.Shelves, as outcrop archive and outcrop rm do.
func (s *shelves) Put(ctx context.Context, id, shelf string, tree bool) ([]string, error) {
	c, err := s.a.shelved(s.st)
	if err != nil {
		return nil, err
	}
	all, err := c.List(ctx)
	if err != nil {
		return nil, err
	}
	ids := []string{id}
	if tree {
		ids = withTrees(all, ids)
	} else if err := alone(all, ids); err != nil {
		return nil, err
	}
	t := taking{a: s.a, c: c, shelf: named(c, shelf), what: shelf, silent: true}
	err = t.take(ctx, all, ids)
	s.a.keep(c)
	return ids, err
}

// List implements viewer.Shelves. Shelves hold the sessions of all stores.
func (s *shelves) List(_ context.Context, shelf string) ([]viewer.Shelved, error) {
	c, err := s.a.shelved(nil)
	if err != nil {
		return nil, err
	}
	items, err := named(c, shelf).List()
	if err != nil {
		return nil, err
	}
	var out []viewer.Shelved
	for _, i := range items {
		if i.Store == s.st.Address() {
			out = append(out, viewer.Shelved{ID: i.ID, Title: i.Title, Cwd: i.Cwd, UpdatedAt: i.UpdatedAt, At: i.At,
				Bytes: i.Bytes, Events: i.Events, Turns: i.Turns, Starred: i.Starred, Unfinished: i.Unfinished()})
		}
	}
	slices.SortStableFunc(out, func(a, b viewer.Shelved) int { return int(b.At - a.At) })
	return out, nil
}

// Restore implements viewer.Shelves.
func (s *shelves) Restore(ctx context.Context, id, shelf string) error {
	c, err := s.a.shelved(nil)
	if err != nil {
		return err
	}
	m, err := s.a.lockShelf(ctx, named(c, shelf))
	if err != nil {
		return err
	}
	defer m.Close()
	items, err := m.List()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(items, func(i collection.Item) bool { return i.ID == id && i.Store == s.st.Address() })
	if at < 0 {
		return store.Problem("restore", id, outcrop.ErrNotFound, "no session with this id came from here to the "+shelf, "")
	}
	i := items[at]
	st, err := s.a.openRecorded(i.Store)
	if err != nil {
		return err
	}
	return errors.Join(m.PutBack(ctx, st, i), st.Close())
}

// exports are the forms that a page offers: those that are files.
func (a *app) exports(st store.Store) (list []viewer.Export) {
	types := map[string]string{"md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8", "jsonl": "application/x-ndjson", "zip": "application/zip"}
	for _, f := range exportFormats() {
		kind := types[f.name]
		if kind == "" {
			continue
		}
		list = append(list, viewer.Export{Name: f.name, Ending: f.ending, Type: kind, What: f.what,
			Write: func(ctx context.Context, id string, raw bool, w io.Writer) error {
				o := exportOptions{at: everything}
				o.Raw = raw
				_, err := f.write(a, ctx, &desk.Target{Store: st, ID: id, Name: id}, exportTo{w: w}, o)
				return err
			}})
	}
	return list
}
