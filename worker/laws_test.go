package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/worker"
)

// beat is what all times are multiples of, so that things often happen at once.
const beat = 50 * time.Millisecond

// drawnDays is what happens to some workers and the sessions of one store.
type drawnDays struct {
	Sessions int
	Workers  int
	Slots    int
	Inputs   int
	Steer    bool
	Bus      bool
	Faults   []drawnFault
	Seed     uint64
}

type drawnFault struct {
	After time.Duration
	Kind  int // 0 all lose power, 1 somebody takes a session and gives it back, 2 a worker is replaced in good order
}

func drawDays(t *rapid.T) drawnDays {
	return drawnDays{
		Sessions: rapid.IntRange(1, 4).Draw(t, "sessions"),
		Workers:  rapid.IntRange(1, 3).Draw(t, "workers"),
		Slots:    rapid.IntRange(1, 3).Draw(t, "slots"),
		Inputs:   rapid.IntRange(1, 12).Draw(t, "inputs"),
		Steer:    rapid.Bool().Draw(t, "steer"),
		Bus:      rapid.Bool().Draw(t, "bus"),
		Faults: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drawnFault {
			return drawnFault{beat * time.Duration(rapid.IntRange(0, 60).Draw(t, "after")), rapid.IntRange(0, 2).Draw(t, "kind")}
		}), 0, 12).Draw(t, "faults"),
		Seed: rapid.Uint64().Draw(t, "seed"),
	}
}

// Whatever becomes of the workers, each acknowledged input enters its session
// once and is answered once, and every log is a good one.
func TestEachAcknowledgedInputIsAnsweredOnce(t *testing.T) {
	t.Parallel() // with those that wait for servers
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.Custom(drawDays).Draw(rt, "days")
		var err error
		synctest.Test(t, func(*testing.T) { err = d.play() })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// crew are the workers of a play.
type crew struct {
	st     store.Store
	bus    worker.Bus
	slots  int
	opener *opener
	ends   []context.CancelFunc
	all    sync.WaitGroup
	mu     sync.Mutex
	err    error
}

func (c *crew) hire(n int) error {
	w, err := worker.New(worker.Options{Store: c.st, Opener: c.opener, Bus: c.bus, Name: fmt.Sprintf("w%d", n), Concurrency: c.slots,
		Attempts: 1000, Grace: 700 * time.Millisecond})
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	c.ends = append(c.ends, end)
	c.all.Go(func() {
		if err := w.Run(ctx); err != nil {
			c.mu.Lock()
			c.err = errors.Join(c.err, err)
			c.mu.Unlock()
		}
	})
	return nil
}

func (d drawnDays) play() error {
	draw := rand.New(rand.NewPCG(d.Seed, 1))
	st := memory.New()
	c := &crew{st: st, slots: d.Slots}
	if d.Bus {
		c.bus = &losingBus{Bus: worker.NewBus(), lose: rand.New(rand.NewPCG(d.Seed, 2))}
	}
	c.opener = &opener{st: st, bus: c.bus, model: answering(150 * time.Millisecond), tool: &workTool{takes: 300 * time.Millisecond}}
	defer func() {
		for _, end := range c.ends {
			end()
		}
		c.all.Wait()
	}()
	for n := range d.Workers {
		if err := c.hire(n); err != nil {
			return err
		}
	}
	send := &worker.Sender{Store: losingStore{st}, Bus: c.bus, Name: "s", Reply: time.Second}
	acknowledged := make([][]string, d.Sessions)
	var mu sync.Mutex
	var senders sync.WaitGroup
	for i := range d.Inputs {
		n, pause, steer := draw.IntN(d.Sessions), beat*time.Duration(draw.IntN(80)), d.Steer && draw.IntN(2) == 0
		senders.Go(func() {
			time.Sleep(pause)
			id, session := fmt.Sprintf("i%d", i), fmt.Sprintf("s%d", n)
			for {
				// What a person's program does: the same input again, until it is
				// acknowledged.
				h := outcrop.NewHeader(session, 1, "/srv")
				h.Outcrop = 1
				ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
				_, err := send.Send(ctx, session, inputOf(id), steer)
				if errors.Is(err, outcrop.ErrNotFound) {
					_, err = send.Begin(ctx, h, inputOf(id))
				}
				stop()
				if err == nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			acknowledged[n] = append(acknowledged[n], id)
		})
	}
	for i, f := range d.Faults {
		time.Sleep(f.After)
		switch f.Kind {
		case 0:
			st.Crash()
		case 1:
			l, err := store.TakeOver(context.Background(), st, fmt.Sprintf("s%d", draw.IntN(d.Sessions)), store.Options{})
			if err == nil {
				err = l.Close(context.Background())
			}
			if err != nil && !errors.Is(err, outcrop.ErrNotFound) && !errors.Is(err, store.ErrMoved) {
				return err
			}
		case 2:
			if err := c.hire(100 + i); err != nil {
				return err
			}
			c.ends[draw.IntN(len(c.ends))]()
		}
	}
	senders.Wait()
	if err := c.hire(1000); err != nil { // all others may have ended
		return err
	}
	// Long enough for every back-off and for everything that waits.
	time.Sleep(time.Hour)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	for n, ids := range acknowledged {
		if len(ids) == 0 {
			continue
		}
		h, log, err := read(st, fmt.Sprintf("s%d", n))
		if err != nil {
			return err
		}
		if err := judge(h, log, ids); err != nil {
			return fmt.Errorf("session s%d: %w\n%s", n, err, text(log))
		}
	}
	for key, times := range c.opener.tool.ran {
		if times > 1 {
			return fmt.Errorf("the call %s ran %d times", key, times)
		}
	}
	return nil
}

// losingBus loses replies of requests that were carried out, and wakes.
type losingBus struct {
	worker.Bus
	mu   sync.Mutex
	lose *rand.Rand
}

func (b *losingBus) lost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lose.IntN(3) == 0
}

func (b *losingBus) Ask(ctx context.Context, session string, r worker.Request) (worker.Reply, error) {
	reply, err := b.Bus.Ask(ctx, session, r)
	if err == nil && b.lost() {
		return worker.Reply{}, errors.New("the reply was lost")
	}
	return reply, err
}

func (b *losingBus) Wake(ctx context.Context, session string, each bool) error {
	if b.lost() {
		return nil
	}
	return b.Bus.Wake(ctx, session, each)
}

// losingStore has leases of which the sender does not learn, every other time,
// that what it wrote is stored.
type losingStore struct{ store.Store }

func (s losingStore) Acquire(ctx context.Context, id string) (store.Lease, error) {
	l, err := s.Store.Acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	return &losingLease{Lease: l}, nil
}

type losingLease struct{ store.Lease }

func (l *losingLease) Close() error {
	return errors.Join(l.Lease.Close(), errLost(l.Lease.(store.Epocher).Epoch()))
}

func errLost(epoch uint64) error {
	if epoch%2 == 0 {
		return errors.New("the answer was lost")
	}
	return nil
}
