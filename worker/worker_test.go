package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/worker"
)

// shop is one store with workers.
type shop struct {
	t      *testing.T
	st     *memory.Store
	bus    worker.Bus
	opener *opener
	sender *worker.Sender

	mu    sync.Mutex
	heard []worker.Happening
}

func newShop(t *testing.T, withBus bool) *shop {
	s := &shop{t: t, st: memory.New()}
	if withBus {
		s.bus = worker.NewBus()
	}
	s.opener = &opener{st: s.st, bus: s.bus, model: answering(100 * time.Millisecond), tool: &workTool{takes: time.Second}}
	s.sender = &worker.Sender{Store: s.st, Bus: s.bus, Name: "sender"}
	return s
}

// open starts a worker; close ends it in good order.
func (s *shop) open(change func(*worker.Options)) (w *worker.Worker, end func()) {
	s.t.Helper()
	o := worker.Options{Store: s.st, Opener: s.opener, Bus: s.bus, Name: "the worker", Observe: func(h worker.Happening) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = append(s.heard, h)
	}}
	if change != nil {
		change(&o)
	}
	w, err := worker.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			s.t.Error(err)
		}
	})
	return w, func() { stop(); running.Wait() }
}

// count is how many happenings there were of a kind.
func (s *shop) count(is func(worker.Happening) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.heard {
		if is(h) {
			n++
		}
	}
	return n
}

func taken(h worker.Happening) bool { return h.Kind == worker.Taken && h.Err == nil }

// begin makes a session with one input.
func (s *shop) begin(id, input string) {
	s.t.Helper()
	h := outcrop.NewHeader(id, 1, "/srv")
	if _, err := s.sender.Begin(context.Background(), h, inputOf(input)); err != nil {
		s.t.Fatal(err)
	}
}

// judge is the law for one session.
func (s *shop) judge(id string, inputs ...string) {
	s.t.Helper()
	h, log, err := read(s.st, id)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := judge(h, log, inputs); err != nil {
		s.t.Errorf("%v\n%s", err, text(log))
	}
}

// reasons are how the turns of a session ended.
func (s *shop) reasons(id string) (all []string) {
	s.t.Helper()
	_, log, err := read(s.st, id)
	if err != nil {
		s.t.Fatal(err)
	}
	for ev := range outcrop.Events(log, 0) {
		if ev.Type == outcrop.TypeTurnEnd {
			kind, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(ev.Data, "reason"), "kind"))
			why, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(jsonwire.Get(ev.Data, "reason"), "reason"), "reason"))
			all = append(all, strings.TrimSuffix(kind+" "+why, " "))
		}
	}
	return all
}

// cut leaves a session as a crash in the middle of a turn does.
func (s *shop) cut(id, input string) {
	s.t.Helper()
	ctx := context.Background()
	s.opener.tool.takes = time.Hour
	defer func() { s.opener.tool.takes = time.Second }()
	_, end := s.open(nil)
	s.begin(id, input)
	time.Sleep(1500 * time.Millisecond) // the tool runs
	synctest.Wait()
	s.st.Crash()
	end()
	if s.count(taken) == 0 {
		s.t.Fatal("nobody worked")
	}
	d, err := store.DueOf(ctx, s.st, id)
	if err != nil || !d.Open {
		s.t.Fatalf("%+v, %v", d, err)
	}
	s.heard = nil
}

func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func TestAWakeIsFasterThanLookingAround(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, true)
		_, end := s.open(func(o *worker.Options) { o.Every = time.Hour })
		defer end()
		synctest.Wait()
		s.begin("s", "a")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		s.judge("s", "a")
	})
}

func TestWithoutABusTheStoreIsLookedThrough(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, false)
		_, end := s.open(nil)
		defer end()
		synctest.Wait()
		s.begin("s", "a")
		time.Sleep(5 * time.Second)
		s.judge("s", "a")
		n := s.count(taken)
		time.Sleep(time.Minute)
		if more := s.count(taken); more != n || n != 1 {
			t.Errorf("a session with nothing to do was taken %d times more, after %d", more-n, n)
		}
	})
}

func TestSlotsAreNotExceededAndAreUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, true)
		for n := range 7 {
			s.begin(fmt.Sprintf("s%d", n), fmt.Sprintf("i%d", n))
		}
		w, end := s.open(func(o *worker.Options) { o.Concurrency = 3 })
		defer end()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if l := w.Load(); l.Running != 3 || l.Held != 3 || l.Waiting != 4 {
			t.Errorf("%+v", l)
		}
		time.Sleep(time.Minute)
		for n := range 7 {
			s.judge(fmt.Sprintf("s%d", n), fmt.Sprintf("i%d", n))
		}
		if l := w.Load(); l.Running != 0 || l.Held != 0 || l.Waiting != 0 || l.Err != nil || l.LookedAt.IsZero() {
			t.Errorf("%+v", l)
		}
	})
}

func TestATurnThatWasCutIsGoneOnWithOrEnded(t *testing.T) {
	for _, c := range []struct {
		policy  worker.Interrupted
		reasons []string
	}{
		{worker.Continue, []string{"interrupted", "completed"}},
		{worker.End, []string{"interrupted"}},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newShop(t, true)
				s.cut("s", "a")
				_, end := s.open(func(o *worker.Options) { o.Interrupted = c.policy; o.Every = time.Second })
				time.Sleep(time.Minute)
				end()
				if got := s.reasons("s"); !slices.Equal(got, c.reasons) {
					t.Errorf("turns ended as %q", got)
				}
				if n := s.count(taken); n != 1 {
					t.Errorf("the session was taken %d times", n)
				}
			})
		})
	}
}

func TestASessionThatKillsItsWorkersIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, true)
		s.begin("s", "a")
		s.opener.tool.takes = time.Hour
		for range 8 {
			_, end := s.open(func(o *worker.Options) { o.Attempts = 3; o.Every = time.Second })
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			s.st.Crash() // in the middle of the tool, if a turn runs
			end()
		}
		_, end := s.open(func(o *worker.Options) { o.Attempts = 3 })
		time.Sleep(time.Minute)
		if got := s.reasons("s"); !slices.Equal(got, []string{"interrupted", "interrupted", "interrupted"}) {
			t.Errorf("turns ended as %q", got)
		}
		// Something new: it is tried again.
		s.opener.tool.takes = time.Second
		if _, err := s.sender.Send(context.Background(), "s", inputOf("b"), false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		end()
		s.judge("s", "a", "b")
	})
}

func TestAWorkerThatEndsLetsTheStepEndAndAnotherGoesOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		grace time.Duration
		what  string // the result of the call that ran
	}{
		{"the step ends in time", 10 * time.Second, `"text":"done"`},
		{"the step does not end in time", 200 * time.Millisecond, "tool call aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newShop(t, true)
				_, end := s.open(func(o *worker.Options) { o.Grace = c.grace })
				synctest.Wait()
				s.begin("s", "a")
				time.Sleep(600 * time.Millisecond)
				synctest.Wait()
				_, endOther := s.open(nil)
				defer endOther()
				began := time.Now()
				end()
				if took := time.Since(began); took > min(c.grace+time.Second, 2*time.Second) {
					t.Errorf("ending took %s", took)
				}
				time.Sleep(30 * time.Second)
				s.judge("s", "a")
				if got := s.reasons("s"); !slices.Equal(got, []string{"aborted " + store.HandedOver, "completed"}) {
					t.Errorf("turns ended as %q", got)
				}
				if _, log, err := read(s.st, "s"); err != nil || !strings.Contains(text(outcrop.Prefix(log, log.Len()/2)), c.what) {
					t.Errorf("no %s, %v\n%s", c.what, err, text(log))
				}
			})
		})
	}
}

