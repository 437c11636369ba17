// Package worker takes turns of sessions that have something to do, in any
// number of processes on any number of machines, and gives input to sessions
// wherever they are worked on.
//
// # What is true
//
// The log says that there is work: input that waits in the inbox, or a turn that
// the end of a process cut (store.Due). A Worker looks at the store's list at
// start and at intervals; wakes that come over a Bus only make it faster, and none
// has to arrive.
//
// # Input
//
// Input is acknowledged when the event that holds it is durable in the session's
// log. A Sender asks whoever holds the session to append it; when nobody does, it
// takes the session for a moment, appends, hands it back and wakes a worker. Each
// input has a message id, which is looked for in the log first: a sender that lost
// an answer asks again, and the input is there once.
//
// # One session
//
// A worker takes the lease, which repairs what a dead process left open, and makes
// an agent. A turn that was cut before its answer was complete is gone on with
// (Continue), or left as it is (End). Then the agent does what waits, until
// nothing is left, and the session is handed back. Before each tool starts the
// lease is checked by the machine's monotonic clock (agent.Options.Guard); when it
// is lost, running tools are killed, and what is appended afterwards is refused by
// the store. What remains is the moment between the check and the effect of a
// tool: a process that is stopped in it and goes on after the session was taken
// over begins one tool call too late. Tools get a key and the epoch of the lease
// with each call, so that the system they reach can refuse it (tool.Call).
//
// Sessions that dsh can read too are left alone: dsh takes no lock, so nobody knows
// whether it is working on them. A wake names one all the same.
//
// A session over which several processes in a row died is left alone until
// something new comes to it.
//
// # Ending
//
// When the context of Run ends, nothing new is begun, and running turns go on to
// the end of their step, or for Options.Grace. Then they end as handed over, and
// another worker goes on with them. Run returns when all sessions are handed back.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/store"
)

// Session is a stored session with an agent, held by this process.
type Session interface {
	Session() *outcrop.Session
	Agent() *agent.Agent
	// Flush returns nil when everything that was appended is durable.
	Flush(ctx context.Context) error
	// Lost is store.Live's.
	Lost() <-chan struct{}
	// Close ends the agent and hands the session back.
	Close(ctx context.Context) error
}

// Opener makes agents.
type Opener interface {
	// Open takes the lease of a stored session, with force also from a holder
	// that lives (TakeOver), and makes an idle agent on it whose Guard asks the lease. ask
	// is who is asked about calls, nil for nobody. The session lives until Close,
	// not as long as ctx. The errors are those of store.Open, and what keeps an
	// agent from being made.
	Open(ctx context.Context, id string, force bool, ask agent.Approver) (Session, error)
}

// Options of a worker. Store and Opener are needed.
type Options struct {
	Store  store.Store
	Opener Opener
	// Bus reaches other processes; nil: none, and nobody can be asked about
	// calls.
	Bus Bus
	// Name tells this worker from others, in replies and logs.
	Name string
	// Concurrency is how many sessions are worked on at a time; default 4.
	// One whose call waits for approval does not count.
	Concurrency int
	// Every is how often the store is looked through; default 1 s without a
	// bus, 30 s with one.
	Every time.Duration
	// Interrupted says what becomes of turns that were cut; default Continue.
	Interrupted Interrupted
	// Attempts is over how many processes in a row may have died before a
	// session is left alone; default 5.
	Attempts int
	// Grace is how long a running turn may take to come to the end of its step
	// when the worker ends; default 30 s.
	Grace time.Duration
	// Once ends Run when nothing is left to be done now: what failed and waits to
	// be tried again is left.
	Once bool
	// TakeOver takes the sessions that have something to do when the worker
	// starts from whoever holds them.
	TakeOver bool
	Logger   *slog.Logger
	// Observe hears what happens, for metrics; nil: nobody. It returns at once.
	Observe func(Happening)
}

// Worker takes turns of sessions.
type Worker struct {
	o    Options
	log  *slog.Logger
	kick chan struct{} // capacity 1: look at the queue

	mu       sync.Mutex
	known    map[string]*known
	queue    []string // sessions that wait for a slot, in the order in which they came
	running  int      // sessions that hold a slot
	open     int      // sessions that are held
	look     bool     // look through the store as soon as can be
	looking  bool     // a look is under way
	lookedAt time.Time
	lookErr  error
	looked   bool // the store was looked through at least once
	ending   bool

	drain chan struct{}  // closed when Run's context has ended
	work  sync.WaitGroup // sessions that are held, and a look
}

// known is what a worker remembers of a session.
type known struct {
	state  placeOf
	again  bool       // a wake came while it was worked on
	seen   mark       // the log as it was looked at last
	due    *store.Due // what it left to be done then
	force  bool
	fails  int
	before time.Time // not earlier
}

type placeOf int

const (
	nowhere placeOf = iota
	waiting
	worked
)

// mark tells one state of a log from another.
type mark struct {
	events, bytes, updated int64
}

// New makes a worker. It does nothing before Run.
func New(o Options) (*Worker, error) {
	if o.Store == nil || o.Opener == nil {
		return nil, errors.New("worker: a store and an opener are needed")
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 4
	}
	if o.Every <= 0 {
		o.Every = time.Second
		if o.Bus != nil {
			o.Every = 30 * time.Second
		}
	}
	if o.Interrupted == "" {
		o.Interrupted = Continue
	}
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	if o.Grace <= 0 {
		o.Grace = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(Happening) {}
	}
	return &Worker{
		o: o, log: o.Logger, kick: make(chan struct{}, 1), known: map[string]*known{}, drain: make(chan struct{}),
	}, nil
}

