package jetstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func TestMain(m *testing.M) { natstest.Main(m) }

var bg = context.Background()

// realms gives each test a realm of its own.
var realms atomic.Int64

// newRealm makes a realm with few streams and a short lease.
func newRealm(t testing.TB, c *natstest.Cluster) string {
	t.Helper()
	address := c.Address(fmt.Sprintf("r%d", realms.Add(1)))
	o := RealmOptions{Streams: 2, Lease: time.Second, Single: c.Nodes() == 1}
	if _, err := Init(bg, address, o, Options{Program: "the tests"}); err != nil {
		t.Fatal(err)
	}
	return address
}

// open opens a realm as another process would.
func open(t testing.TB, address string, o Options) *Store {
	t.Helper()
	if o.Program == "" {
		o.Program = "the tests"
	}
	s, err := New(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// contract runs the contract of package store on a cluster.
func contract(t *testing.T, c *natstest.Cluster) {
	storetest.Run(t, func(t *testing.T) storetest.Place {
		address := newRealm(t, c)
		var mu sync.Mutex
		var failing map[string]error
		fail := func(op string) error {
			mu.Lock()
			defer mu.Unlock()
			return failing[op]
		}
		return storetest.Place{
			Open: func() store.Store { return open(t, address, Options{fail: fail}) },
			Fail: func(op string, err error) {
				mu.Lock()
				defer mu.Unlock()
				failing = map[string]error{op: err}
			},
			Break: func(id string) {
				lk, err := open(t, address, Options{}).link(bg)
				if err == nil {
					// A message that no writer of ours made.
					_, err = lk.js.Publish(bg, lk.realm.subject(id), []byte("?"))
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestContractOnOneServer(t *testing.T) {
	t.Parallel()
	contract(t, natstest.Start(t, natstest.Options{}))
}

func TestContractOnThreeServers(t *testing.T) {
	t.Parallel()
	contract(t, natstest.Start(t, natstest.Options{Nodes: 3}))
}
