package cli_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
)

// natsCommand starts a server for the rest of a script: $NATS is the address of
// its realms without their names, nats://HOST:PORT. With -three there are three
// servers. -drop STREAM removes a stream of the server, -publish SUBJECT TEXT
// stores a message that nobody of ours wrote.
func natsCommand(ts *testscript.TestScript, _ bool, args []string) {
	o := natstest.Options{}
	switch {
	case len(args) == 0:
	case args[0] == "-three":
		o.Nodes = 3
	default:
		nc, err := nats.Connect(ts.Getenv("NATS"))
		ts.Check(err)
		defer nc.Close()
		js, err := natsjs.New(nc)
		ts.Check(err)
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		switch {
		case args[0] == "-drop" && len(args) == 2:
			ts.Check(js.DeleteStream(ctx, args[1]))
		case args[0] == "-publish" && len(args) == 3:
			_, err := js.Publish(ctx, args[1], []byte(args[2]))
			ts.Check(err)
		default:
			ts.Fatalf("usage: nats [-three | -drop STREAM | -publish SUBJECT TEXT]")
		}
		return
	}
	dir, err := os.MkdirTemp(ts.Getenv("WORK"), "nats-")
	ts.Check(err)
	c, err := natstest.New(dir, o)
	ts.Check(err)
	ts.Defer(c.Close)
	ts.Setenv("NATS", strings.TrimSuffix(c.Address("x"), "/x"))
}

// documentedServer is the server that the examples of docs/cli-json.md name.
const documentedServer = "nats://127.0.0.1:4222"

// realmAddress puts a server of the test in the place of the one that an example
// names.
func realmAddress(t *testing.T, c **natstest.Cluster, args []string) []string {
	t.Helper()
	out := make([]string, len(args))
	for i, a := range args {
		if name, ok := strings.CutPrefix(a, documentedServer+"/"); ok {
			if *c == nil {
				*c = natstest.Start(t, natstest.Options{})
			}
			a = (*c).Address(name)
		}
		out[i] = a
	}
	return out
}