func TestALostSessionHasItsToolsKilled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, true)
		s.opener.tool.takes = time.Hour
		_, end := s.open(func(o *worker.Options) { o.Every = time.Hour })
		synctest.Wait()
		s.begin("s", "a")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		l, err := store.TakeOver(context.Background(), s.st, "s", store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s.count(func(h worker.Happening) bool { return h.Kind == worker.Gone }) != 1 {
			t.Error("the loss was not noticed")
		}
		if n := s.count(func(h worker.Happening) bool { return h.Kind == worker.Handed }); n != 1 {
			t.Errorf("the session is still worked on: %d", n)
		}
		end()
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestCallsAreApprovedFromElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		s := newShop(t, true)
		s.opener.policy = agent.AskAll
		w, end := s.open(func(o *worker.Options) { o.Concurrency = 1 })
		defer end()
		synctest.Wait()
		s.begin("s", "a")
		s.begin("other", "b")
		time.Sleep(time.Second)
		synctest.Wait()
		if l := w.Load(); l.Held != 2 || l.Running != 0 {
			t.Errorf("sessions that wait for an answer hold slots: %+v", l)
		}
		for _, id := range []string{"s", "other"} {
			qs, err := s.sender.Questions(ctx, id)
			if err != nil || len(qs) != 1 || qs[0].Tool != "work" || qs[0].Arguments != "{}" || qs[0].Class != "exec" {
				t.Fatalf("%+v, %v", qs, err)
			}
			if _, err := s.sender.Decide(ctx, id, "nothing", true, ""); !errors.Is(err, worker.ErrRefused) {
				t.Errorf("an unknown question: %v", err)
			}
			r, err := s.sender.Decide(ctx, id, qs[0].CallID, id == "s", "not today")
			if err != nil || r.By != "the worker" {
				t.Errorf("%+v, %v", r, err)
			}
		}
		time.Sleep(10 * time.Second)
		s.judge("s", "a")
		s.judge("other", "b")
		if n := len(s.opener.tool.ran); n != 1 {
			t.Errorf("%d calls ran", n)
		}
		_, log, err := read(s.st, "other")
		if err != nil || !strings.Contains(text(log), "not approved by the user: not today") {
			t.Errorf("the reason is not in the log: %v", err)
		}
		if _, err := s.sender.Decide(ctx, "s", "x", true, ""); !errors.Is(err, worker.ErrRefused) {
			t.Errorf("nobody works on it: %v", err)
		}
	})
}

func TestATurnIsCancelledAndSteeredFromElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		s := newShop(t, true)
		s.opener.tool.takes = time.Minute
		_, end := s.open(nil)
		defer end()
		synctest.Wait()
		s.begin("s", "a")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		r, err := s.sender.Send(ctx, "s", inputOf("now"), true)
		if err != nil || r.By != "the worker" || r.Known {
			t.Errorf("%+v, %v", r, err)
		}
		if again, err := s.sender.Send(ctx, "s", inputOf("now"), true); err != nil || !again.Known || again.Seq != r.Seq {
			t.Errorf("%+v, %v", again, err)
		}
		if _, err := s.sender.Send(ctx, "s", inputOf("later"), false); err != nil {
			t.Error(err)
		}
		c, err := s.sender.Cancel(ctx, "s")
		if err != nil || !c.Canceled || c.Dropped != 2 {
			t.Errorf("%+v, %v", c, err)
		}
		time.Sleep(10 * time.Second)
		if got := s.reasons("s"); !slices.Equal(got, []string{"aborted"}) {
			t.Errorf("turns ended as %q", got)
		}
		// Nobody holds it any more.
		if _, err := s.sender.Send(ctx, "s", inputOf("x"), false); err != nil {
			t.Error(err)
		}
	})
}

func TestASessionThatFailsIsTriedAgainLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, false)
		var tries atomic.Int64
		s.opener.fail = func(string) error {
			if tries.Add(1) <= 4 {
				return errors.New("the model's server is away")
			}
			return nil
		}
		s.begin("s", "a")
		began := time.Now()
		_, end := s.open(nil)
		defer end()
		for tries.Load() <= 4 {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if took := time.Since(began); took < 14*time.Second || took > 25*time.Second {
			t.Errorf("five tries within %s", took)
		}
		time.Sleep(10 * time.Second)
		s.judge("s", "a")
	})
}

func TestATurnThatFailedLeavesTheRestForLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, false)
		good := answering(0)
		calls := 0
		s.opener.model = &script.Model{Reply: func(r llm.Request) script.Reply {
			if calls++; calls == 1 {
				return script.Reply{Error: &message.Failure{Code: message.CodeAuth, Message: "the key was refused"}}
			}
			return good.Reply(r)
		}}
		s.begin("s", "a")
		if _, err := s.sender.Send(context.Background(), "s", inputOf("b"), false); err != nil {
			t.Fatal(err)
		}
		_, end := s.open(nil)
		defer end()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := s.reasons("s"); !slices.Equal(got, []string{"error"}) {
			t.Errorf("turns ended as %q: the second input must not be spent as well", got)
		}
		time.Sleep(20 * time.Second)
		if got := s.reasons("s"); !slices.Equal(got, []string{"error", "completed"}) {
			t.Errorf("turns ended as %q", got)
		}
	})
}

func TestOnceEndsWhenNothingIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, true)
		s.begin("s", "a")
		s.begin("bad", "b")
		s.opener.fail = func(id string) error {
			if id == "bad" {
				return errors.New("no")
			}
			return nil
		}
		w, err := worker.New(worker.Options{Store: s.st, Opener: s.opener, Bus: s.bus, Once: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.judge("s", "a")
	})
}

func TestASessionIsHandedOverToOneWhoAsks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		s := newShop(t, true)
		s.opener.tool.takes = time.Hour
		_, end := s.open(func(o *worker.Options) { o.Every = time.Hour })
		defer end()
		synctest.Wait()
		s.begin("s", "a")
		time.Sleep(500 * time.Millisecond)
		l, err := worker.TakeOver(ctx, s.st, s.bus, "s", "me", store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// In good order: the holder has closed its turn.
		if got := s.reasons("s"); !slices.Equal(got, []string{"aborted " + store.HandedOver}) {
			t.Errorf("turns ended as %q", got)
		}
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestASenderSaysWhoHoldsASessionThatAnswersToNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, withBus := range []bool{false, true} {
			s := newShop(t, withBus)
			s.begin("s", "a")
			l, err := store.Open(context.Background(), s.st, "s", store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
			began := time.Now()
			_, err = s.sender.Send(ctx, "s", inputOf("b"), false)
			stop()
			if !errors.Is(err, store.ErrLocked) || (time.Since(began) > 0) != withBus {
				t.Errorf("bus %v: %v after %s", withBus, err, time.Since(began))
			}
			if err := l.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWhatCannotBeSentIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		s := newShop(t, true)
		s.begin("s", "a")
		if _, err := s.sender.Send(ctx, "s", message.Message{Content: []message.Block{message.Text("x")}}, false); !errors.Is(err, agent.ErrInput) {
			t.Errorf("without an id: %v", err)
		}
		if _, err := s.sender.Send(ctx, "nobody", inputOf("x"), false); !errors.Is(err, outcrop.ErrNotFound) {
			t.Errorf("no such session: %v", err)
		}
		s.opener.tool.takes = time.Minute
		_, end := s.open(nil)
		defer end()
		time.Sleep(time.Second)
		synctest.Wait()
		for _, r := range []worker.Request{{Kind: "dance"}, {Kind: worker.Deliver, Message: []byte(`{"id":1}`)}, {Kind: worker.Deliver, Message: []byte(`{}`)}} {
			if reply, err := s.bus.Ask(ctx, "s", r); err != nil || reply.Code != worker.CodeRefused {
				t.Errorf("%s: %+v, %v", r.Kind, reply, err)
			}
		}
		m := inputOf("b")
		m.Role = message.Assistant
		if _, err := s.sender.Send(ctx, "s", m, false); !errors.Is(err, worker.ErrRefused) {
			t.Errorf("an assistant's message: %v", err)
		}
	})
}

