package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream"
)

func (a *app) newRealmCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "realm",
		Short: "Make, check and clean a realm: a store on NATS JetStream",
		Long: `A realm keeps sessions on NATS servers, so that many machines share them.
ADDRESS is nats://HOST[:PORT][,HOST[:PORT]...]/NAME, or tls:// where a link
without TLS is refused; without it the store of --store or OUTCROP_STORE is
meant. Who this program is to the servers is said by --creds or [nats] of the
configuration.`,
	}
	c.AddCommand(a.newRealmInitCommand(), a.newRealmCheckCommand(), a.newRealmGCCommand())
	return c
}

// realmAddress is the ADDRESS of a realm command.
func (a *app) realmAddress(args []string) (string, error) {
	address, origin := "", "ADDRESS"
	if len(args) > 0 {
		address = args[0]
	} else {
		var err error
		if address, origin, err = a.StoreAddress(); err != nil {
			return "", err
		}
	}
	if !strings.HasPrefix(address, "nats://") && !strings.HasPrefix(address, "tls://") {
		return "", exit.Usagef("%s %s is no realm: write nats://HOST[:PORT]/NAME", origin, term.Quote(address))
	}
	return address, nil
}

// realm opens the realm of a realm command.
func (a *app) realm(args []string, set ...func(*jetstream.Options)) (*jetstream.Store, error) {
	address, err := a.realmAddress(args)
	if err != nil {
		return nil, err
	}
	o, err := a.RealmOptions()
	if err != nil {
		return nil, err
	}
	for _, f := range set {
		f(&o)
	}
	s, err := jetstream.New(address, o)
	return s, exit.Misuse(err)
}

func atMostOne(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return exit.Usagef("there is one %s at most, not %d", name, len(args))
		}
		return nil
	}
}

func (a *app) newRealmInitCommand() *cobra.Command {
	var ro jetstream.RealmOptions
	c := &cobra.Command{
		Use:   "init [ADDRESS]",
		Short: "Make a realm",
		Long: `Makes the streams and buckets of a realm and records how it was made. The numbers
are fixed from then on. Doing it again with the same numbers completes a realm
that was begun and changes nothing in one that is there.`,
		Args: atMostOne("ADDRESS"),
		RunE: func(c *cobra.Command, args []string) error { return a.realmInit(c.Context(), args, ro) },
	}
	f := c.Flags()
	f.IntVar(&ro.Streams, "streams", 16, "how many streams share the sessions, 1 to 1024")
	f.IntVar(&ro.Replicas, "replicas", 0, "on how many servers everything is, 3 or 5 (default 3)")
	f.BoolVar(&ro.Single, "single", false, "on one server only: everything is lost with it")
	f.DurationVar(&ro.Lease, "lease", 15*time.Second, "after how long a worker without a sign of life may be replaced")
	f.Int64Var(&ro.MaxBytes, "max-bytes", 0, "limit of each stream in bytes; a full one refuses (default none)")
	return c
}

func (a *app) realmInit(ctx context.Context, args []string, ro jetstream.RealmOptions) error {
	address, err := a.realmAddress(args)
	if err != nil {
		return err
	}
	o, err := a.RealmOptions()
	if err != nil {
		return err
	}
	r, err := jetstream.Init(ctx, address, ro, o)
	if err != nil {
		return exit.Misuse(err)
	}
	if a.Flags.JSON {
		return a.Line(realmJSON(answer.New().Text("realm", address), &r).End())
	}
	a.Text(fmt.Sprintf("%s: %s, %s, a lease of %s\n", term.Line(address), term.Plural(int64(r.Streams), "stream"), replicas(r.Replicas), r.Lease))
	if r.Sync.State != jetstream.SyncAlways {
		a.Note("whether the servers sync each write is %s: %s realm check with rights on the system account finds out", r.Sync.State, a.Env.Program)
	}
	return nil
}

func replicas(n int) string {
	if n == 1 {
		return "1 copy of everything"
	}
	return term.Plural(int64(n), "replica")
}

func realmJSON(o *answer.Object, r *jetstream.Realm) *answer.Object {
	return o.Number("streams", int64(r.Streams)).Number("replicas", int64(r.Replicas)).Number("leaseMs", r.Lease.Milliseconds()).
		Number("createdAt", r.Created).Text("sync", string(r.Sync.State))
}

func (a *app) newRealmCheckCommand() *cobra.Command {
	var system string
	c := &cobra.Command{
		Use:   "check [ADDRESS]",
		Short: "See whether a realm can keep what it acknowledges",
		Long: `Looks at every stream and bucket of a realm: storage, limits, replicas, leaders.
With rights on the system account (--system-creds, or system_creds or system_user
in [nats] of the configuration) every server is asked whether it syncs each write,
and the verdict is recorded, where every opening of the realm sees it.
The exit code is 1 when something breaks the promise.`,
		Args: atMostOne("ADDRESS"),
		RunE: func(c *cobra.Command, args []string) error { return a.realmCheck(c.Context(), args, system) },
	}
	c.Flags().StringVar(&system, "system-creds", "", "credentials `FILE` of a user of the system account")
	return c
}

func (a *app) realmCheck(ctx context.Context, args []string, system string) error {
	s, err := a.realm(args, func(o *jetstream.Options) {
		o.Unsynced = func(string) {} // it finds that out, and says it
	})
	if err != nil {
		return err
	}
	defer s.Close()
	sys, err := a.SystemAuth(system)
	if err != nil {
		return err
	}
	r, err := s.Check(ctx, sys)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		err = a.Line(checkJSON(s.Address(), &r))
	} else {
		a.Text(checkText(s.Address(), &r))
	}
	if err == nil && !r.OK() {
		err = exit.With(1, nil)
	}
	return err
}

