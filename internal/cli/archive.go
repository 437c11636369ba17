package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newArchiveCommand() *cobra.Command {
	var restore, tree bool
	c := &cobra.Command{
		Use:   "archive [SESSION...]",
		Short: "Put sessions away, and get them back",
		Long: `Moves sessions to the archive, a folder of the state folder, with their
attachments and the whole outputs of their tools. They are not listed, found or
continued then; --restore moves them back to where they were. With --tree the
sessions that come from them go along. Without SESSION the archive is listed.`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case restore && len(args) == 0:
				return exit.Usagef("--restore needs SESSION: outcrop archive lists what is there")
			case restore:
				return a.restore(c.Context(), args, (*collection.Collection).Archive)
			case len(args) == 0:
				return a.listShelf((*collection.Collection).Archive, "archive")
			}
			return a.archive(c.Context(), args, tree)
		},
	}
	c.ValidArgsFunction = a.completeTarget
	c.Flags().BoolVar(&restore, "restore", false, "move the sessions back to their store")
	c.Flags().BoolVar(&tree, "tree", false, "the sessions that come from them too")
	return c
}

func (a *app) archive(ctx context.Context, args []string, tree bool) error {
	st, ids, err := a.inStore(ctx, args)
	if err != nil {
		return err
	}
	defer st.Close()
	c, err := a.shelved(st)
	if err != nil {
		return err
	}
	all, err := c.List(ctx)
	if err != nil {
		return err
	}
	t := taking{a: a, c: c, shelf: c.Archive(), what: "archive"}
	if tree {
		ids = withTrees(all, ids)
	}
	err = t.take(ctx, all, ids)
	a.keep(c)
	return err
}

// withTrees adds the sessions that come from some.
func withTrees(all []collection.Entry, ids []string) []string {
	f := collection.FamilyOf(all)
	for _, id := range ids {
		for _, e := range f.Below(id) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// restore moves items of a shelf back to their stores.
func (a *app) restore(ctx context.Context, names []string, shelf func(*collection.Collection) *collection.Shelf) error {
	c, err := a.shelved(nil)
	if err != nil {
		return err
	}
	m, err := a.lockShelf(ctx, shelf(c))
	if err != nil {
		return err
	}
	defer m.Close()
	items := make([]collection.Item, 0, len(names))
	for _, name := range names {
		i, err := m.Find(name)
		if errors.Is(err, outcrop.ErrNotFound) {
			return exit.Usagef("%v: without a name they are listed", err)
		}
		if err != nil {
			return err
		}
		items = append(items, i)
	}
	for _, i := range items {
		st, err := a.openRecorded(i.Store)
		if err == nil {
			err = errors.Join(m.PutBack(ctx, st, i), st.Close())
		}
		if err != nil {
			return err
		}
		if a.Flags.JSON {
			err = a.Line(answer.New().Text("session", i.ID).Text("store", i.Store).End())
		} else {
			a.Text(fmt.Sprintf("%s is back in %s\n", term.Line(i.ID), term.Line(i.Store)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listShelf lists what lies on a shelf, of all stores.
func (a *app) listShelf(shelf func(*collection.Collection) *collection.Shelf, name string) error {
	c, err := a.shelved(nil)
	if err != nil {
		return err
	}
	items, err := shelf(c).List()
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		for _, i := range items {
			o := answer.New().Text("session", i.ID).TextOrNull("title", i.Title).TextOrNull("cwd", i.Cwd).Text("store", i.Store).
				Number("updatedAt", i.UpdatedAt).Number("at", i.At).Number("bytes", i.Bytes).Bool("unfinished", i.Unfinished())
			if err := a.Line(o.End()); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items) == 0 {
		a.Note("the %s is empty", name)
		return nil
	}
	for _, i := range items {
		about := i.Title
		if i.Unfinished() {
			about = "half moved: the next move finishes it or takes it back"
		}
		a.Text(term.Pad(term.Cut(term.Line(i.ID), 24), 24) + " " + term.PadLeft(term.Age(a.Now(), i.At), 4) + " " +
			term.PadLeft(term.Size(i.Bytes), 7) + "  " + term.Cut(term.OneLine(about), 40) + "\n")
	}
	return nil
}