// lapsing is a store whose leases lapse when it is told so, though nobody takes
// the sessions.
type lapsing struct {
	store.Store
	mu    sync.Mutex
	lapse chan struct{}
}

func (s *lapsing) Acquire(ctx context.Context, id string) (store.Lease, error) {
	l, err := s.Store.Acquire(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return lapsed{l, s.lapse}, err
}

// now ends all leases that were given.
func (s *lapsing) now() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.lapse)
	s.lapse = make(chan struct{})
}

type lapsed struct {
	store.Lease
	lost chan struct{}
}

func (l lapsed) Lost() <-chan struct{}      { return l.lost }
func (l lapsed) Held(context.Context) error { return nil }

// When the servers are away for longer than the lease, nobody takes the session,
// and the writer goes on when they are back: what it says last must not be that
// the turn is over.
func TestATurnIsGoneOnWithAfterALapseThatNobodyUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, true)
		st := &lapsing{Store: s.st, lapse: make(chan struct{})}
		s.opener.st = st
		_, end := s.open(func(o *worker.Options) { o.Store = st; o.Every = time.Hour })
		defer end()
		synctest.Wait()
		s.begin("s", "a")
		time.Sleep(500 * time.Millisecond)
		st.now()
		time.Sleep(time.Minute)
		s.judge("s", "a")
		if got := s.reasons("s"); !slices.Equal(got, []string{"aborted " + store.HandedOver, "completed"}) {
			t.Errorf("turns ended as %q", got)
		}
	})
}

// distant is a store that can be out of reach.
type distant struct {
	store.Store
	away atomic.Bool
}

var errAway = errors.New("no servers")

func (s *distant) Acquire(ctx context.Context, id string) (store.Lease, error) {
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.Acquire(ctx, id)
}

func (s *distant) Look(ctx context.Context, id string) (store.Info, error) {
	if s.away.Load() {
		return store.Info{}, errAway
	}
	d, err := store.DueOf(ctx, s.Store, id)
	return store.Info{ID: id, State: store.StateOK, Due: d}, err
}

func (s *distant) List(ctx context.Context, o store.ListOptions) ([]store.Info, error) {
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.List(ctx, o)
}

func TestAnOutageOfTheStoreDelaysNothingAfterwards(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, true)
		st := &distant{Store: s.st}
		s.bus = &muted{Bus: s.bus}
		s.sender.Bus, s.opener.bus = s.bus, s.bus
		s.opener.st = st
		_, end := s.open(func(o *worker.Options) { o.Store = st })
		defer end()
		synctest.Wait()
		st.away.Store(true)
		s.begin("s", "a") // of this it is told
		s.bus.(*muted).on(true)
		s.begin("s2", "b") // of this it is not
		time.Sleep(20 * time.Minute)
		st.away.Store(false)
		began := time.Now()
		for len(s.reasons("s")) == 0 || len(s.reasons("s2")) == 0 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it was answered %s after the store was back", took)
		}
	})
}

// muted is a bus whose wakes get lost when it is on.
type muted struct {
	worker.Bus
	lost atomic.Bool
}

func (m *muted) on(lost bool) { m.lost.Store(lost) }

func (m *muted) Wake(ctx context.Context, session string, each bool) error {
	if m.lost.Load() {
		return nil
	}
	return m.Bus.Wake(ctx, session, each)
}
