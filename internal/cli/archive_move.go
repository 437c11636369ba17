package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/search"
	"github.com/outcrop-dev/outcrop/store"
)

// taking is a move of sessions from the store to a shelf.
type taking struct {
	a      *app
	c      *collection.Collection
	shelf  *collection.Shelf
	what   string // "trash" or "archive"
	purge  bool   // and from there into nothing
	dry    bool
	silent bool // somebody else tells
}

// nowhere is where a session is that was removed for good.
const nowhere = ""

// take moves sessions to the shelf, all of them locked before the first one
// goes.
func (t *taking) take(ctx context.Context, all []collection.Entry, ids []string) error {
	chosen := make([]collection.Entry, 0, len(ids))
	for i := range all {
		if slices.Contains(ids, all[i].ID) {
			chosen = append(chosen, all[i])
		}
	}
	if err := t.a.learnAll(ctx, t.c, chosen); err != nil {
		return err
	}
	if t.dry {
		to := t.what
		if t.purge {
			to = nowhere
		}
		for i := range chosen {
			if err := t.tell(&chosen[i], to); err != nil {
				return err
			}
		}
		return nil
	}
	mover, ok := t.c.Store().(store.Mover)
	if !ok {
		return collection.CannotMove(t.c.Store())
	}
	held := make([]store.Held, 0, len(chosen))
	defer func() {
		for _, h := range held {
			h.Close()
		}
	}()
	for i := range chosen {
		h, err := mover.Hold(ctx, chosen[i].ID)
		if err != nil {
			return err
		}
		held = append(held, h)
	}
	m, err := t.a.lockShelf(ctx, t.shelf)
	if err != nil {
		return err
	}
	defer m.Close()
	for i := range chosen {
		item, err := m.Take(ctx, t.c.Store(), held[i], chosen[i])
		if err != nil {
			return err
		}
		to := t.what
		if t.purge {
			if err := m.Purge(item); err != nil {
				return err
			}
			to = nowhere
		}
		if err := t.tell(&chosen[i], to); err != nil {
			return err
		}
	}
	return errors.Join(t.dropObjects(ctx, all, chosen), t.a.forgetInIndex(ctx, t.c, chosen))
}

func (t *taking) tell(e *collection.Entry, to string) error {
	a := t.a
	if t.silent {
		return nil
	}
	if a.Flags.JSON {
		o := answer.New().Text("session", e.ID).TextOrNull("title", e.Title).Number("bytes", e.Bytes)
		if to == nowhere {
			o.Raw("to", []byte("null"))
		} else {
			o.Text("to", to)
		}
		return a.Line(o.Bool("dryRun", t.dry).End())
	}
	what := "moved to the " + to
	if to == nowhere {
		what = "removed for good"
	}
	what = would(t.dry, what, "would be "+what)
	a.Text(fmt.Sprintf("%s %s  %s\n", term.Line(e.ID), what, a.Style().Dim(term.Cut(term.OneLine(e.Title), 40))))
	return nil
}

// dropObjects removes from the store what only the moved sessions named. When
// one of the others cannot be read to its end nobody knows what it names, and
// everything stays.
func (t *taking) dropObjects(ctx context.Context, all, moved []collection.Entry) error {
	named := map[string]bool{}
	for i := range moved {
		for _, id := range moved[i].Objects {
			named[id] = true
		}
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(e collection.Entry) bool {
		return slices.ContainsFunc(moved, func(m collection.Entry) bool { return m.ID == e.ID && m.Path == e.Path })
	})
	kept, err := t.a.dropUnnamed(ctx, t.c, rest, named)
	if len(kept) > 0 {
		t.a.Note("%s of them stay in the store: %s", term.Plural(len(kept), "attachment"), "other sessions name them, or cannot be read")
	}
	return err
}

// dropUnnamed removes attachments that none of some sessions names, and returns
// those that stay.
func (a *app) dropUnnamed(ctx context.Context, c *collection.Collection, sessions []collection.Entry, named map[string]bool) (kept []string, err error) {
	objects, ok := store.ObjectsOf(c.Store()).(store.ObjectRemover)
	if len(named) == 0 || !ok {
		return nil, nil
	}
	if err := a.learnAll(ctx, c, sessions); err != nil {
		return nil, err
	}
	unsure := false
	others := map[string]bool{}
	for i := range sessions {
		e := &sessions[i]
		unsure = unsure || !e.Whole || e.State == store.StateDamaged || e.State == store.StateNewer
		for _, id := range e.Objects {
			others[id] = true
		}
	}
	for id := range named {
		if unsure || others[id] {
			kept = append(kept, id)
			continue
		}
		if err := objects.RemoveObject(ctx, id); err != nil {
			return kept, err
		}
	}
	slices.Sort(kept)
	return kept, nil
}

// lockShelf takes a shelf and tells what of earlier moves is left.
func (a *app) lockShelf(ctx context.Context, s *collection.Shelf) (*collection.Moves, error) {
	m, err := s.Lock(ctx, a.openRecorded)
	if err != nil {
		return nil, err
	}
	for _, left := range m.Left {
		a.Note("%s", exit.Explain(left))
	}
	return m, nil
}

// forgetInIndex takes sessions out of the text index, when there is one.
func (a *app) forgetInIndex(ctx context.Context, c *collection.Collection, gone []collection.Entry) error {
	if _, err := os.Stat(c.IndexFile()); err != nil {
		return nil
	}
	ix, err := search.Open(ctx, c.IndexFile(), search.Options{Logger: a.Logger})
	if err != nil {
		return err
	}
	var errs []error
	for i := range gone {
		errs = append(errs, ix.Forget(ctx, c.Store().Address(), gone[i].ID))
	}
	return errors.Join(append(errs, ix.Close())...)
}

// names lists a few sessions for a sentence.
func names(entries []collection.Entry) string {
	var out []string
	for i := range entries {
		if i == 4 {
			out = append(out, fmt.Sprintf("and %d more", len(entries)-i))
			break
		}
		out = append(out, term.Line(entries[i].ID))
	}
	return strings.Join(out, ", ")
}
