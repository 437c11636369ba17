package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// copied is what became of one session.
type copied string

const (
	wasCopied copied = "copied"
	wasThere  copied = "there"   // with the same digest
	differs   copied = "differs" // another log has its id
	notCopied copied = "failed"
)

// convertAll copies every session of the store.
func (a *app) convertAll(ctx context.Context, to string) error {
	src, err := a.OpenStore()
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := a.StoreAt(to, "TO")
	if err != nil {
		return err
	}
	defer dst.Close()
	if src.Address() == dst.Address() {
		return exit.Usagef("the store cannot be copied to itself: TO is %s", term.Line(dst.Address()))
	}
	infos, err := src.List(ctx, store.ListOptions{})
	if err != nil {
		return err
	}
	count := map[copied]int64{}
	for _, in := range infos {
		// An entry of a listing that has no id is a file that is no session.
		what, digest, err := notCopied, (*store.Digest)(nil), errors.New(in.Reason)
		if in.ID != "" {
			what, digest, err = a.convertOne(ctx, dst, src, in.ID)
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err == nil && in.State == store.StateNewer {
			a.NoteOlder(store.Overtaken(ctx, src, in.ID))
		}
		count[what]++
		if err := a.sayCopied(in, what, digest, err); err != nil {
			return err
		}
		if err := a.Out.Flush(); err != nil {
			return err
		}
	}
	if !a.Flags.JSON {
		a.Text(fmt.Sprintf("%s: %s copied, %d there already, %d not copied\n", term.Line(dst.Address()), term.Plural(count[wasCopied], "session"), count[wasThere], count[differs]+count[notCopied]))
	}
	if count[differs]+count[notCopied] > 0 {
		return exit.With(1, nil)
	}
	return nil
}

func (a *app) sayCopied(in store.Info, what copied, d *store.Digest, failed error) error {
	if a.Flags.JSON {
		o := answer.New().Text("session", in.ID).Text("result", string(what))
		if d != nil {
			o.Number("events", int64(d.Len())).Text("digest", "sha256:"+d.Sum())
		}
		if failed != nil {
			o.Text("reason", failed.Error())
		}
		return a.Line(o.End())
	}
	name := in.ID
	if name == "" {
		name = in.Path
	}
	switch {
	case failed != nil:
		a.Problem(fmt.Errorf("%s was not copied: %w", term.Line(name), failed))
	case what == wasCopied:
		a.Text(fmt.Sprintf("%s: %s copied\n", term.Line(name), term.Plural(int64(d.Len()), "event")))
	}
	return nil
}

// convertOne copies one session, or sees that it is there.
func (a *app) convertOne(ctx context.Context, dst, src store.Store, id string) (copied, *store.Digest, error) {
	was, _, err := a.digestOf(ctx, src, id)
	if err != nil {
		return notCopied, nil, err
	}
	is, _, err := a.digestOf(ctx, dst, id)
	done := wasThere
	if errors.Is(err, outcrop.ErrNotFound) {
		done = wasCopied
		if err = store.Copy(ctx, dst, src, id); err == nil {
			is, _, err = a.digestOf(ctx, dst, id)
		}
	}
	switch {
	case err != nil:
		return notCopied, nil, err
	case was.Sum() != is.Sum() && done == wasCopied:
		return notCopied, nil, fmt.Errorf("%w: it changed while it was copied: the copy has %s, it now has %d", store.ErrMoved, term.Plural(int64(is.Len()), "event"), was.Len())
	case was.Sum() != is.Sum():
		return differs, nil, fmt.Errorf("%w: another log with this id is there, with %s", store.ErrExists, term.Plural(int64(is.Len()), "event"))
	}
	return done, is, nil
}
