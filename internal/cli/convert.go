package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

func (a *app) newConvertCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "convert TARGET TO",
		Short: "Copy sessions to another store or encoding, checked by digest",
		Long: `Copies a session as it is to TO: a store (jsonl:DIR, jsonl+plain:DIR,
sqlite:FILE, nats://HOST/NAME, a folder) or a log file, whose ending says its
encoding (.jsonl or .jsonl.zstd). The copy is read back and compared by a digest
of all events; nothing is left of one that differs. The session that is copied
does not change. Attachments go along between stores that keep some.

With --all there is no TARGET: every session of the store is copied to the store
TO. Those that are there already, with the same digest, are passed over, so that
a copy that was interrupted goes on where it was.`,
		Args: func(_ *cobra.Command, args []string) error {
			if all {
				return exactly("TO")(nil, args)
			}
			return exactly("TARGET", "TO")(nil, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if all {
				return a.convertAll(c.Context(), args[0])
			}
			return a.convert(c.Context(), args[0], args[1])
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every session of the store")
	return c
}

func (a *app) convert(ctx context.Context, name, to string) error {
	t, err := a.Resolve(ctx, name)
	if err != nil {
		return err
	}
	sd, err := t.Read(ctx)
	if err != nil {
		return err
	}
	id := sd.Header().ID
	if err := sd.Close(); err != nil {
		return err
	}
	dst, err := a.StoreAt(to, "TO")
	if err != nil {
		return err
	}
	defer dst.Close()
	if err := store.Copy(ctx, dst, t.Store, id); err != nil {
		return err
	}
	// Copy compared what it wrote with what it read. This is the same from
	// outside: both logs as anybody reads them.
	was, tail, err := a.digestOf(ctx, t.Store, id)
	if err != nil {
		return err
	}
	is, _, err := a.digestOf(ctx, dst, id)
	if err != nil {
		return err
	}
	if was.Sum() != is.Sum() {
		return exit.Refusedf("%s changed while it was copied: the copy in %s holds %s, it now has %s; convert it again under another name",
			term.Quote(id), term.Line(dst.Address()), term.Plural(int64(is.Len()), "event"), term.Plural(int64(was.Len()), "event"))
	}
	a.tornNote(t, tail)
	if a.Flags.JSON {
		return a.Line(answer.New().Text("session", id).Text("from", t.Store.Address()).Text("to", dst.Address()).
			Number("events", int64(is.Len())).Text("digest", "sha256:"+is.Sum()).End())
	}
	a.Text(fmt.Sprintf("%s: %s copied to %s\nsha256 %s, the same on both sides\n", term.Line(id), term.Plural(int64(is.Len()), "event"), term.Line(dst.Address()), is.Sum()))
	return nil
}

// digestOf is the digest of a stored log.
func (a *app) digestOf(ctx context.Context, st store.Store, id string) (*store.Digest, store.Tail, error) {
	sd, err := st.Read(ctx, id)
	if err != nil {
		return nil, store.Tail{}, err
	}
	defer sd.Close()
	d := &store.Digest{}
	for r, err := range a.watched(sd, records.Through(ctx, sd.Records(), -1)) {
		if err != nil {
			return nil, store.Tail{}, err
		}
		d.Add(r)
	}
	return d, sd.Tail(), nil
}
