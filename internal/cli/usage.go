package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/store"
)

func (a *app) newUsageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "usage [TARGET]",
		Short: "Tokens and cost: of each request, session, tree of sessions",
		Long: `Counts what model calls took, in four classes of tokens, and what they cost by
the prices in the configuration. With TARGET: each call of the session, then the
session and those that were forked from it or started by it. Without: every
session of the store.

Failed attempts count with what their provider reported, calls for compaction
too. What a fork took over belongs to the session that it was forked from, and
is counted once. A cost is "?" when the price or the usage of a call is not
known, and begins with ">" when only a part of it is. The notes "new header" and
"new edit" say why a request could not begin as the one before it.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("%s does not take %s: usage: %s", c.CommandPath(), term.Quote(args[1]), c.UseLine())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			price, err := a.prices()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.usageOfAll(c.Context(), price)
			}
			return a.usageOf(c.Context(), args[0], price)
		},
	}
	c.ValidArgsFunction = a.completeTarget
	return c
}

// prices are those of the configuration.
func (a *app) prices() (usage.Price, error) {
	cfg, err := a.LoadConfig("")
	if err != nil {
		return nil, err
	}
	return func(provider, model string) *llm.Price {
		if p := cfg.Providers[provider]; p != nil {
			if m := p.Models[model]; m != nil {
				return m.Price
			}
		}
		return nil
	}, nil
}

// spent is a row of the answer: a session.
type spent struct {
	id, parent string
	reason     string // why the log, or a part of it, is not counted
	usage.Account
}

// usageOfAll answers for the whole store. A log that cannot be read to its end
// counts as far as it can, and says so.
func (a *app) usageOfAll(ctx context.Context, price usage.Price) error {
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	infos, err := st.List(ctx, store.ListOptions{})
	if err != nil {
		return err
	}
	if len(infos) == 0 && !a.Flags.JSON {
		a.Note("there is no session in %s", term.Line(st.Address()))
		return nil
	}
	var ledger usage.Ledger
	rows, err := a.spentBy(ctx, st, infos, price, ledger.Add)
	if err != nil {
		return err
	}
	return a.usageRows(rows, ledger.Sum())
}

// spentBy reads sessions one after the other.
func (a *app) spentBy(ctx context.Context, st store.Store, infos []store.Info, price usage.Price, each func(*usage.Call)) ([]spent, error) {
	rows := make([]spent, 0, len(infos))
	for _, in := range infos {
		row := spent{id: in.ID, parent: parentOf(in.Header)}
		if in.ID == "" {
			row.id, row.reason = in.Path, in.Reason
			rows = append(rows, row)
			continue
		}
		err := a.calls(ctx, st, in.ID, price, func(c *usage.Call) {
			row.Add(c)
			each(c)
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch {
		case err != nil:
			row.reason = exit.Explain(err)
		case in.State == store.StateNewer:
			row.reason = in.Reason
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func parentOf(h outcrop.Header) string {
	if h.ParentSession == nil {
		return ""
	}
	return *h.ParentSession
}

// calls gives every call of a stored session. The error is why the log ends
// early; what came before it counts.
func (a *app) calls(ctx context.Context, st store.Store, id string, price usage.Price, each func(*usage.Call)) error {
	sd, err := st.Read(ctx, id)
	if err != nil {
		return err
	}
	defer sd.Close()
	scan := usage.NewScan(sd.Header(), price, func(c usage.Call) { each(&c) })
	var damage error
	for r, err := range a.watched(sd, records.Through(ctx, sd.Records(), -1)) {
		if err != nil {
			if damage == nil {
				damage = store.Located(err, sd)
			}
			if r.Type == "" && r.Run == nil {
				continue
			}
		}
		scan.Add(r)
	}
	scan.End()
	return damage
}

// usageOf answers for one session: its calls, then its tree.
func (a *app) usageOf(ctx context.Context, name string, price usage.Price) error {
	t, err := a.Resolve(ctx, name)
	if err != nil {
		return err
	}
	sd, err := t.Read(ctx)
	if err != nil {
		return err
	}
	h := sd.Header()
	if err := sd.Close(); err != nil {
		return err
	}
	top := spent{id: h.ID, parent: parentOf(h)}
	var failed error
	list := a.newCallList(h.ID)
	damage := a.calls(ctx, t.Store, t.ID, price, func(c *usage.Call) {
		if top.Add(c); !c.Inherited && failed == nil {
			failed = list.add(c)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil {
		return failed
	}
	if damage != nil {
		a.missing = exit.With(3, fmt.Errorf("not everything is counted: %w", damage))
	}
	below, err := a.below(ctx, t, h.ID)
	if err != nil {
		return err
	}
	rows, err := a.spentBy(ctx, t.Store, below, price, func(*usage.Call) {})
	if err != nil {
		return err
	}
	rows = slices.Insert(rows, 0, top)
	var all usage.Sum
	for i := range rows {
		all.AddSum(rows[i].Own)
	}
	if list.lines > 0 && !a.Flags.JSON {
		a.Text("\n")
	}
	return a.usageRows(rows, all)
}

// below lists the sessions that come from one, their own ones behind each,
// oldest first.
func (a *app) below(ctx context.Context, t *desk.Target, id string) ([]store.Info, error) {
	if t.Path != "" {
		return nil, nil // a log file alone
	}
	infos, err := t.Store.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	children := map[string][]store.Info{}
	for _, in := range slices.Backward(infos) {
		if p := parentOf(in.Header); p != "" && in.ID != "" {
			children[p] = append(children[p], in)
		}
	}
	var out []store.Info
	seen := map[string]bool{id: true} // headers can name each other in a circle
	stack := slices.Clone(children[id])
	slices.Reverse(stack)
	for len(stack) > 0 {
		in := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[in.ID] {
			continue
		}
		seen[in.ID] = true
		out = append(out, in)
		for _, c := range slices.Backward(children[in.ID]) {
			stack = append(stack, c)
		}
	}
	return out, nil
}