// Run works until ctx ends, then hands everything back. An error says that the
// worker could not begin: the store cannot be listed, or the bus not be heard. It
// is called once.
func (w *Worker) Run(ctx context.Context) error {
	if w.o.Bus != nil {
		stop, err := w.o.Bus.Wakes(w.woken)
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := w.lookThrough(ctx, w.o.TakeOver); err != nil && ctx.Err() == nil {
		return err
	}
	always := context.WithoutCancel(ctx)
	tick := time.NewTimer(w.o.Every)
	defer tick.Stop()
	for ctx.Err() == nil {
		next := w.dispatch(always)
		if w.o.Once && w.idle() {
			if err := w.lookThrough(ctx, false); err != nil {
				w.end()
				return err
			}
			if w.idle() {
				break
			}
			continue
		}
		var due <-chan time.Time
		var timer *time.Timer
		if next > 0 {
			timer = time.NewTimer(next)
			due = timer.C
		}
		select {
		case <-ctx.Done():
		case <-w.kick:
			if w.takeLook() {
				w.lookAside(ctx)
			}
		case <-due:
		case <-tick.C:
			w.lookAside(ctx)
			tick.Reset(w.o.Every)
		}
		if timer != nil {
			timer.Stop()
		}
	}
	w.end()
	w.work.Wait()
	return nil
}

// end tells the sessions that are worked on to come to an end.
func (w *Worker) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
	w.queue = nil
	close(w.drain)
	w.log.Info("the worker ends", "sessions", w.open)
}

// idle reports that nothing is worked on and nothing in the queue may begin now.
func (w *Worker) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, id := range w.queue {
		if !w.of(id).before.After(now) {
			return false
		}
	}
	return w.open == 0
}

func (w *Worker) nudge() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// takeLook reports that a look at the store was asked for, and none is under way.
func (w *Worker) takeLook() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.look && !w.looking
	if asked {
		w.look = false
	}
	return asked
}

// lookAside looks through the store while sessions go on being taken: in a large
// one it takes a while.
func (w *Worker) lookAside(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looking {
		w.look = true // once more, when this one is done
		return
	}
	w.looking = true
	w.work.Go(func() {
		err := w.lookThrough(ctx, false) // noted, and told by Load
		if err != nil {
			// The servers may be back long before the next look is due.
			timer := time.NewTimer(backOffAway)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		w.mu.Lock()
		w.looking = false
		w.look = w.look || err != nil
		w.mu.Unlock()
		w.nudge()
	})
}

// woken takes a wake.
func (w *Worker) woken(session string, one bool) {
	w.mu.Lock()
	pass := false
	if session == "" {
		w.look = true
	} else if !w.ending {
		k := w.of(session)
		// What is known of it was before the wake.
		k.due, k.before = nil, time.Time{}
		switch k.state {
		case worked:
			k.again = true
		case nowhere:
			pass = one && w.running >= w.o.Concurrency
			k.state = waiting
			w.queue = append(w.queue, session)
		}
	} else {
		pass = one
	}
	w.mu.Unlock()
	w.o.Observe(Happening{Kind: Woken, Session: session})
	if pass {
		// Somebody with a free slot may have it; it stays in the queue here.
		go func() {
			if err := w.o.Bus.Wake(context.Background(), session, true); err != nil {
				w.log.Debug("a wake was not passed on", "session", session, "err", err)
			}
		}()
	}
	w.nudge()
}

// of is what is known of a session; w.mu is held.
func (w *Worker) of(id string) *known {
	k := w.known[id]
	if k == nil {
		k = &known{}
		w.known[id] = k
	}
	return k
}

// dispatch begins sessions of the queue while there are slots, and says when a
// session that has to wait may begin, 0 when none has to.
func (w *Worker) dispatch(ctx context.Context) (next time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	var rest []string
	for _, id := range w.queue {
		k := w.of(id)
		if wait := k.before.Sub(now); wait > 0 {
			if next == 0 || wait < next {
				next = wait
			}
			rest = append(rest, id)
			continue
		}
		if w.running >= w.o.Concurrency || w.ending {
			rest = append(rest, id)
			continue
		}
		w.running++
		w.open++
		k.state, k.again = worked, false
		w.work.Add(1)
		go w.one(ctx, id, k.force)
		k.force = false
	}
	w.queue = rest
	return next
}

// settled forgets wakes for a session that is about to be handed back: while it
// was held nobody else put anything into it.
func (w *Worker) settled(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(id).again = false
}

// slot takes a slot for a session that is held, and gives it back.
func (w *Worker) slot(n int) {
	w.mu.Lock()
	w.running += n
	w.mu.Unlock()
	w.nudge()
}

const (
	backOffFirst = time.Second
	backOffMost  = 5 * time.Minute
	backOffAway  = 2 * time.Second // when it is the store that failed
)

// one works on one session, and decides when it is to be looked at again.
func (w *Worker) one(ctx context.Context, id string, force bool) {
	defer w.work.Done()
	what := w.stint(ctx, id, force)

	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.nudge()
	w.running--
	w.open--
	k := w.of(id)
	k.state, k.due, k.seen = nowhere, nil, mark{}
	switch {
	case what.gone:
		delete(w.known, id)
		return
	case what.away:
		k.before = time.Now().Add(backOffAway)
	case what.failed:
		k.fails++
		k.before = time.Now().Add(min(backOffFirst<<min(k.fails-1, 20), backOffMost))
	default:
		k.fails = 0
	}
	if w.ending {
		return
	}
	if k.again || what.more && !what.elsewhere {
		k.state = waiting
		if k.again {
			k.before = time.Time{}
		}
		w.queue = append(w.queue, id)
	}
}
