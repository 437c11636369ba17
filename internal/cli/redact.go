package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/redact"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

func (a *app) newRedactCommand() *cobra.Command {
	var reason string
	var dry bool
	c := &cobra.Command{
		Use:   "redact TARGET SEQ...",
		Short: "Take the content of events out of a log",
		Long: `Rewrites the log of a session without the text of the events SEQ. What goes with
them goes too: the chunks of a reply and its calls, splices of the inbox, other
versions of the same result. Each event keeps its place and gets the SHA-256 of
what was there; an event at the end says what was redacted.

This is the only command that changes what is stored. The old log is removed;
that its bytes are overwritten on the disk is not promised, and backups are not
reached. Somebody who guesses a short text can check the guess by the digest: a
key that was in a log has to be changed anyway.

What may still hold it is listed: events that were made from it or have the same
text, forks and other sessions, files with bytes that a repair cut off. The text
index is deleted and made anew by the next search.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exit.Usagef("%s needs TARGET and SEQ: usage: %s", c.CommandPath(), c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			var seqs []outcrop.Seq
			for _, text := range args[1:] {
				seq, err := seqArg(text)
				if err != nil {
					return err
				}
				seqs = append(seqs, seq)
			}
			return a.redact(c.Context(), args[0], seqs, reason, dry)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, in your `WORDS`; they stay in the log")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would be taken out, and what would still hold it")
	return c
}

// redaction is what became of one.
type redaction struct {
	plan    *redact.Plan
	header  outcrop.Header
	holders []holder
	files   []string // that hold bytes of the session, and stay
	outputs []string // whole outputs that were removed
	removed []string // attachments
	kept    []string
	index   bool // the text index was deleted
}

// holder is another session that may hold what was taken out.
type holder struct{ session, where, why string }

func (a *app) redact(ctx context.Context, name string, seqs []outcrop.Seq, reason string, dry bool) error {
	t, err := a.Resolve(ctx, name)
	if err != nil {
		return err
	}
	defer t.Store.Close()
	var r redaction
	change := func(h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error) {
		s, err := outcrop.Inspect(h, recs, outcrop.Options{})
		if err != nil {
			return nil, err
		}
		r.header = h
		if r.plan, err = redact.Make(s.Log(), seqs); err != nil {
			return nil, err
		}
		made := r.plan.Records(reason, a.Now())
		return made, r.plan.Check(h, made)
	}
	if dry {
		err = a.readAll(ctx, t, change)
	} else if rewriter, ok := t.Store.(store.Rewriter); ok {
		err = rewriter.Rewrite(ctx, t.ID, change)
	} else {
		err = &outcrop.Error{Op: "redact", Path: t.Store.Address(), Seq: -1, Offset: -1, Err: outcrop.ErrUnsupported, Msg: "logs of this store cannot be rewritten"}
	}
	if err != nil {
		if outcrop.CodeOf(err) == outcrop.CodeInvalidBoundary {
			return exit.With(2, err)
		}
		return err
	}
	if err := a.afterwards(ctx, t, &r, dry); err != nil {
		return errors.Join(errors.New("the log is redacted, and what else holds it is not known in full"), err)
	}
	return a.tellRedaction(&r, dry)
}

// readAll reads a log for a dry run.
func (a *app) readAll(ctx context.Context, t *desk.Target, f func(outcrop.Header, iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error)) error {
	sd, err := t.Read(ctx)
	if err != nil {
		return err
	}
	defer sd.Close()
	_, err = f(sd.Header(), sd.Records())
	return store.Located(err, sd)
}

// afterwards cleans up what copies of it the program itself made, and looks for
// others.
func (a *app) afterwards(ctx context.Context, t *desk.Target, r *redaction, dry bool) error {
	if sd, err := t.Store.Read(ctx, t.ID); err == nil {
		if sd.Path() != "" {
			r.files = jsonl.Beside(sd.Path())
		}
		sd.Close()
	}
	if state, err := a.StateHome(); err == nil {
		c := collection.Of(t.Store, collection.Options{State: state, Now: a.Now})
		if err := a.dropOutputs(c, r, dry); err != nil {
			return err
		}
		if err := a.dropIndex(c, r, dry); err != nil {
			return err
		}
	}
	if t.Path != "" {
		return nil // alone: nobody knows its copies
	}
	c := a.collection(t.Store)
	all, err := c.List(ctx)
	if err != nil {
		return err
	}
	if err := a.findHolders(ctx, c, all, r); err != nil {
		return err
	}
	if len(r.plan.Objects) > 0 && !dry {
		named := map[string]bool{}
		for _, id := range r.plan.Objects {
			named[id] = true
		}
		if r.kept, err = a.dropUnnamed(ctx, c, all, named); err != nil {
			return err
		}
		r.removed = slices.DeleteFunc(slices.Clone(r.plan.Objects), func(id string) bool { return slices.Contains(r.kept, id) })
	}
	// The catalogue may have the first prompt as a title.
	for i := range all {
		if all[i].ID == r.header.ID {
			if err := c.Learn(ctx, &all[i]); err != nil {
				return err
			}
		}
	}
	a.keep(c)
	return nil
}

// dropOutputs removes the whole outputs that a redacted result names.
func (a *app) dropOutputs(c *collection.Collection, r *redaction, dry bool) error {
	dir := c.SpillFolder(r.header.ID) + string(filepath.Separator)
	for _, path := range r.plan.Paths(dir) {
		if filepath.Dir(filepath.Clean(path))+string(filepath.Separator) != dir {
			continue
		}
		if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		if !dry {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		r.outputs = append(r.outputs, path)
	}
	return nil
}

// dropIndex deletes the text index: taking one session out leaves parts of its
// text in the file.
func (a *app) dropIndex(c *collection.Collection, r *redaction, dry bool) error {
	for _, end := range [...]string{"", "-wal", "-shm"} {
		if _, err := os.Lstat(c.IndexFile() + end); err != nil {
			continue
		}
		r.index = true
		if dry {
			continue
		}
		if err := os.Remove(c.IndexFile() + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// findHolders lists forks that took over a redacted event, and other sessions
// of the family and copies on the shelves that may hold it.
func (a *app) findHolders(ctx context.Context, c *collection.Collection, all []collection.Entry, r *redaction) error {
	first := outcrop.Seq(-1)
	for _, seq := range r.plan.Seqs {
		if first < 0 || seq < first {
			first = seq
		}
	}
	took := map[string]bool{r.header.ID: true}
	for _, e := range collection.FamilyOf(all).Below(r.header.ID) {
		switch seed := e.Header.SeedLength; {
		case seed != nil && outcrop.Seq(*seed) > first && took[e.Parent()]:
			took[e.ID] = true
			r.holders = append(r.holders, holder{e.ID, "store", "took over the event"})
		default:
			if found, err := a.finds(ctx, c.Store(), e.ID, r.plan); err != nil {
				return err
			} else if found {
				r.holders = append(r.holders, holder{e.ID, "store", "has the same text"})
			}
		}
	}
	if _, err := a.StateHome(); err != nil {
		return nil
	}
	for where, shelf := range map[string]*collection.Shelf{"trash": c.Trash(), "archive": c.Archive()} {
		items, err := shelf.List()
		if err != nil {
			return err
		}
		for _, i := range items {
			switch {
			case i.ID == r.header.ID:
				r.holders = append(r.holders, holder{i.ID, where, "is an older copy"})
			case took[i.Parent] && outcrop.Seq(i.Seed) > first:
				r.holders = append(r.holders, holder{i.ID, where, "took over the event"})
			}
		}
	}
	slices.SortFunc(r.holders, func(x, y holder) int { return strings.Compare(x.session+x.where, y.session+y.where) })
	return nil
}

func (a *app) finds(ctx context.Context, st store.Store, id string, p *redact.Plan) (bool, error) {
	sd, err := st.Read(ctx, id)
	if err != nil {
		return true, nil // what cannot be read may hold it
	}
	defer sd.Close()
	return p.Finds(sd.Records()), ctx.Err()
}

func (a *app) tellRedaction(r *redaction, dry bool) error {
	p := r.plan
	if a.Flags.JSON {
		text := func(list []string) []byte {
			return answer.List(len(list), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, list[i]) })
		}
		return a.Line(answer.New().Text("session", r.header.ID).Raw("seqs", answer.Seqs(p.Seqs)).Number("chunks", int64(p.Chunks)).
			Raw("left", answer.List(len(p.Left), func(dst []byte, i int) []byte {
				l := p.Left[i]
				return append(dst, answer.Inner().Number("seq", int64(l.Seq)).Text("type", string(l.Type)).Text("why", l.Why).End()...)
			})).
			Raw("holders", answer.List(len(r.holders), func(dst []byte, i int) []byte {
				h := r.holders[i]
				return append(dst, answer.Inner().Text("session", h.session).Text("where", h.where).Text("why", h.why).End()...)
			})).
			Raw("files", text(r.files)).Raw("outputsRemoved", text(r.outputs)).Raw("attachmentsRemoved", text(r.removed)).Raw("attachmentsKept", text(r.kept)).
			Bool("indexDeleted", r.index).Bool("dryRun", dry).End())
	}
	var seqs []string
	for _, s := range p.Seqs {
		seqs = append(seqs, itoa(s))
	}
	line := would(dry, "redacted ", "would redact ") + strings.Join(seqs, ", ")
	if p.Chunks > 0 {
		line += " and " + term.Plural(p.Chunks, "chunk")
	}
	for _, l := range term.Wrap(line, term.Width) {
		a.Text(l + "\n")
	}
	for _, path := range r.outputs {
		a.Text(would(dry, "removed ", "would remove ") + term.Line(path) + "\n")
	}
	for _, id := range r.removed {
		a.Text("removed attachment " + term.Line(id) + "\n")
	}
	if r.index {
		a.Text(would(dry, "deleted the text index: the next search makes it anew\n", "would delete the text index\n"))
	}
	if len(p.Left)+len(r.holders)+len(r.files)+len(r.kept) == 0 {
		return nil
	}
	a.Text("\nwhat may still hold it:\n")
	for _, l := range p.Left {
		a.Text(fmt.Sprintf("  event %d, %s: %s\n", l.Seq, term.Line(string(l.Type)), l.Why))
	}
	for _, h := range r.holders {
		a.Text(fmt.Sprintf("  session %s in the %s: %s\n", term.Line(h.session), h.where, h.why))
	}
	for _, f := range r.files {
		a.Text("  " + term.Line(f) + ": bytes that a repair cut off\n")
	}
	for _, id := range r.kept {
		a.Text("  attachment " + term.Line(id) + ": another session names it\n")
	}
	return nil
}
