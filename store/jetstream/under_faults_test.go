package jetstream

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

var (
	long      = flag.Bool("long", false, "run many more rounds, and the sizes that take long")
	chaosSeed = flag.Uint64("seed", 1, "the first round of faults")
)

// These tests wait longest. Package testing lets those go on first whose files come
// last.

// What one log is asked to do. A log is a list of numbers and an epoch.
type (
	takeIn  struct{}
	takeOut struct {
		epoch uint64
		log   string
		known bool
	}
	appendIn struct {
		epoch uint64
		value int64
	}
	appendOut int
)

const (
	appended appendOut = iota
	refused            // the epoch is over
	unknown            // nobody knows
)

type logState struct {
	epoch uint64
	log   string
}

// logModel is a log with a fence, as one copy of it would behave.
var logModel = porcupine.Model{
	Init: func() any { return logState{} },
	Step: func(state, input, output any) (bool, any) {
		s := state.(logState)
		switch in := input.(type) {
		case takeIn:
			out := output.(takeOut)
			if out.known && (out.epoch != s.epoch+1 || out.log != s.log) {
				return false, s
			}
			return true, logState{s.epoch + 1, s.log}
		case appendIn:
			then := logState{s.epoch, fmt.Sprintf("%s %d", s.log, in.value)}
			switch output.(appendOut) {
			case appended:
				return in.epoch == s.epoch, then
			case refused:
				return in.epoch != s.epoch, s
			}
			if in.epoch != s.epoch {
				return true, s
			}
			return true, then
		}
		return false, s
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
}

// history gathers what was asked and answered.
type history struct {
	mu  sync.Mutex
	ops []porcupine.Operation
	n   atomic.Int64
}

var began = time.Now()

func now() int64 { return int64(time.Since(began)) }

func (h *history) add(client int, call int64, in, out any, known bool) {
	op := porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: now()}
	if !known {
		op.Return = math.MaxInt64 // it may still happen
	}
	h.mu.Lock()
	h.ops = append(h.ops, op)
	h.mu.Unlock()
	h.n.Add(1)
}

func number(seq outcrop.Seq, v int64) iter.Seq[outcrop.Record] {
	return func(yield func(outcrop.Record) bool) {
		yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeTodoWrite, Seq: seq, Time: v, Data: fmt.Appendf(nil, `{"todos":[],"v":%d}`, v)}})
	}
}

func numbers(recs iter.Seq2[outcrop.Record, error]) (string, error) {
	var b strings.Builder
	for r, err := range recs {
		if err != nil {
			return "", err
		}
		if r.Seq == 0 {
			continue // the one that made the session
		}
		v, _ := jsonwire.Int(jsonwire.Get(r.Data, "v"))
		fmt.Fprintf(&b, " %d", v)
	}
	return b.String(), nil
}

// contend takes the session over, appends some numbers, and does it again.
func contend(ctx context.Context, s *Store, client int, rnd *rand.Rand, values *atomic.Int64, h *history) {
	for ctx.Err() == nil {
		call := now()
		l, err := s.acquire(ctx, "s1", true)
		var text string
		if err == nil {
			text, err = numbers(l.Records())
		}
		if err != nil {
			// A take that failed may have happened.
			h.add(client, call, takeIn{}, takeOut{}, false)
			if l != nil {
				s.worker.forget("s1")
			}
			continue
		}
		// The first epoch is that of the message that made the session.
		h.add(client, call, takeIn{}, takeOut{l.epoch - 1, text, true}, true)
		for range 1 + rnd.IntN(12) {
			v, call := values.Add(1), now()
			err := l.Append(ctx, number(outcrop.Seq(l.head.Events), v))
			if err == nil {
				err = l.Sync(ctx)
			}
			in := appendIn{l.epoch - 1, v}
			switch {
			case err == nil:
				h.add(client, call, in, appended, true)
				continue
			case errors.Is(err, store.ErrMoved):
				h.add(client, call, in, refused, true)
			default:
				h.add(client, call, in, unknown, false)
			}
			break
		}
		// It is not handed back: who comes next has to take it.
		s.worker.forget("s1")
	}
}

