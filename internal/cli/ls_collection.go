package cli

import (
	"context"
	"crypto/rand"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// What the commands share that take care of a collection.

// collection is the sessions of a store, with what the state folder knows of
// them. Without a home directory there is no state folder.
func (a *app) collection(st store.Store) *collection.Collection {
	state, err := a.StateHome()
	if err != nil {
		state = ""
	}
	return collection.Of(st, collection.Options{State: state, Now: a.Now})
}

// shelved is a collection whose shelves can be used.
func (a *app) shelved(st store.Store) (*collection.Collection, error) {
	if _, err := a.StateHome(); err != nil {
		return nil, err
	}
	return a.collection(st), nil
}

// keep writes the catalogue. It is only a cache, so that an error is no reason
// to end otherwise.
func (a *app) keep(c *collection.Collection) {
	if err := c.Save(rand.Read); err != nil {
		a.Logger.Info("the catalogue is not kept", "error", err)
	}
}

// learnAll reads what the catalogue does not know of some entries, with a bar.
func (a *app) learnAll(ctx context.Context, c *collection.Collection, entries []collection.Entry) error {
	var all, done int64
	for i := range entries {
		if !entries[i].Whole {
			all += entries[i].Bytes
		}
	}
	bar := (*term.Progress)(nil)
	if all > 1<<20 {
		bar = a.progress("reading", all)
	}
	if bar != nil {
		defer bar.End()
	}
	for i := range entries {
		e := &entries[i]
		if e.Whole {
			continue
		}
		if err := c.Learn(ctx, e); err != nil {
			return err
		}
		if done += e.Bytes; bar != nil {
			bar.At(done)
		}
	}
	return nil
}

// openRecorded opens a store by the address that an entry of a shelf has.
func (a *app) openRecorded(address string) (store.Store, error) {
	return a.StoreAt(address, "the entry's store")
}

// inStore resolves names to sessions of one store.
func (a *app) inStore(ctx context.Context, names []string) (st store.Store, ids []string, err error) {
	if st, err = a.OpenStore(); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		t, err := a.Resolve(ctx, name)
		if err != nil {
			return st, ids, err
		}
		if t.Path != "" {
			return st, ids, exit.Usagef("%s is a log file, not a session of a store: it is moved and removed like any other file", term.Quote(name))
		}
		ids = append(ids, t.ID)
	}
	return st, ids, nil
}

// some is at least one argument, with a word for what it is.
func some(what string) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exit.Usagef("%s needs %s: usage: %s", c.CommandPath(), what, c.UseLine())
		}
		return nil
	}
}
