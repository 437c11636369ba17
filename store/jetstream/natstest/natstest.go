// Package natstest runs real NATS servers with JetStream for tests: one, or a
// cluster of several whose routes go through lines that can be cut.
//
// The servers run in this process, or each in one of its own, which can be killed
// and stopped like any other: the test binary started again. They sync every
// write.
package natstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// Options of a cluster. The zero value is one server in this process.
type Options struct {
	Nodes      int    // 0 means 1
	Processes  bool   // each server is a process; TestMain has to call Main, or a program Child
	MaxPayload int    // bytes; 0 means the servers' default, 1 MiB
	Lazy       bool   // writes are not synced before they are acknowledged
	Accounts   string // the accounts block of the configuration, and what goes with it; "" is Accounts below
}

// Accounts is the default: everybody is the user app, sys has the system account.
const Accounts = `
accounts {
  APP { jetstream: enabled, users: [{user: app, password: app}] }
  SYS { users: [{user: sys, password: sys}] }
}
no_auth_user: app
system_account: SYS
`

// Cluster is some servers that know each other.
type Cluster struct {
	nodes []*node
	lines [][]*line // from, to; nil on the diagonal
}

// node is one server.
type node struct {
	name    string
	conf    string // path of its configuration
	client  string // HOST:PORT
	process bool
	run     runner // nil when it is down
}

// runner is a server that runs.
type runner interface {
	kill() error
	pause(on bool) error
	log() string // the end of it
}

// Start starts a cluster that ends with the test. When the test has failed it says
// what the servers logged last.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := New(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.nodes {
				if n.run != nil {
					t.Logf("server %s: %s", n.name, n.run.log())
				}
			}
		}
		c.Close()
	})
	return c
}

// portTries is how often other ports are taken when one of them is in use.
const portTries = 8

