package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
)

func (a *app) newForkCommand() *cobra.Command {
	var at int64
	var id, before string
	c := &cobra.Command{
		Use:   "fork TARGET",
		Short: "A new session from a prefix of one",
		Long: `Makes a new session in the store that begins with the events of TARGET up to
and including --at SEQ, or with all of them. Inside a turn the cut moves down to
the end of the last step that lies before it, and the turn is closed as
interrupted; where there is none, and at a user message, the turn is left out.

--before undoes a compaction: the cut lies before it began. It is named by the
seq of its start or of its checkpoint, or as last.`,
		Args: exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("at") && at < 0 {
				return exit.Usagef("--at %d: an event has a seq from 0 on", at)
			}
			if c.Flags().Changed("id") && id == "" {
				return exit.Usagef("--id is empty")
			}
			if before != "" && c.Flags().Changed("at") {
				return exit.Usagef("--at and --before are two places to cut: give one of them")
			}
			if id == "" {
				id = a.Env.NewID()
			}
			return a.fork(c.Context(), args[0], outcrop.Seq(at), before, id)
		},
	}
	c.Flags().Int64Var(&at, "at", everything, "last event that the new session takes over, a `SEQ`")
	noDefault(c, "at")
	c.Flags().StringVar(&before, "before", "", "cut before this `COMPACTION`: a seq of it, or last")
	c.Flags().StringVar(&id, "id", "", "`ID` of the new session (default: a new one)")
	return c
}

func (a *app) fork(ctx context.Context, name string, at outcrop.Seq, before, id string) error {
	t, err := a.Resolve(ctx, name)
	if err != nil {
		return err
	}
	t.NoteOvertaken(ctx)
	var newer *outcrop.Error
	errors.As(store.Overtaken(ctx, t.Store, t.ID), &newer)
	var lost []int
	if before != "" {
		if at, lost, err = a.beforeCompaction(ctx, t, before); err != nil {
			return err
		}
	}
	dst := t.Store
	if _, only := store.OnlyRead(t.Store); only || t.Path != "" {
		// A log file outside a store, or a store that is never written: the
		// child goes into the store.
		if dst, err = a.NewStore(); err != nil {
			return err
		}
		sd, err := t.Read(ctx)
		if err != nil {
			return err
		}
		t.ID = sd.Header().ID
		if err := sd.Close(); err != nil {
			return err
		}
		dst = &across{Store: dst, parent: t.Store, id: t.ID}
	}
	cut, err := store.ForkAt(ctx, dst, t.ID, at, store.Child{ID: id, CreatedAt: a.Now()})
	if err != nil {
		return misplaced(err)
	}
	if a.Flags.JSON {
		o := answer.New().Text("session", id).Text("parent", t.ID).Number("at", int64(cut.Boundary))
		if cut.Turn == 0 {
			o.Raw("openTurn", []byte("null"))
		} else {
			o.Number("openTurn", int64(cut.Turn))
		}
		if before != "" {
			o.Raw("lacks", answer.List(len(lost), func(dst []byte, i int) []byte { return jsonwire.AppendInt(dst, int64(lost[i])) }))
		}
		if o.Bool("closed", cut.Closed); newer != nil {
			o.Text("newer", newer.Path)
		}
		return a.Line(o.End())
	}
	a.Text(id + "\n")
	if len(lost) > 0 {
		a.Note("turns %d to %d are not in the new session", lost[0], lost[len(lost)-1])
	}
	switch {
	case cut.Closed:
		a.Note("turn %d was open there: cut after event %d, the end of its last step, and closed as interrupted", cut.Turn, cut.Boundary)
	case cut.Turn > 0 && cut.Boundary < 0:
		a.Note("turn %d was open there and is left out: the new session is empty", cut.Turn)
	case cut.Turn > 0:
		a.Note("turn %d was open there and is left out: cut after event %d", cut.Turn, cut.Boundary)
	default:
		a.Note("cut after event %d", cut.Boundary)
	}
	return nil
}

// across is a store whose forks may have a parent that lives elsewhere.
type across struct {
	store.Store
	parent store.Store
	id     string
}

func (x *across) Read(ctx context.Context, id string) (store.Stored, error) {
	if id == x.id {
		sd, err := x.parent.Read(ctx, id)
		if err != nil {
			return nil, err
		}
		return brought{sd, store.WithObjects(ctx, x.Store, x.parent, sd.Records())}, nil
	}
	return x.Store.Read(ctx, id)
}

// brought is a log from elsewhere whose attachments come along.
type brought struct {
	store.Stored
	records iter.Seq2[outcrop.Record, error]
}

func (b brought) Records() iter.Seq2[outcrop.Record, error] { return b.records }

// misplaced makes an event that is not there wrong use.
func misplaced(err error) error {
	if outcrop.CodeOf(err) == outcrop.CodeInvalidBoundary {
		return exit.With(2, fmt.Errorf("--at: %w", err))
	}
	return err
}
