package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// removeFlags are the flags of rm.
type removeFlags struct {
	tree, purge, empty, dry bool
	older                   string
}

func (a *app) newRemoveCommand() *cobra.Command {
	var f removeFlags
	c := &cobra.Command{
		Use:   "rm [SESSION...]",
		Short: "Move sessions to the trash, or remove them for good",
		Long: `Moves sessions to the trash, a folder of the state folder, with the attachments
that only they name and the whole outputs of their tools; outcrop restore brings
them back. A session from which others come (forks, or sessions that it started)
goes only with --tree, together with them.

With --purge they are removed for good, from the trash too; --empty-trash
removes what lies there. Removed means that the files are gone: that a disk does
not keep their bytes for some time is not promised.`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.empty && len(args) > 0:
				return exit.Usagef("--empty-trash takes no SESSION: rm --purge SESSION removes one")
			case f.older != "" && !f.empty:
				return exit.Usagef("--older goes with --empty-trash")
			case f.empty:
				return a.emptyTrash(c.Context(), f)
			case len(args) == 0:
				return exit.Usagef("%s needs SESSION: usage: %s", c.CommandPath(), c.UseLine())
			}
			return a.remove(c.Context(), args, f)
		},
	}
	c.ValidArgsFunction = a.completeTarget
	fl := c.Flags()
	fl.BoolVar(&f.tree, "tree", false, "the sessions that come from them too")
	fl.BoolVar(&f.purge, "purge", false, "for good, not to the trash")
	fl.BoolVar(&f.empty, "empty-trash", false, "remove for good what lies in the trash")
	fl.StringVar(&f.older, "older", "", "with --empty-trash: only what came there before `WHEN`: a date like 2026-03-01, or a time ago like 30d")
	fl.BoolVar(&f.dry, "dry-run", false, "only say what would go")
	return c
}

func (a *app) newRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore [SESSION...]",
		Short: "Bring sessions back from the trash, or list it",
		Long: `Moves sessions from the trash back to the store and the place that they came
from, with their attachments and outputs. Of several with one id the one that
was removed last comes back. Without SESSION the trash is listed.`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listShelf((*collection.Collection).Trash, "trash")
			}
			return a.restore(c.Context(), args, (*collection.Collection).Trash)
		},
	}
}

func (a *app) remove(ctx context.Context, args []string, f removeFlags) error {
	if f.purge && len(args) == 1 {
		if gone, err := a.purgeFromTrash(ctx, args[0], f.dry); gone || err != nil {
			return err
		}
	}
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
	if f.tree {
		ids = withTrees(all, ids)
	} else if err := alone(all, ids); err != nil {
		return err
	}
	t := taking{a: a, c: c, shelf: c.Trash(), what: "trash", purge: f.purge, dry: f.dry}
	err = t.take(ctx, all, ids)
	a.keep(c)
	return err
}

// alone refuses sessions that others come from which would stay.
func alone(all []collection.Entry, ids []string) error {
	family := collection.FamilyOf(all)
	for _, id := range ids {
		stay := slices.DeleteFunc(family.Below(id), func(e collection.Entry) bool { return slices.Contains(ids, e.ID) })
		if len(stay) > 0 {
			return exit.Refusedf("%s would stay that came from %s (%s): --tree takes them along; nothing was moved",
				term.Plural(len(stay), "session"), term.Line(id), names(stay))
		}
	}
	return nil
}

// purgeFromTrash removes one item for good, when the store has no session that
// the name may mean.
func (a *app) purgeFromTrash(ctx context.Context, name string, dry bool) (bool, error) {
	if _, err := a.Resolve(ctx, name); !errors.Is(err, outcrop.ErrNotFound) {
		return false, nil
	}
	c, err := a.shelved(nil)
	if err != nil {
		return false, err
	}
	i, err := c.Trash().Find(name)
	if err != nil {
		return false, nil
	}
	return true, a.purgeItems(ctx, c, []collection.Item{i}, dry)
}

func (a *app) emptyTrash(ctx context.Context, f removeFlags) error {
	before, err := a.when("older", f.older)
	if err != nil {
		return err
	}
	c, err := a.shelved(nil)
	if err != nil {
		return err
	}
	items, err := c.Trash().List()
	if err != nil {
		return err
	}
	items = slices.DeleteFunc(items, func(i collection.Item) bool { return i.Unfinished() || f.older != "" && i.At >= before })
	if len(items) == 0 {
		a.Note("there is nothing in the trash%s", map[bool]string{true: " that is so old"}[f.older != ""])
		return nil
	}
	return a.purgeItems(ctx, c, items, f.dry)
}

func (a *app) purgeItems(ctx context.Context, c *collection.Collection, items []collection.Item, dry bool) error {
	if !dry {
		m, err := a.lockShelf(ctx, c.Trash())
		if err != nil {
			return err
		}
		defer m.Close()
		for _, i := range items {
			if err := m.Purge(i); err != nil {
				return err
			}
		}
	}
	for _, i := range items {
		if a.Flags.JSON {
			if err := a.Line(answer.New().Text("session", i.ID).TextOrNull("title", i.Title).Number("bytes", i.Bytes).Raw("to", []byte("null")).Bool("dryRun", dry).End()); err != nil {
				return err
			}
			continue
		}
		a.Text(fmt.Sprintf("%s %s\n", term.Line(i.ID), would(dry, "removed for good", "would be removed for good")))
	}
	return nil
}
