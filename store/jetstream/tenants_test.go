package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func TestTenantsAreKeptApart(t *testing.T) {
	t.Parallel()
	// One by its account, two by what their users may name.
	rights := func(realm string) string {
		var may strings.Builder
		stream := func(name string) {
			for _, api := range []string{"STREAM.INFO", "STREAM.CREATE", "STREAM.MSG.GET", "STREAM.PURGE", "DIRECT.GET"} {
				fmt.Fprintf(&may, "%q, ", "$JS.API."+api+"."+name)
			}
			fmt.Fprintf(&may, "%q, %q, %q, ", "$JS.API.DIRECT.GET."+name+".>", "$JS.API.CONSUMER.*."+name+".>", "$JS.API.CONSUMER.MSG.NEXT."+name+".>")
		}
		stream("outcrop_" + realm + "_log_0")
		stream("outcrop_" + realm + "_log_1")
		stream("KV_outcrop_" + realm)
		stream("KV_outcrop_" + realm + "_workers")
		stream("OBJ_outcrop_" + realm)
		fmt.Fprintf(&may, "\"$KV.outcrop_%[1]s.>\", \"$KV.outcrop_%[1]s_workers.>\", \"$O.outcrop_%[1]s.>\", \"outcrop.%[1]s.>\", \"$JS.API.INFO\"", realm)
		return "{publish: {allow: [" + may.String() + "]}, subscribe: {allow: [\"_INBOX_" + realm + ".>\", \"_INBOX.>\", \"outcrop." + realm + ".>\"]}}"
	}
	c := natstest.Start(t, natstest.Options{Accounts: `
accounts {
  ONE { jetstream: enabled, users: [
    {user: app, password: app}
    {user: a, password: a, permissions: ` + rights("a") + `}
    {user: b, password: b, permissions: ` + rights("b") + `}
  ] }
  TWO { jetstream: enabled, users: [{user: c, password: c}] }
  SYS { users: [{user: sys, password: sys}] }
}
system_account: SYS
`})
	as := func(user string) Options {
		o := quick()
		o.Auth = Auth{User: user, Password: user}
		return o
	}
	for user, realm := range map[string]string{"a": "a", "b": "b", "c": "a"} {
		_, err := Init(bg, c.Address(realm), RealmOptions{Streams: 2, Single: true, Lease: time.Second}, as(user))
		ok(t, err)
		s := open(t, c.Address(realm), as(user))
		l := create(t, s, "of-"+user)
		ok(t, storetest.Turn(l.Session(), 1))
		ok(t, l.Close(bg))
		id, err := s.Objects().Put(bg, []byte("of "+user))
		ok(t, err)
		_, err = s.Objects().Get(bg, id)
		ok(t, err)
		sameLog(t, s, l.Session())
		infos, err := s.List(bg, store.ListOptions{Full: true})
		ok(t, err)
		if len(infos) != 1 || infos[0].ID != "of-"+user {
			t.Fatalf("%s sees %+v", user, infos)
		}
	}
	// Across: by permission, and by account (the same name is another realm).
	for _, try := range []struct{ user, realm, id string }{{"a", "b", "of-b"}, {"b", "a", "of-a"}, {"c", "b", "of-b"}, {"c", "a", "of-a"}} {
		s := open(t, c.Address(try.realm), as(try.user))
		ctx, stop := context.WithTimeout(bg, time.Minute) // what is not allowed ends long before
		if _, err := s.Read(ctx, try.id); err == nil {
			t.Errorf("%s reads %s of realm %s", try.user, try.id, try.realm)
		} else if try.user != "c" && !errors.Is(err, nats.ErrPermissionViolation) {
			// What is not allowed is no silence of the servers.
			t.Errorf("%s may not read realm %s, and hears: %v", try.user, try.realm, err)
		}
		if _, err := s.TakeOver(ctx, try.id); err == nil {
			t.Errorf("%s takes %s of realm %s", try.user, try.id, try.realm)
		}
		stop()
	}
	// Past the store as well: a message on another one's subject is not taken.
	mine, theirs := open(t, c.Address("a"), as("a")), open(t, c.Address("b"), as("b"))
	lk, err := mine.link(bg)
	ok(t, err)
	before := len(stored(t, theirs, "of-b"))
	other, err := theirs.Realm(bg)
	ok(t, err)
	ctx, stop := context.WithTimeout(bg, time.Second)
	defer stop()
	if _, err := lk.js.Publish(ctx, other.subject("of-b"), []byte("?")); err == nil {
		t.Error("a message was published into another tenant's log")
	}
	if got := len(stored(t, theirs, "of-b")); got != before {
		t.Errorf("%d messages are stored, were %d", got, before)
	}
}
