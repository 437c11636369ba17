package jetstream

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// quick are options with which a lost answer is not waited for long.
func quick() Options { return Options{AckWait: 300 * time.Millisecond, Patience: time.Minute} }

func create(t testing.TB, st store.Store, id string) *store.Live {
	t.Helper()
	l, err := store.Create(bg, st, storetest.Header(id), store.Options{Session: outcrop.Options{Now: tick()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(bg) })
	return l
}

func reopen(t testing.TB, st store.Store, id string) *store.Live {
	t.Helper()
	l, err := store.Open(bg, st, id, store.Options{Session: outcrop.Options{Now: tick()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(bg) })
	return l
}

func tick() func() int64 {
	n := int64(1_700_000_000_000)
	return func() int64 { n += 7; return n }
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored are the messages of a session as they stand in the stream.
func stored(t testing.TB, s *Store, id string) (all []message) {
	t.Helper()
	lk, err := s.link(bg)
	ok(t, err)
	stream := lk.realm.stream(lk.realm.shard(id))
	last, err := lk.last(bg, stream, lk.realm.subject(id))
	if errors.Is(err, errNoMessage) {
		return nil
	}
	ok(t, err)
	ok(t, lk.fetch(bg, stream, lk.realm.subject(id), 1, last.Seq, func(r raw) bool {
		m, err := lk.parse(r, stream, false)
		ok(t, err)
		all = append(all, m)
		return true
	}))
	return all
}

func kinds(ms []message) (ks []kind) {
	for _, m := range ms {
		ks = append(ks, m.Kind)
	}
	return ks
}

// sameLog checks that a session is stored as it is in memory.
func sameLog(t testing.TB, s *Store, live *outcrop.Session) {
	t.Helper()
	got, _, err := store.Inspect(bg, s, live.Header().ID, outcrop.Options{})
	ok(t, err)
	if outcrop.LogDigest(got.Log()) != outcrop.LogDigest(live.Log()) {
		t.Fatalf("%d events are stored, not the %d of the session", got.Len(), live.Len())
	}
}

func TestALostAcknowledgementIsFoundOut(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := newRealm(t, c)
	direct := open(t, address, quick())
	name := direct.addr.Name
	for _, what := range []string{"the answer is lost", "the message is lost"} {
		t.Run(what, func(t *testing.T) {
			g := c.Gate(t, 0)
			l := create(t, open(t, g.Address(name), quick()), what)
			ok(t, storetest.Turn(l.Session(), 1))
			ok(t, l.Flush(bg))
			before := len(stored(t, direct, what))
			ok(t, storetest.Turn(l.Session(), 2))
			deaf := what == "the answer is lost"
			g.Deaf(deaf)
			g.Mute(!deaf)
			flushed := make(chan error, 1)
			go func() { flushed <- l.Flush(bg) }()
			if deaf {
				// The message is stored, and its writer does not know.
				until(t, func() bool { return len(stored(t, direct, what)) > before })
			} else {
				until(t, func() bool { return g.Swallowed() > 0 })
			}
			select {
			case err := <-flushed:
				t.Fatalf("the flush ended without an answer: %v", err)
			default:
			}
			g.Deaf(false)
			g.Mute(false)
			g.Cut()
			ok(t, <-flushed)
			if got := len(stored(t, direct, what)); got != before+1 {
				t.Fatalf("%d messages are stored, want %d", got, before+1)
			}
			ok(t, storetest.Turn(l.Session(), 3))
			ok(t, l.Close(bg))
			sameLog(t, direct, l.Session())
		})
	}
}

func TestSentTwiceStoredOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []*natstest.Cluster{natstest.Start(t, natstest.Options{}), three.start(t)} {
		nodes := c.Nodes()
		s := open(t, newRealm(t, c), quick())
		l := create(t, s, "s1")
		ok(t, storetest.Turn(l.Session(), 1))
		ok(t, l.Close(bg))
		lease, err := s.acquire(bg, "s1", false)
		ok(t, err)
		m := message{Kind: kindFree, Seq: outcrop.Seq(lease.head.Events), Epoch: lease.epoch, Chain: lease.chain, Head: lease.head}
		f := lease.lk.prepare("s1", m, lease.last)
		// The answers of the first ones are thrown away.
		for range 5 {
			lease.lk.send(f)
		}
		seq, err := lease.lk.settle(bg, f)
		ok(t, err)
		all := stored(t, s, "s1")
		if last := all[len(all)-1]; last.Stored != seq || last.Kind != kindFree || all[len(all)-2].Kind != kindTake {
			t.Fatalf("on %d servers: message %d is acknowledged, stored are %v", nodes, seq, kinds(all))
		}
		// A message of the same epoch behind another expected sequence is another
		// writer's business.
		late := lease.lk.prepare("s1", m, lease.last)
		late.Chain[0]++
		if _, err := lease.lk.settle(bg, late); !errors.Is(err, store.ErrMoved) {
			t.Fatalf("a message that is not the last one's is %v", err)
		}
	}
}

func TestAMessageThatWasStoredBeforeATakeOverIsAcknowledgedAfterIt(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := newRealm(t, c)
	b := open(t, address, quick())
	g := c.Gate(t, 0)
	a := open(t, g.Address(b.addr.Name), quick())
	l := create(t, a, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	ok(t, storetest.Turn(l.Session(), 2))
	g.Deaf(true)
	done := flushed(l)
	until(t, func() bool { return len(stored(t, b, "s1")) == 2 })
	taken, err := b.TakeOver(bg, "s1")
	ok(t, err)
	g.Deaf(false)
	g.Cut()
	// It was there first, and the successor has read it.
	ok(t, <-done)
	ok(t, storetest.Turn(l.Session(), 3))
	if err := l.Flush(bg); !errors.Is(err, store.ErrMoved) {
		t.Fatalf("the next one is %v", err)
	}
	n := outcrop.Seq(0)
	for r, err := range taken.Records() {
		ok(t, err)
		n = r.Last() + 1
	}
	if n != l.Durable() {
		t.Fatalf("the successor has read %d events, %d were acknowledged", n, l.Durable())
	}
	ok(t, taken.Close())
}

func TestAPausedWriterThatWakesAfterATakeOverWritesNothing(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := newRealm(t, c)
	a, b := open(t, address, quick()), open(t, address, quick())
	la := create(t, a, "s1")
	ok(t, storetest.Turn(la.Session(), 1))
	ok(t, la.Flush(bg))
	lease := a.worker.leases["s1"]
	ok(t, lease.Held(bg))
	lost := lease.Lost()

	var held *HeldError
	if _, err := b.Acquire(bg, "s1"); !errors.As(err, &held) || held.Worker != a.Worker() || held.Holder.Program != "the tests" || !errors.Is(err, store.ErrLocked) {
		t.Fatalf("a session that is held: %v", err)
	}
	taken, err := b.TakeOver(bg, "s1")
	ok(t, err)
	if got := taken.(*Lease).Epoch(); got != 2 {
		t.Fatalf("epoch %d, want 2", got)
	}
	<-lost // the one that was cut off hears of it
	if err := lease.Held(bg); !errors.Is(err, store.ErrMoved) {
		t.Fatalf("the old lease is %v", err)
	}
	lb, err := store.Take(bg, taken, store.Options{Session: outcrop.Options{Now: tick()}})
	ok(t, err)
	ok(t, storetest.Turn(lb.Session(), 2))
	ok(t, lb.Flush(bg))

	ok(t, storetest.Turn(la.Session(), 2))
	if err := la.Flush(bg); !errors.Is(err, store.ErrMoved) {
		t.Fatalf("a writer of an old epoch gets %v", err)
	}
	if _, err := la.Session().Append(outcrop.TodoWrite{}); !errors.Is(err, outcrop.ErrVetoed) {
		t.Fatalf("after that an append gives %v", err)
	}
	if err := la.Close(bg); !errors.Is(err, store.ErrMoved) {
		t.Fatalf("its close says %v", err)
	}
	ok(t, storetest.Turn(lb.Session(), 3))
	ok(t, lb.Close(bg))
	sameLog(t, b, lb.Session())
	for _, m := range stored(t, b, "s1")[1:] {
		if m.Epoch == 1 {
			t.Fatalf("message %d is of the old epoch", m.Stored)
		}
	}
}

func TestASessionIsHandedOverInOneMessage(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := newRealm(t, c)
	a, b := open(t, address, quick()), open(t, address, quick())
	l := create(t, a, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Close(bg))
	o, err := b.Holder(bg, "s1")
	ok(t, err)
	if o.Worker != "" {
		t.Fatalf("after the close it is held by %+v", o)
	}
	lb := reopen(t, b, "s1")
	o, err = a.Holder(bg, "s1")
	ok(t, err)
	if o.Worker != b.Worker() || !o.Alive || o.Epoch != 2 || o.Holder.PID == 0 {
		t.Fatalf("the holder is %+v", o)
	}
	ws, err := a.Workers(bg)
	ok(t, err)
	if len(ws) != 2 {
		t.Fatalf("alive are %+v", ws)
	}
	ok(t, lb.Close(bg))
	if got := kinds(stored(t, a, "s1")); !slices.Equal(got, []kind{kindBatch, kindFree, kindTake, kindBatch, kindFree}) {
		t.Fatalf("stored are %v", got)
	}
}

// die ends a store as a killed process does: nothing is handed back.
func die(s *Store) {
	s.worker.mu.Lock()
	stop := s.worker.stop
	s.worker.mu.Unlock()
	if stop != nil {
		stop()
		<-s.worker.done
	}
	s.mu.Lock()
	s.lk.nc.Close()
	s.mu.Unlock()
}

// until looks until something is so.
func until(t testing.TB, is func() bool) {
	t.Helper()
	late := time.Now().Add(3 * time.Minute)
	for tick := time.NewTicker(2 * time.Millisecond); !is(); <-tick.C {
		if time.Now().After(late) {
			t.Fatal("it did not happen within three minutes")
		}
	}
}

// takeOver takes a session whose holder died, and tells how long that took.
func takeOver(t testing.TB, s *Store, id string) (*Lease, time.Duration) {
	t.Helper()
	began := time.Now()
	var l *Lease
	until(t, func() (done bool) {
		var err error
		l, err = s.acquire(bg, id, false)
		if err != nil && !errors.Is(err, store.ErrLocked) {
			t.Fatal(err)
		}
		return err == nil
	})
	return l, time.Since(began)
}

func TestTheSessionsOfADeadWorkerAreTaken(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := newRealmWith(t, c, lapsing)
	a, b := open(t, address, quick()), open(t, address, quick())
	l := create(t, a, "s1")
	ok(t, storetest.StartTurn(l.Session(), 1))
	ok(t, l.Flush(bg))
	die(a)
	if _, err := b.Acquire(bg, "s1"); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("while the key is there: %v", err)
	}
	lease, took := takeOver(t, b, "s1")
	t.Logf("taken over %v after the kill, with a lease of %s", took, lapsing)
	lb, err := store.Take(bg, lease, store.Options{Session: outcrop.Options{Now: tick()}})
	ok(t, err)
	ok(t, lb.Flush(bg))
	ok(t, lb.Close(bg))
	sameLog(t, b, lb.Session())
}

func TestALeaseThatLapsesIsLostUntilTheLeaderSaysOtherwise(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := newRealmWith(t, c, lapsing)
	b := open(t, address, quick())
	g := c.Gate(t, 0)
	a := open(t, g.Address(b.addr.Name), quick())
	l := create(t, a, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	lease := a.worker.leases["s1"]
	ok(t, lease.Held(bg))

	g.Shut(true)
	<-lease.Lost()
	short, stop := context.WithTimeout(bg, 50*time.Millisecond)
	if err := lease.Held(short); err == nil {
		t.Fatal("a lease that lapsed is held, without a server to ask")
	}
	stop()
	g.Shut(false)
	// Nobody took it, so that it is ours again.
	ok(t, lease.Held(bg))
	select {
	case <-lease.Lost():
		t.Fatal("the lease that is held is lost")
	default:
	}
	ok(t, storetest.Turn(l.Session(), 2))
	ok(t, l.Flush(bg))

	g.Shut(true)
	<-lease.Lost()
	taken, _ := takeOver(t, b, "s1")
	g.Shut(false)
	if err := lease.Held(bg); !errors.Is(err, store.ErrMoved) {
		t.Fatalf("a lease that lapsed and was taken is %v", err)
	}
	ok(t, taken.Close())
}

func TestARenewalThatCameTooLateIsALapse(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	s := open(t, newRealm(t, c), quick())
	l := create(t, s, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	lease := s.worker.leases["s1"]
	ok(t, lease.Held(bg))
	lost := lease.Lost()
	// The machine slept: the wall clock went on, and the key expired, though a
	// renewal comes before anybody looked.
	s.worker.mu.Lock()
	s.worker.renewed = time.Now().Round(0).Add(-time.Hour)
	lapses := s.worker.lapses
	s.worker.mu.Unlock()
	s.worker.renew(lease.lk, time.Now())
	<-lost
	if s.worker.good(lapses) {
		t.Fatal("who held before the lapse holds without asking")
	}
	ok(t, lease.Held(bg)) // nobody took it
}

func TestAPutWhoseAnswerIsLostKeepsItsObjects(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{MaxPayload: 64 << 10})
	address := newRealm(t, c)
	direct := open(t, address, quick())
	g := c.Gate(t, 0)
	s := open(t, g.Address(direct.addr.Name), quick())
	l := create(t, direct, "long")
	_, err := l.Session().Append(outcrop.SessionTitle{Title: noise(300 << 10)})
	ok(t, err)
	ok(t, l.Close(bg))
	// The answers stop when the message is made and the objects are stored.
	s.opt.fail = func(string) error {
		s.opt.Patience = time.Second
		g.Deaf(true)
		return nil
	}
	err = s.Put(bg, storetest.Header("copy"), func(yield func(outcrop.Record, error) bool) {
		for r := range l.Session().Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err == nil || errors.Is(err, store.ErrExists) {
		t.Fatalf("a put without an answer is %v", err)
	}
	g.Deaf(false)
	got, _, err := store.Inspect(bg, direct, "copy", outcrop.Options{})
	ok(t, err)
	if outcrop.LogDigest(got.Log()) != outcrop.LogDigest(l.Session().Log()) {
		t.Fatal("the copy differs")
	}
}
