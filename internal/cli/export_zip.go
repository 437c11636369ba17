package cli

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop/exchange/portable"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// exportZip packs a session, with --tree also those that come from it.
func (a *app) exportZip(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	if o.Before > 0 {
		return exported{}, exit.Usagef("--at does not go with zip, which is the whole session: fork it there first (outcrop fork TARGET --at %d)", o.at)
	}
	ids := []string{t.ID}
	if o.tree {
		if t.Path != "" {
			return exported{}, exit.Usagef("--tree needs a session of a store: a log file has no relatives")
		}
		var err error
		if ids, err = portable.Tree(ctx, t.Store, t.ID); err != nil {
			return exported{}, err
		}
	}
	rep, err := portable.Write(ctx, to.w, t.Store, ids, portable.Options{Raw: o.Raw})
	if err != nil {
		return exported{}, exit.Unreadable(err)
	}
	done := exported{masked: rep.Masked}
	if n := len(rep.Sessions); n > 1 {
		done.notes = append(done.notes, term.Plural(n, "session")+" packed")
	}
	if rep.Masked > 0 {
		done.notes = append(done.notes, fmt.Sprintf("the package holds a masked copy, %s: it is not the session itself", term.Quote(rep.Sessions[0].ID)))
	}
	if n := len(rep.Missing); n > 0 {
		done.notes = append(done.notes, term.Plural(n, "attachment")+" that the log names missing in the store, and so in the package")
	}
	return done, nil
}