func checkJSON(address string, r *jetstream.Report) []byte {
	o := realmJSON(answer.New().Text("realm", address).Bool("ok", r.OK()), &r.Realm)
	if r.Realm.Sync.Checked != 0 {
		o.Number("syncCheckedAt", r.Realm.Sync.Checked)
	}
	return o.Number("sessions", int64(r.Sessions)).Number("messages", int64(r.Messages)).Number("bytes", int64(r.Bytes)).
		Raw("servers", answer.List(len(r.Servers), func(dst []byte, i int) []byte {
			in := answer.Inner().Text("name", r.Servers[i])
			for _, sv := range r.Realm.Sync.Servers {
				if sv.Name == r.Servers[i] {
					in.Bool("syncAlways", sv.Always)
				}
			}
			return append(dst, in.End()...)
		})).
		Raw("findings", answer.List(len(r.Findings), func(dst []byte, i int) []byte {
			f := r.Findings[i]
			in := answer.Inner().Text("where", f.Where).Text("what", f.What).Bool("warning", f.Warning)
			if f.Hint != "" {
				in.Text("hint", f.Hint)
			}
			return append(dst, in.End()...)
		})).End()
}

func checkText(address string, r *jetstream.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s, a lease of %s\n", term.Line(address), term.Plural(int64(r.Realm.Streams), "stream"), replicas(r.Realm.Replicas), r.Realm.Lease)
	fmt.Fprintf(&b, "%s in %s, %s\n", term.Plural(int64(r.Sessions), "session"), term.Plural(int64(r.Messages), "message"), term.Size(int64(r.Bytes)))
	fmt.Fprintf(&b, "servers %s; each write synced: %s", term.Line(strings.Join(r.Servers, ", ")), r.Realm.Sync.State)
	if at := r.Realm.Sync.Checked; at != 0 {
		fmt.Fprintf(&b, " (asked %s)", time.UnixMilli(at).UTC().Format(time.RFC3339))
	}
	b.WriteByte('\n')
	for _, f := range r.Findings {
		mark := "not ok"
		if f.Warning {
			mark = "warning"
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", mark, term.Line(f.Where), term.Line(f.What))
		if f.Hint != "" {
			for _, l := range term.Wrap(term.OneLine(f.Hint), term.Width-9) {
				b.WriteString("         " + l + "\n")
			}
		}
	}
	if r.OK() {
		b.WriteString("ok\n")
	}
	return b.String()
}

// lacking says which parts of a realm a list could not ask, and is the exit code
// of a list that is not whole.
func (a *app) lacking(st store.Store, entries []collection.Entry) error {
	if _, ok := st.(*jetstream.Store); !ok {
		return nil
	}
	lacks := false
	for i := range entries {
		if e := &entries[i]; e.ID == "" {
			lacks = true
			a.Problem(errors.New(e.Reason))
		}
	}
	if lacks {
		return exit.With(3, nil)
	}
	return nil
}

func (a *app) newRealmGCCommand() *cobra.Command {
	var o jetstream.GCOptions
	c := &cobra.Command{
		Use:   "gc [ADDRESS]",
		Short: "Remove what nothing needs from a realm",
		Long: `Removes what was left behind: earlier logs of rewritten and removed sessions that
could not be purged, and texts in the object bucket that no message names. No
session changes, and no attachment goes. The header fields of all messages are
read. What is damaged is named and let be, with everything that may belong to it;
the exit code is 3 then.`,
		Args: atMostOne("ADDRESS"),
		RunE: func(c *cobra.Command, args []string) error { return a.realmGC(c.Context(), args, o) },
	}
	c.Flags().DurationVar(&o.Older, "older", 24*time.Hour, "let younger objects be; at least 1h")
	c.Flags().BoolVar(&o.Dry, "dry-run", false, "only say what would be removed")
	return c
}

func (a *app) realmGC(ctx context.Context, args []string, o jetstream.GCOptions) error {
	s, err := a.realm(args)
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := s.GC(ctx, o)
	if err != nil {
		return exit.Misuse(err)
	}
	if a.Flags.JSON {
		err = a.Line(answer.New().Text("realm", s.Address()).Bool("dryRun", o.Dry).Number("logs", int64(d.Logs)).
			Number("objects", int64(d.Objects)).Number("bytes", d.Bytes).Number("kept", int64(d.Kept)).
			Raw("damaged", answer.List(len(d.Left), func(dst []byte, i int) []byte {
				return append(dst, answer.Inner().TextOrNull("session", d.Left[i].Session).Text("reason", d.Left[i].Msg).End()...)
			})).End())
	} else {
		verb := "removed"
		if o.Dry {
			verb = "would be removed"
		}
		a.Text(fmt.Sprintf("%s, %s, %s %s\n", term.Plural(int64(d.Logs), "earlier log"), term.Plural(int64(d.Objects), "object"), term.Size(d.Bytes), verb))
		if d.Kept > 0 {
			a.Text(fmt.Sprintf("%s that nothing is known to name kept, because of what is damaged\n", term.Plural(int64(d.Kept), "object")))
		}
	}
	for _, left := range d.Left {
		a.Problem(left)
	}
	if err == nil && len(d.Left) > 0 {
		err = exit.With(3, nil)
	}
	return err
}
