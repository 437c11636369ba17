package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// diskFlags are the flags of du.
type diskFlags struct {
	by    string
	limit int
}

func (a *app) newDiskCommand() *cobra.Command {
	var f diskFlags
	c := &cobra.Command{
		Use:   "du [SESSION]",
		Short: "What sessions take on the disk",
		Long: `Says how many bytes the sessions take: their logs with what lies beside them,
and the whole outputs of their tools; then what attachments, trash, archive,
index and catalogue take. --by tree adds up a session and those that come from
it, --by workspace the sessions of a directory. With SESSION its tree alone.`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("%s does not take %s: usage: %s", c.CommandPath(), term.Quote(args[1]), c.UseLine())
			}
			if !slices.Contains([]string{"session", "tree", "workspace"}, f.by) {
				return exit.Usagef("--by %s: use session, tree or workspace", term.Quote(f.by))
			}
			if f.limit < 1 {
				return exit.Usagef("--limit %d: give a number from 1 on", f.limit)
			}
			return a.disk(c.Context(), args, f)
		},
	}
	c.ValidArgsFunction = a.completeTarget
	c.Flags().StringVar(&f.by, "by", "session", "one row a `WHAT`: session, tree or workspace")
	c.Flags().IntVar(&f.limit, "limit", 20, "the `N` largest")
	return c
}

// diskRow is a row of du.
type diskRow struct {
	key        string // id, or directory
	title      string
	sessions   int
	log, spill int64
}

func (a *app) disk(ctx context.Context, args []string, f diskFlags) error {
	st, ids, err := a.inStore(ctx, args)
	if err != nil {
		return err
	}
	defer st.Close()
	c := a.collection(st)
	all, err := c.List(ctx)
	if err != nil {
		return err
	}
	family := collection.FamilyOf(all)
	if len(ids) > 0 {
		tree := append(ids, withTrees(all, ids)...)
		all = slices.DeleteFunc(all, func(e collection.Entry) bool { return !slices.Contains(tree, e.ID) })
	}
	rows := map[string]*diskRow{}
	var sum diskRow
	for i := range all {
		e := &all[i]
		log, spill, err := c.SessionRoom(e)
		if err != nil {
			return err
		}
		key := e.ID
		switch {
		case e.ID == "":
			key = e.Path
		case f.by == "tree":
			key = family.Root(e.ID)
		}
		if f.by == "workspace" {
			key = e.Cwd
		}
		r := rows[key]
		if r == nil {
			r = &diskRow{key: key}
			rows[key] = r
		}
		if key == e.ID {
			r.title = e.Title
		}
		for _, to := range [...]*diskRow{r, &sum} {
			to.sessions++
			to.log += log
			to.spill += spill
		}
	}
	return a.diskAnswer(ctx, c, rows, sum, f, len(ids) > 0)
}

func (a *app) diskAnswer(ctx context.Context, c *collection.Collection, rows map[string]*diskRow, sum diskRow, f diskFlags, part bool) error {
	sorted := make([]*diskRow, 0, len(rows))
	for _, r := range rows {
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(x, y *diskRow) int {
		return cmp.Or(cmp.Compare(y.log+y.spill, x.log+x.spill), strings.Compare(x.key, y.key))
	})
	more := len(sorted) - f.limit
	for _, r := range sorted[:min(len(sorted), f.limit)] {
		if a.Flags.JSON {
			o := answer.New()
			if f.by == "workspace" {
				o.TextOrNull("cwd", r.key)
			} else {
				o.Text("session", r.key).TextOrNull("title", r.title)
			}
			if err := a.Line(o.Number("sessions", int64(r.sessions)).Number("logs", r.log).Number("outputs", r.spill).End()); err != nil {
				return err
			}
			continue
		}
		name := term.Line(r.key)
		if f.by == "workspace" {
			if name = term.Line(a.short(r.key)); name == "" {
				name = "(no workspace)"
			}
		}
		if f.by != "session" {
			name += "  " + term.Plural(r.sessions, "session")
		} else if r.title != "" {
			name += "  " + term.OneLine(r.title)
		}
		a.Text(term.PadLeft(term.Size(r.log+r.spill), 8) + "  " + term.Cut(name, term.Width-10) + "\n")
	}
	if more > 0 {
		a.Note("%d more: --limit shows them", more)
	}
	if part {
		return nil
	}
	room, err := c.Room(ctx)
	if err != nil {
		return err
	}
	// Outputs of sessions that are gone are in the folder too.
	room.Sessions = sum.log
	if a.Flags.JSON {
		return a.Line(answer.New().Raw("total", answer.Inner().Number("sessions", int64(sum.sessions)).Number("logs", room.Sessions).Number("outputs", room.Spill).
			Number("attachments", room.Attachments).Number("trash", room.Trash).Number("archive", room.Archive).
			Number("index", room.Index).Number("catalogue", room.Catalogue).Number("bytes", room.Total()).End()).End())
	}
	if len(sorted) > 0 {
		a.Text("\n")
	}
	for _, l := range []struct {
		name  string
		bytes int64
	}{
		{"logs of " + term.Plural(sum.sessions, "session"), room.Sessions}, {"outputs of tools", room.Spill}, {"attachments", room.Attachments},
		{"trash", room.Trash}, {"archive", room.Archive}, {"search index", room.Index}, {"catalogue", room.Catalogue}, {"all", room.Total()},
	} {
		a.Text(term.PadLeft(term.Size(l.bytes), 8) + "  " + l.name + "\n")
	}
	return nil
}