// New starts a cluster whose files are in a folder, and waits until it can keep
// streams.
func New(dir string, o Options) (c *Cluster, err error) {
	for range portTries {
		if c, err = begin(dir, o); !errors.Is(err, errPort) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if err := c.Ready(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// begin starts a cluster on ports that were free a moment ago.
func begin(dir string, o Options) (*Cluster, error) {
	n := max(o.Nodes, 1)
	ports, err := freePorts(2 * n)
	if err != nil {
		return nil, err
	}
	c := &Cluster{nodes: make([]*node, n), lines: make([][]*line, n)}
	if n > 1 {
		for i := range n {
			c.lines[i] = make([]*line, n)
			for j := range n {
				if i != j {
					if c.lines[i][j], err = newLine("127.0.0.1:" + strconv.Itoa(ports[n+j])); err != nil {
						c.Close()
						return nil, err
					}
				}
			}
		}
	}
	for i := range n {
		c.nodes[i] = &node{name: "n" + strconv.Itoa(i), process: o.Processes, client: "127.0.0.1:" + strconv.Itoa(ports[i]),
			conf: filepath.Join(dir, fmt.Sprintf("n%d.conf", i))}
		if err := os.WriteFile(c.nodes[i].conf, []byte(c.config(dir, o, i, ports)), 0o600); err != nil {
			c.Close()
			return nil, err
		}
	}
	for _, n := range c.nodes {
		if err := n.start(); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// config is the configuration of one server.
func (c *Cluster) config(dir string, o Options, i int, ports []int) string {
	var b strings.Builder
	sync := "always"
	if o.Lazy {
		sync = "2m"
	}
	fmt.Fprintf(&b, "server_name: %s\nlisten: %s\nmax_pending: 256MB\n", c.nodes[i].name, c.nodes[i].client)
	fmt.Fprintf(&b, "jetstream { store_dir: %q, sync_interval: %s, max_file_store: 64GB, max_memory_store: 1GB }\n", filepath.Join(dir, c.nodes[i].name), sync)
	if o.MaxPayload > 0 {
		fmt.Fprintf(&b, "max_payload: %d\n", o.MaxPayload)
	}
	if o.Accounts == "" {
		o.Accounts = Accounts
	}
	b.WriteString(o.Accounts)
	if n := len(c.nodes); n > 1 {
		fmt.Fprintf(&b, "cluster {\n  name: test\n  listen: 127.0.0.1:%d\n  no_advertise: true\n", ports[n+i])
		// Servers tell each other where others are. What they tell leads
		// nowhere, so that every route goes through a line.
		b.WriteString("  cluster_advertise: \"127.0.0.1:1\"\n  routes: [\n")
		for j := range n {
			if j != i {
				fmt.Fprintf(&b, "    nats-route://%s\n", c.lines[i][j].address())
			}
		}
		b.WriteString("  ]\n}\n")
	}
	return b.String()
}

// Ports are taken from below those that systems give to connections, so that one
// which is free, and one whose server is down for a while, stays free.
const firstPort, lastPort = 10_000, 32_000

// freePorts are some ports on which nobody listens.
func freePorts(n int) (ports []int, err error) {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			l.Close()
		}
	}()
	for tries := 0; len(ports) < n; tries++ {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			if tries < 1000 {
				continue
			}
			return nil, fmt.Errorf("natstest: no free port between %d and %d: %w", firstPort, lastPort, err)
		}
		open, ports = append(open, l), append(ports, port)
	}
	return ports, nil
}

// Close ends the servers.
func (c *Cluster) Close() {
	for i := range c.nodes {
		if c.nodes[i] != nil {
			c.Kill(i)
		}
	}
	for _, from := range c.lines {
		for _, l := range from {
			if l != nil {
				l.close()
			}
		}
	}
}

// Nodes is the number of servers.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// Address is the address of a realm, by way of some of the servers, or all.
func (c *Cluster) Address(name string, nodes ...int) string {
	return "nats://" + strings.Join(c.hosts(nodes), ",") + "/" + name
}

// URL is what a client dials for some of the servers, or all.
func (c *Cluster) URL(nodes ...int) string { return strings.Join(c.hosts(nodes), ",") }

func (c *Cluster) hosts(nodes []int) (hosts []string) {
	if nodes == nil {
		for i := range c.nodes {
			nodes = append(nodes, i)
		}
	}
	for _, i := range nodes {
		hosts = append(hosts, c.nodes[i].client)
	}
	return hosts
}

// Up reports whether a server runs.
func (c *Cluster) Up(i int) bool { return c.nodes[i].run != nil }

// Kill ends a server: a process by a signal that it cannot catch, one in this
// process by shutting it down.
func (c *Cluster) Kill(i int) error {
	n := c.nodes[i]
	if n.run == nil {
		return nil
	}
	err := n.run.kill()
	n.run = nil
	return err
}

// Restart starts a server that was killed, with the files that it left.
func (c *Cluster) Restart(i int) error {
	n := c.nodes[i]
	ctx, stop := context.WithTimeout(context.Background(), readyWithin)
	defer stop()
	for {
		err := n.start()
		// The others know it by its port: who has that now is waited for.
		if !errors.Is(err, errPort) || pause(ctx) != nil {
			return err
		}
	}
}

func (n *node) start() (err error) {
	if n.run != nil {
		return nil
	}
	run := startHere
	if n.process {
		run = startProcess
	}
	if n.run, err = run(n.conf); err != nil {
		n.run = nil
		return fmt.Errorf("natstest: server %s: %w", n.name, err)
	}
	return nil
}

// KillAll ends all servers, at once where they are processes.
func (c *Cluster) KillAll() error {
	// All are stopped first, so that none sees another one go.
	for _, n := range c.nodes {
		if n.run != nil && n.process {
			n.run.pause(true)
		}
	}
	var errs []error
	for i := range c.nodes {
		errs = append(errs, c.Kill(i))
	}
	return errors.Join(errs...)
}

// RestartAll starts all servers that are down.
func (c *Cluster) RestartAll() error {
	var errs []error
	for i := range c.nodes {
		errs = append(errs, c.Restart(i))
	}
	return errors.Join(errs...)
}

// Pause stops the process of a server where it is; Resume lets it go on. To the
// others it is a machine that hangs.
func (c *Cluster) Pause(i int) error { return c.nodes[i].run.pause(true) }

// Resume is the opposite of Pause.
func (c *Cluster) Resume(i int) error { return c.nodes[i].run.pause(false) }

// Partition cuts all lines between servers of different groups. A server that is
// in no group is alone.
func (c *Cluster) Partition(groups ...[]int) {
	group := make([]int, len(c.nodes))
	for i := range group {
		group[i] = -1 - i
	}
	for g, members := range groups {
		for _, i := range members {
			group[i] = g
		}
	}
	for i, from := range c.lines {
		for j, l := range from {
			if l != nil {
				l.cut(group[i] != group[j])
			}
		}
	}
}

// Heal mends all lines.
func (c *Cluster) Heal() {
	for _, from := range c.lines {
		for _, l := range from {
			if l != nil {
				l.cut(false)
			}
		}
	}
}

const (
	// readyWithin is how long servers are waited for: long enough for a machine
	// on which ten programs want each processor.
	readyWithin = 3 * time.Minute
	// lookEvery is how often a server that starts is asked whether it has failed.
	lookEvery = 250 * time.Millisecond
)

// Connect connects to some of the servers, or all.
func (c *Cluster) Connect(nodes ...int) (*nats.Conn, error) {
	return nats.Connect(c.URL(nodes...), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
}

// Ready waits until every server that runs takes part in the keeping of streams.
func (c *Cluster) Ready() error {
	ctx, stop := context.WithTimeout(context.Background(), readyWithin)
	defer stop()
	up := 0
	for i := range c.nodes {
		if c.Up(i) {
			up++
			if err := c.ready(ctx, up, i); err != nil {
				return fmt.Errorf("natstest: server %s is not ready: %w; %s", c.nodes[i].name, err, c.nodes[i].run.log())
			}
		}
	}
	return nil
}

// ready waits for one server. The last one has to place a stream on all.
func (c *Cluster) ready(ctx context.Context, up, i int) error {
	// A server of other accounts is ready when it answers.
	app, err := c.comeIn(ctx, i)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil
	}
	if err != nil {
		return err
	}
	defer app.Close()
	js, err := natsjs.New(app)
	if err != nil {
		return err
	}
	for {
		try, stop := context.WithTimeout(ctx, 5*time.Second)
		if up < len(c.nodes) {
			_, err = js.AccountInfo(try)
		} else {
			name := "natstest-ready"
			_, err = js.CreateOrUpdateStream(try, natsjs.StreamConfig{Name: name, Subjects: []string{name}, Storage: natsjs.MemoryStorage, Replicas: len(c.nodes)})
			if err == nil {
				_, err = js.Publish(try, name, nil)
			}
			if err == nil {
				err = js.DeleteStream(try, name)
			}
		}
		stop()
		if err == nil {
			return nil
		}
		if perr := pause(ctx); perr != nil {
			return errors.Join(perr, err)
		}
	}
}

// comeIn connects to one server as the user of the default accounts, and tries
// again until it says yes or no.
func (c *Cluster) comeIn(ctx context.Context, i int) (*nats.Conn, error) {
	for {
		nc, err := nats.Connect(c.URL(i), nats.UserInfo("app", "app"), nats.Timeout(10*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
		if err == nil || errors.Is(err, nats.ErrAuthorization) {
			return nc, err
		}
		if perr := pause(ctx); perr != nil {
			return nil, errors.Join(perr, err)
		}
	}
}

// pause waits a moment between two looks at a server.
func pause(ctx context.Context) error {
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leader is the server that leads a stream, -1 when none does.
func (c *Cluster) Leader(ctx context.Context, js natsjs.JetStream, stream string) int {
	st, err := js.Stream(ctx, stream)
	if err != nil {
		return -1
	}
	in := st.CachedInfo()
	if in.Cluster == nil {
		return -1
	}
	for i, n := range c.nodes {
		if n.name == in.Cluster.Leader {
			return i
		}
	}
	return -1
}