// faults are what happens to a cluster. Each one ends with undo.
var faults = []struct {
	name string
	do   func(c *natstest.Cluster, leader int)
	undo func(c *natstest.Cluster, leader int) error
	all  bool // nobody can be served meanwhile
}{
	{"the leader is killed", func(c *natstest.Cluster, l int) { c.Kill(l) }, func(c *natstest.Cluster, l int) error { return c.Restart(l) }, false},
	{"the leader is cut off", func(c *natstest.Cluster, l int) { c.Partition([]int{(l + 1) % 3, (l + 2) % 3}) }, heal, false},
	{"all are killed", func(c *natstest.Cluster, _ int) { c.KillAll() }, func(c *natstest.Cluster, _ int) error { return c.RestartAll() }, true},
	{"one that follows is cut off", func(c *natstest.Cluster, l int) { c.Partition([]int{l, (l + 1) % 3}) }, heal, false},
	{"all are cut off", func(c *natstest.Cluster, _ int) { c.Partition() }, heal, true},
	{"the leader hangs", func(c *natstest.Cluster, l int) { c.Pause(l) }, func(c *natstest.Cluster, l int) error { return c.Resume(l) }, false},
	{"one that follows is killed", func(c *natstest.Cluster, l int) { c.Kill((l + 1) % 3) }, func(c *natstest.Cluster, l int) error { return c.Restart((l + 1) % 3) }, false},
	{"one that follows hangs now and then, as with a slow disk", func(c *natstest.Cluster, l int) { c.Pause((l + 1) % 3) }, func(c *natstest.Cluster, l int) error { return c.Resume((l + 1) % 3) }, false},
}

func heal(c *natstest.Cluster, _ int) error {
	c.Heal()
	return nil
}

// TestAppendAndTakeOverAreLinearizable has three workers fight for a session
// while servers are killed, cut off and stopped, and compares what each of them
// was told with a log that has one copy.
func TestAppendAndTakeOverAreLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for elections, which take seconds")
	}
	t.Parallel()
	rounds, each := 1, 3
	if *long {
		rounds, each = 20, 8
	}
	for round := range rounds {
		seed := *chaosSeed + uint64(round)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { chaos(t, seed, each) })
	}
}

func chaos(t *testing.T, seed uint64, each int) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := natstest.Start(t, natstest.Options{Nodes: 3, Processes: true})
	address := newRealmWith(t, c, time.Second)
	admin := open(t, address, Options{AckWait: time.Second, Patience: time.Minute})
	l, err := admin.create(bg, storetest.Header("s1"))
	ok(t, err)
	ok(t, l.Append(bg, number(0, 0)))
	ok(t, l.Sync(bg))
	admin.worker.forget("s1")
	lk, err := admin.link(bg)
	ok(t, err)
	stream := lk.realm.stream(lk.realm.shard("s1"))

	var h history
	var values atomic.Int64
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(bg)
	for client := range 3 {
		// Each one comes by way of another server first, with a clock of its own.
		wall := rand.New(rand.NewPCG(seed, uint64(client)))
		s := open(t, address, Options{AckWait: 500 * time.Millisecond, Patience: 15 * time.Second, Now: func() int64 { return wall.Int64N(1 << 41) }})
		rnd := rand.New(rand.NewPCG(seed, uint64(10+client)))
		wg.Go(func() { contend(ctx, s, client, rnd, &values, &h) })
	}
	// passed waits for some answers, or for the end of a fault's time.
	passed := func(n int64, most time.Duration) {
		want, late := h.n.Load()+n, time.Now().Add(most)
		until(t, func() bool { return h.n.Load() >= want || time.Now().After(late) })
	}
	passed(20, 30*time.Second)
	order := rnd.Perm(len(faults))
	if seed == 1 {
		order = []int{0, 1, 2, 3, 4, 5, 6, 7} // the plain ones first
	}
	for _, i := range order[:each] {
		f := faults[i]
		leader := leaderOf(t, c, lk, stream)
		before := h.n.Load()
		f.do(c, leader)
		// With two servers left the answers come again when they have elected one,
		// which takes ten seconds or so; what is unknown meanwhile is judged too.
		most := 10 * time.Second
		if *long {
			most *= 2
		}
		if f.all {
			most = 2 * time.Second
		}
		passed(10, most)
		during := h.n.Load() - before
		ok(t, f.undo(c, leader))
		passed(10, 30*time.Second)
		t.Logf("%s (server %d): %d answers meanwhile, %d after it", f.name, leader, during, h.n.Load()-before-during)
	}
	stop()
	wg.Wait()
	// A last look, when all is well again.
	call := now()
	last, err := admin.acquire(bg, "s1", true)
	ok(t, err)
	text, err := numbers(last.Records())
	ok(t, err)
	h.add(9, call, takeIn{}, takeOut{last.epoch - 1, text, true}, true)
	ok(t, last.Close())
	acked := 0
	for _, op := range h.ops {
		if in, ok := op.Input.(appendIn); ok && op.Output == appended {
			acked++
			if !strings.Contains(text+" ", fmt.Sprintf(" %d ", in.value)) {
				t.Errorf("%d was acknowledged and is missing", in.value)
			}
		}
	}
	t.Logf("%d questions, %d numbers acknowledged, %d stored", len(h.ops), acked, len(strings.Fields(text)))
	if got := porcupine.CheckOperationsTimeout(logModel, h.ops, 2*time.Minute); got != porcupine.Ok {
		t.Fatalf("seed %d: the answers are %s: no order of them is that of one log", seed, got)
	}
}

