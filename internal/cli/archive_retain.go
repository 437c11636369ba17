package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newRetainCommand() *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "retain",
		Short: "Do what the retention rules of the configuration ask for",
		Long: `Archives and removes sessions by the rules in [retention] of your configuration:
archive_after, trash_after and purge_after, in days without a new event, and for
the last one in days in the trash. Without rules nothing is to be done, and
nothing is ever done by itself. Sessions with a star stay, and so do those that
are in use or cannot be read; sessions that come from one another go together.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error { return a.retain(c.Context(), dry) },
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would be done")
	return c
}

func (a *app) retain(ctx context.Context, dry bool) error {
	cfg, err := a.LoadConfig("")
	if err != nil {
		return err
	}
	rules := collection.Rules{Archive: cfg.Retention.ArchiveAfter, Trash: cfg.Retention.TrashAfter, Purge: cfg.Retention.PurgeAfter}
	if rules.None() {
		a.Note("there are no rules: set archive_after, trash_after or purge_after in [retention] of your configuration")
		return nil
	}
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	defer st.Close()
	c, err := a.shelved(st)
	if err != nil {
		return err
	}
	all, err := c.List(ctx)
	if err == nil {
		err = a.learnAll(ctx, c, all)
	}
	if err != nil {
		return err
	}
	archived, err := c.Archive().List()
	if err != nil {
		return err
	}
	trashed, err := c.Trash().List()
	if err != nil {
		return err
	}
	deeds := rules.Due(all, archived, trashed, a.Now())
	if len(deeds) == 0 {
		a.Note("nothing is so old")
	}
	if !dry {
		err = a.doDeeds(ctx, c, all, deeds)
		a.keep(c)
		if err != nil {
			return err
		}
	}
	for _, d := range deeds {
		if a.Flags.JSON {
			if err := a.Line(answer.New().Text("session", d.ID).TextOrNull("title", d.Title).Text("do", d.Do).Number("since", d.Since).Number("bytes", d.Bytes).Bool("dryRun", dry).End()); err != nil {
				return err
			}
			continue
		}
		did := map[string]string{"archive": "archived", "trash": "moved to the trash", "purge": "removed for good"}[d.Do]
		a.Text(fmt.Sprintf("%s %s  %s\n", term.Line(d.ID), would(dry, did, "would be "+did), a.Style().Dim("last changed "+term.Time(d.Since)[:10])))
	}
	return nil
}

// doDeeds does what is due: items first, so that what comes to the trash now
// stays there.
func (a *app) doDeeds(ctx context.Context, c *collection.Collection, all []collection.Entry, deeds []collection.Deed) error {
	moves := map[string][]string{}
	var items []collection.Deed
	for _, d := range deeds {
		if d.Entry != nil {
			moves[d.Do] = append(moves[d.Do], d.ID)
		} else {
			items = append(items, d)
		}
	}
	if len(items) > 0 {
		if err := a.doItems(ctx, c, items); err != nil {
			return err
		}
	}
	for what, ids := range moves {
		t := taking{a: a, c: c, shelf: c.Archive(), what: what, silent: true}
		if what == "trash" {
			t.shelf = c.Trash()
		}
		if err := t.take(ctx, all, ids); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) doItems(ctx context.Context, c *collection.Collection, items []collection.Deed) error {
	trash, err := a.lockShelf(ctx, c.Trash())
	if err != nil {
		return err
	}
	archive, err := a.lockShelf(ctx, c.Archive())
	if err != nil {
		return errors.Join(err, trash.Close())
	}
	for _, d := range items {
		switch d.Do {
		case "purge":
			err = trash.Purge(*d.Item)
		case "trash":
			_, err = trash.Receive(archive, *d.Item)
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, archive.Close(), trash.Close())
}
