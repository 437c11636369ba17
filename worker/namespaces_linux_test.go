package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/store/jetstream"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/worker"
)

// machine is a network namespace with a server and a worker: a machine, as far as
// its lines go.
type machine struct {
	name, link, address, conf string
	server, worker            *proc
}

// network are machines on one bridge.
type network struct {
	t        *testing.T
	bridge   string
	machines []*machine
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// newNetwork makes namespaces, or skips the test where that is not allowed.
func newNetwork(t *testing.T, n int) *network {
	t.Helper()
	tag := fmt.Sprintf("oc%d", os.Getpid()%100_000)
	w := &network{t: t, bridge: tag + "b"}
	t.Cleanup(w.remove)
	net := fmt.Sprintf("10.213.%d.", os.Getpid()%250)
	if err := ip("link", "add", w.bridge, "type", "bridge"); err != nil {
		t.Skipf("network namespaces cannot be made here, which takes root and iproute2: %v", err)
	}
	steps := [][]string{{"addr", "add", net + "254/24", "dev", w.bridge}, {"link", "set", w.bridge, "up"}}
	for i := range n {
		m := &machine{name: fmt.Sprintf("%sn%d", tag, i), link: fmt.Sprintf("%sl%d", tag, i), address: fmt.Sprintf("%s%d", net, i+1)}
		if err := ip("netns", "add", m.name); err != nil {
			t.Skipf("network namespaces cannot be made here, which takes root and iproute2: %v", err)
		}
		w.machines = append(w.machines, m)
		steps = append(steps, []string{"link", "add", m.link, "type", "veth", "peer", "name", "eth0", "netns", m.name},
			[]string{"link", "set", m.link, "master", w.bridge}, []string{"link", "set", m.link, "up"},
			[]string{"-n", m.name, "addr", "add", m.address + "/24", "dev", "eth0"},
			[]string{"-n", m.name, "link", "set", "eth0", "up"}, []string{"-n", m.name, "link", "set", "lo", "up"})
	}
	for _, s := range steps {
		if err := ip(s...); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *network) remove() {
	for _, m := range w.machines {
		for _, p := range []*proc{m.server, m.worker} {
			if p != nil {
				_ = p.end(true)
			}
		}
		_ = ip("netns", "del", m.name) // its link goes with it
	}
	_ = ip("link", "del", w.bridge) // where it could not be made there is none
}

// serve starts the server of a machine.
func (w *network) serve(m *machine) (err error) {
	m.server, err = startProcess([]string{"ip", "netns", "exec", m.name}, "OUTCROP_NATSTEST_CONF="+m.conf)
	return err
}

func (w *network) hire(m *machine, address, effects string) (err error) {
	m.worker, err = hireProcess(address, effects, "ip", "netns", "exec", m.name)
	return err
}

// configure writes the configuration of the servers.
func (w *network) configure(dir string) {
	var routes strings.Builder
	for _, m := range w.machines {
		fmt.Fprintf(&routes, "    nats-route://%s:6222\n", m.address)
	}
	for i, m := range w.machines {
		m.conf = filepath.Join(dir, m.name+".conf")
		text := fmt.Sprintf("server_name: n%d\nlisten: 0.0.0.0:4222\njetstream { store_dir: %q, sync_interval: always }\n%s"+
			"cluster {\n  name: test\n  listen: 0.0.0.0:6222\n  no_advertise: true\n  routes: [\n%s  ]\n}\n",
			i, filepath.Join(dir, m.name), natstest.Accounts, routes.String())
		if err := os.WriteFile(m.conf, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// The same as with lines that are closed, with machines whose cables are pulled:
// nobody is told that a line is gone.
func TestMachinesWhoseCablesArePulled(t *testing.T) {
	t.Parallel() // it waits for others most of the time
	sessions, strikes := 8, 3
	switch {
	case *long:
		sessions, strikes = 60, 40
	case testing.Short():
		sessions, strikes = 6, 2
	}
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("seed: -cluster.seed=%d", n)
	draw := rand.New(rand.NewPCG(n, 2))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	w := newNetwork(t, 3)
	dir := t.TempDir()
	w.configure(dir)
	var hosts []string
	for _, m := range w.machines {
		if err := w.serve(m); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, m.address+":4222")
	}
	address, effects := "nats://"+strings.Join(hosts, ",")+"/fleet", filepath.Join(dir, "effects")
	for { // until the servers have found each other
		_, err := jetstream.Init(ctx, address, jetstream.RealmOptions{Streams: 2, Replicas: 3, Lease: time.Second}, jetstream.Options{Program: "the tests"})
		if err == nil {
			break
		}
		if pauseFor(ctx, 100*time.Millisecond); ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	st, err := jetstream.New(address, jetstream.Options{Program: "the tests"})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	bus, err := worker.BusOf(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range w.machines {
		if err := w.hire(m, address, effects); err != nil {
			t.Fatal(err)
		}
	}
	acknowledged := sendAll(ctx, t, &worker.Sender{Store: st, Bus: bus, Name: "the tests", Reply: 3 * time.Second}, sessions, n,
		time.Duration(strikes)*1200*time.Millisecond/time.Duration(2*sessions))
	pause := func(least, most int) {
		pauseFor(ctx, time.Duration(least+draw.IntN(most-least))*time.Millisecond)
	}
	pull := func(ms []*machine, how string) {
		for _, m := range ms {
			if err := ip("link", "set", m.link, how); err != nil {
				t.Fatal(err)
			}
		}
	}
	what := map[string]int{}
	began := time.Now()
	for range strikes {
		draw.Shuffle(len(w.machines), func(i, j int) { w.machines[i], w.machines[j] = w.machines[j], w.machines[i] })
		switch m := w.machines[0]; draw.IntN(5) {
		case 0, 1, 2:
			what["one cable pulled"]++
			pull(w.machines[:1], "down")
			pause(500, 3000)
			pull(w.machines[:1], "up")
		case 3:
			what["two cables pulled"]++
			pull(w.machines[:2], "down")
			pause(500, 2000)
			pull(w.machines[:2], "up")
		case 4:
			what["a machine lost power"]++
			for _, err := range []error{m.worker.end(true), m.server.end(true), w.serve(m), w.hire(m, address, effects)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		pause(100, 800)
	}
	t.Logf("the cables are in again after %s: %v", time.Since(began).Round(time.Second), what)
	all := acknowledged()
	untilDone(ctx, t, st, sessions)
	t.Logf("everything is answered after %s", time.Since(began).Round(time.Second))
	for _, m := range w.machines {
		if err := m.worker.end(false); err != nil {
			t.Error(err)
		}
		m.worker = nil
	}
	judgeAll(ctx, t, st, all, effects)
}