// leaderOf is the server that leads a stream.
func leaderOf(t testing.TB, c *natstest.Cluster, lk *link, stream string) (leader int) {
	t.Helper()
	until(t, func() bool {
		ctx, stop := context.WithTimeout(bg, 2*time.Second)
		defer stop()
		leader = c.Leader(ctx, lk.js, stream)
		return leader >= 0
	})
	return leader
}

// TestNothingAcknowledgedIsMissing streams many sessions while the servers go
// down, all of them at once too, and reads every log afterwards.
func TestNothingAcknowledgedIsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for elections, which take seconds")
	}
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Nodes: 3, Processes: true})
	address := newRealmWith(t, c, time.Second)
	const sessions = 12
	ctx, stop := context.WithCancel(bg)
	var wg sync.WaitGroup
	var flushes atomic.Int64
	durable := make([]outcrop.Seq, sessions)
	for i := range sessions {
		wg.Go(func() {
			s := open(t, address, Options{AckWait: 500 * time.Millisecond, Patience: 10 * time.Second})
			l, err := store.Create(bg, s, storetest.Header(fmt.Sprint("s", i)), store.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			for turn := 1; ctx.Err() == nil; turn++ {
				if err := storetest.Turn(l.Session(), turn); err != nil {
					t.Error(err)
					break
				}
				if l.Flush(bg) == nil {
					flushes.Add(1)
				}
			}
			durable[i] = l.Durable()
			// The connection is torn down without a word, as with a killed program.
			die(s)
		})
	}
	more := func(n int64) {
		want := flushes.Load() + n
		until(t, func() bool { return flushes.Load() >= want })
	}
	more(5 * sessions)
	ok(t, c.KillAll())
	ok(t, c.RestartAll())
	more(2 * sessions)
	ok(t, c.Kill(0))
	more(sessions)
	ok(t, c.Restart(0))
	more(sessions)
	ok(t, c.KillAll())
	ok(t, c.RestartAll())
	stop()
	wg.Wait()
	s := open(t, address, Options{Patience: time.Minute})
	total := outcrop.Seq(0)
	for i := range sessions {
		var got *outcrop.Session
		var err error
		until(t, func() bool {
			got, _, err = store.Inspect(bg, s, fmt.Sprint("s", i), outcrop.Options{})
			return err == nil || errors.Is(err, outcrop.ErrDamaged)
		})
		ok(t, err)
		if outcrop.Seq(got.Len()) < durable[i] {
			t.Errorf("session %d has %d events, %d were acknowledged", i, got.Len(), durable[i])
		}
		total += durable[i]
	}
	t.Logf("%d flushes, %d events acknowledged and there", flushes.Load(), total)
	infos, err := s.List(bg, store.ListOptions{Full: true})
	ok(t, err)
	for _, in := range infos {
		if in.State == store.StateDamaged {
			t.Errorf("%s is damaged: %s", in.ID, in.Reason)
		}
	}
	if len(infos) != sessions {
		t.Errorf("%d sessions are listed", len(infos))
	}
}

// TestAStormOfReconnects cuts every connection again and again.
func TestAStormOfReconnects(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	direct := open(t, newRealm(t, c), Options{})
	g := c.Gate(t, 0)
	const sessions = 8
	var wg sync.WaitGroup
	var flushes atomic.Int64
	lives := make([]*store.Live, sessions)
	for i := range sessions {
		o := quick()
		o.Patience = time.Hour // an answer that was lost with its connection is not waited for so long
		s := open(t, g.Address(direct.addr.Name), o)
		lives[i] = create(t, s, fmt.Sprint("s", i))
		wg.Go(func() {
			for turn := range 40 {
				if err := storetest.Turn(lives[i].Session(), turn+1); err != nil {
					t.Error(err)
					return
				}
				until(t, func() bool { return lives[i].Flush(bg) == nil })
				flushes.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := int64(0); n < 30*sessions; n += 2 * sessions {
			until(t, func() bool { return flushes.Load() >= n })
			g.Cut()
		}
	}()
	wg.Wait()
	<-done
	for _, l := range lives {
		ok(t, l.Close(bg))
		sameLog(t, direct, l.Session())
	}
}
