package worker_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/worker"
)

var (
	long = flag.Bool("long", false, "the cluster has all its sessions and is killed at for longer")
	seed = flag.Uint64("cluster.seed", 0, "seed of the killer (0: a new one)")
)

// What a process of the tests is told by its environment: that it is a worker, of
// which realm, and where it notes what its tools did.
const (
	realmEnv   = "OUTCROP_TEST_WORKER_REALM"
	effectsEnv = "OUTCROP_TEST_WORKER_EFFECTS"
	toolEnv    = "OUTCROP_TEST_WORKER_TOOL" // how long its tool takes, if not 20 ms
)

func TestMain(m *testing.M) {
	if address := os.Getenv(realmEnv); address != "" {
		if err := workInProcess(address, os.Getenv(effectsEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	natstest.Main(m)
}

// workInProcess is the worker process: it works until SIGTERM.
func workInProcess(address, effects string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("up") // from here on SIGTERM ends it in good order
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // the tests are gone
	}()
	level := slog.LevelError
	if os.Getenv("OUTCROP_TEST_WORKER_LOG") != "" {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("pid", os.Getpid())
	st, err := jetstream.New(address, jetstream.Options{Program: "worker of the tests", Logger: logger})
	if err != nil {
		return err
	}
	defer st.Close()
	// The servers may be away when a worker starts.
	var bus worker.Bus
	for bus == nil {
		if bus, err = worker.BusOf(ctx, st); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			logger.Info("no bus yet", "err", err)
			pauseFor(ctx, 100*time.Millisecond)
		}
	}
	f, err := os.OpenFile(effects, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	takes := 20 * time.Millisecond
	if d, err := time.ParseDuration(os.Getenv(toolEnv)); err == nil {
		takes = d
	}
	o := &opener{st: st, bus: bus, model: answering(5 * time.Millisecond), tool: &workTool{takes: takes, note: f}}
	for {
		w, err := worker.New(worker.Options{Store: st, Opener: o, Bus: bus, Name: fmt.Sprintf("worker %d", os.Getpid()), Concurrency: 8,
			Every: 2 * time.Second, Attempts: 1000, Grace: time.Second, Logger: logger})
		if err != nil {
			return err
		}
		if err = w.Run(ctx); err == nil || ctx.Err() != nil {
			return nil
		}
		logger.Info("the worker cannot begin", "err", err)
		pauseFor(ctx, 100*time.Millisecond)
	}
}

// pauseFor waits between two tries.
func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// proc is a worker process.
type proc struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  *strings.Builder
}

// hireProcess starts a worker; in is a command that starts another one, if any.
func hireProcess(address, effects string, in ...string) (*proc, error) {
	return startProcess(in, realmEnv+"="+address, effectsEnv+"="+effects)
}

// startProcess starts the test binary as what the environment says, and waits for
// its first line.
func startProcess(in []string, env ...string) (*proc, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	line := append(slices.Clone(in), exe)
	p := &proc{cmd: exec.Command(line[0], line[1:]...), said: &strings.Builder{}}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = p.said
	if os.Getenv("OUTCROP_TEST_WORKER_LOG") != "" {
		p.cmd.Stderr = os.Stderr
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("a process does not start: %w: %.2000s", err, p.said)
	}
	return p, nil
}

// end ends a process, in good order or not, and waits for it.
func (p *proc) end(kill bool) error {
	if kill {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("a worker that was told to end: %w: %.2000s", err, p.said)
	}
	return nil
}

// fleet is what the killer takes down and what it is measured by.
type fleet struct {
	t       *testing.T
	c       *natstest.Cluster
	address string
	effects string
	draw    *rand.Rand
	workers []*proc
	what    map[string]int
}

func (f *fleet) hire() {
	p, err := hireProcess(f.address, f.effects)
	if err != nil {
		f.t.Fatal(err)
	}
	f.workers = append(f.workers, p)
}

// strike does one evil thing and repairs it.
func (f *fleet) strike(ctx context.Context) error {
	i := f.draw.IntN(len(f.workers))
	n := f.draw.IntN(f.c.Nodes())
	pause := func(least, most int) {
		pauseFor(ctx, time.Duration(least+f.draw.IntN(most-least))*time.Millisecond)
	}
	again := func() error {
		p, err := hireProcess(f.address, f.effects)
		f.workers[i] = p
		return err
	}
	switch draw := f.draw.IntN(100); {
	case draw < 35:
		f.what["workers killed"]++
		return cmp.Or(f.workers[i].end(true), again())
	case draw < 50:
		f.what["workers ended in good order"]++
		return cmp.Or(f.workers[i].end(false), again())
	case draw < 65:
		// Longer than the lease: what it held is somebody else's when it wakes.
		f.what["workers stopped for a while"]++
		if err := stopProcess(f.workers[i].cmd.Process, true); err != nil {
			return err
		}
		pause(1200, 2200)
		return stopProcess(f.workers[i].cmd.Process, false)
	case draw < 85:
		f.what["servers killed"]++
		if err := f.c.Kill(n); err != nil {
			return err
		}
		pause(200, 1500)
		return f.c.Restart(n)
	case draw < 95:
		f.what["servers cut off"]++
		rest := []int{(n + 1) % 3, (n + 2) % 3}
		f.c.Partition([]int{n}, rest)
		pause(200, 1500)
		f.c.Heal()
		return nil
	default:
		f.what["all servers killed at once"]++
		if err := f.c.KillAll(); err != nil {
			return err
		}
		return f.c.RestartAll()
	}
}

// Three workers share a realm on three servers; all of them are killed, stopped,
// cut off and ended at random while input comes. Then each acknowledged input was
// answered once, no tool call ran twice, and every log is a good one.
func TestWorkersAndServersThatDie(t *testing.T) {
	t.Parallel() // it waits for others most of the time
	sessions, strikes := 40, 12
	switch {
	case *long:
		sessions, strikes = 200, 120
	case testing.Short():
		sessions, strikes = 12, 4
	}
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("seed: -cluster.seed=%d", n)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
	defer stop()
	c := natstest.Start(t, natstest.Options{Nodes: 3, Processes: true})
	address := c.Address("fleet")
	if _, err := jetstream.Init(ctx, address, jetstream.RealmOptions{Streams: 2, Replicas: 3, Lease: time.Second}, jetstream.Options{Program: "the tests"}); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, c: c, address: address, effects: filepath.Join(t.TempDir(), "effects"), draw: rand.New(rand.NewPCG(n, 1)), what: map[string]int{}}
	defer func() {
		for _, p := range f.workers {
			_ = p.end(true)
		}
	}()
	for range 3 {
		f.hire()
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
	acknowledged := sendAll(ctx, t, &worker.Sender{Store: st, Bus: bus, Name: "the tests", Reply: 3 * time.Second}, sessions, n,
		time.Duration(strikes)*600*time.Millisecond/time.Duration(2*sessions)) // about as long as the killer is at it

	began := time.Now()
	for range strikes {
		if err := f.strike(ctx); err != nil {
			t.Fatal(err)
		}
		pauseFor(ctx, time.Duration(f.draw.IntN(600))*time.Millisecond)
	}
	t.Logf("the killer is done after %s: %v", time.Since(began).Round(time.Second), f.what)
	all := acknowledged()
	t.Logf("all input is acknowledged after %s", time.Since(began).Round(time.Second))
	untilDone(ctx, t, st, sessions)
	t.Logf("everything is answered after %s", time.Since(began).Round(time.Second))
	for _, p := range f.workers {
		if err := p.end(false); err != nil {
			t.Error(err)
		}
	}
	f.workers = nil
	judgeAll(ctx, t, st, all, f.effects)
}

// judgeAll is the law for all sessions and for what their tools did.
func judgeAll(ctx context.Context, t *testing.T, st store.Store, all map[string][]string, effects string) {
	t.Helper()
	for id, ids := range all {
		if err := judgeStored(ctx, st, id, ids); err != nil {
			t.Errorf("session %s: %v", id, err)
		}
	}
	calls, err := os.ReadFile(effects)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for key := range strings.Lines(string(calls)) {
		if ran[key]++; ran[key] > 1 {
			t.Errorf("the call %s ran %d times", strings.TrimSpace(key), ran[key])
		}
	}
	t.Logf("%d sessions, %d calls", len(all), len(ran))
}

// sendAll begins the sessions and sends each more input while everything dies; the
// result waits until all of it is acknowledged.
func sendAll(ctx context.Context, t *testing.T, s *worker.Sender, sessions int, seed uint64, pace time.Duration) (wait func() map[string][]string) {
	var mu sync.Mutex
	var senders sync.WaitGroup
	all := map[string][]string{}
	next := make(chan int)
	for who := range 8 {
		draw := rand.New(rand.NewPCG(seed, uint64(100+who)))
		senders.Go(func() {
			for n := range next {
				id := fmt.Sprintf("s%d", n%sessions)
				message := fmt.Sprintf("i%d", n)
				for ctx.Err() == nil {
					// The same input again until it is acknowledged, as a person's
					// program does.
					once, stop := context.WithTimeout(ctx, 10*time.Second)
					h := outcrop.NewHeader(id, 1, "/srv")
					_, err := s.Send(once, id, inputOf(message), draw.IntN(3) == 0)
					if errors.Is(err, outcrop.ErrNotFound) {
						_, err = s.Begin(once, h, inputOf(message))
					}
					stop()
					if err == nil {
						mu.Lock()
						all[id] = append(all[id], message)
						mu.Unlock()
						break
					}
					pauseFor(ctx, 50*time.Millisecond)
				}
			}
		})
	}
	go func() {
		defer close(next)
		for n := range 3 * sessions {
			next <- n
			if n >= sessions {
				pauseFor(ctx, pace)
			}
		}
	}()
	return func() map[string][]string {
		senders.Wait()
		if ctx.Err() != nil {
			t.Fatal("input was not acknowledged in time")
		}
		return all
	}
}

// untilDone waits until nothing is left to be done in any session.
func untilDone(ctx context.Context, t *testing.T, st store.Store, sessions int) {
	t.Helper()
	for {
		infos, err := st.List(ctx, store.ListOptions{})
		left := []string{}
		for _, in := range infos {
			if in.Due == nil || in.Due.Work() {
				left = append(left, fmt.Sprintf("%s %+v %s", in.ID, in.Due, in.State))
			}
		}
		if err == nil && len(infos) == sessions && len(left) == 0 {
			return
		}
		pauseFor(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d sessions are not done, %v:\n%s", len(left), len(infos), err, strings.Join(left, "\n"))
		}
	}
}

func judgeStored(ctx context.Context, st store.Store, id string, acknowledged []string) error {
	h, log, err := read(st, id)
	if err != nil {
		return err
	}
	if err := judge(h, log, acknowledged); err != nil {
		return fmt.Errorf("%w\n%s", err, text(log))
	}
	findings, sum := doctor.Verify(ctx, doctor.Target{Name: id, Open: func(ctx context.Context) (store.Stored, error) { return st.Read(ctx, id) }}, doctor.Options{})
	for finding := range findings {
		err = errors.Join(err, fmt.Errorf("verify: %s: %s", finding.Code, finding.Message))
	}
	if !sum.OK {
		err = errors.Join(err, errors.New("verify does not say ok"))
	}
	return errors.Join(err, sum.Err)
}
