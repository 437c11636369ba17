package jetstream

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func TestMain(m *testing.M) { natstest.Main(m, three.end) }

// cluster is servers that the tests share which do them no harm.
type cluster struct {
	nodes int
	once  sync.Once
	dir   string
	c     *natstest.Cluster
	err   error
}

var three = &cluster{nodes: 3}

// start starts the servers for the first one who needs them.
func (s *cluster) start(t testing.TB) *natstest.Cluster {
	t.Helper()
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "outcrop-nats-"); s.err == nil {
			s.c, s.err = natstest.New(s.dir, natstest.Options{Nodes: s.nodes})
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.c
}

// end ends them when all tests are done.
func (s *cluster) end() {
	if s.c != nil {
		s.c.Close()
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

var bg = context.Background()

// realms gives each test a realm of its own.
var realms atomic.Int64

// newRealm makes a realm with few streams and a lease that no test outlives, on
// however busy a machine.
func newRealm(t testing.TB, c *natstest.Cluster) string {
	t.Helper()
	return newRealmWith(t, c, time.Minute)
}

// newRealmWith makes one whose lease is waited for.
func newRealmWith(t testing.TB, c *natstest.Cluster, lease time.Duration) string {
	t.Helper()
	address, err := makeRealm(c, lease)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func makeRealm(c *natstest.Cluster, lease time.Duration) (string, error) {
	address := c.Address(fmt.Sprintf("r%d", realms.Add(1)))
	_, err := Init(bg, address, RealmOptions{Streams: 2, Lease: lease, Single: c.Nodes() == 1}, Options{Program: "the tests", Patience: time.Minute})
	return address, err
}

// lapsing is a lease that tests wait for the end of: the shortest that is not over
// before its time where a program waits long for a processor.
const lapsing = 3 * time.Second

// realmsAhead makes realms while others are used: servers have to agree about
// each of its streams.
func realmsAhead(t testing.TB, c *natstest.Cluster) (next func(t testing.TB) string) {
	type made struct {
		address string
		err     error
	}
	ready, done := make(chan made, 2), make(chan struct{})
	var making sync.WaitGroup
	for range cap(ready) {
		making.Go(func() {
			for {
				address, err := makeRealm(c, time.Minute)
				select {
				case ready <- made{address, err}:
				case <-done:
					return
				}
			}
		})
	}
	t.Cleanup(func() {
		close(done)
		making.Wait()
	})
	return func(t testing.TB) string {
		t.Helper()
		m := <-ready
		if m.err != nil {
			t.Fatal(m.err)
		}
		return m.address
	}
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
	realm := realmsAhead(t, c)
	storetest.Run(t, func(t *testing.T) storetest.Place {
		address := realm(t)
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
	contract(t, three.start(t))
}
