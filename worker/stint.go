package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// came is what came of working on a session.
type came struct {
	err       error
	gone      bool // the session is not in the store
	elsewhere bool // somebody else holds it
	failed    bool // it is to be tried again, later
	away      bool // it failed because the store cannot be reached
	more      bool // something is left to be done
}

// stint is one session while this worker holds it.
type stint struct {
	w       *Worker
	id      string
	s       Session
	ask     *questions
	holder  *Holder
	release chan struct{} // closed when somebody asked for the session
	lost    chan struct{} // closed when it may be somebody else's
}

// stint takes a session, does what is to be done in it, and hands it back.
func (w *Worker) stint(ctx context.Context, id string, force bool) came {
	st := &stint{w: w, id: id, release: make(chan struct{}), lost: make(chan struct{})}
	st.ask = &questions{slot: w.slot}
	var approver agent.Approver
	if w.o.Bus != nil {
		approver = st.ask
	}
	if l, ok := w.o.Store.(store.Looker); ok && !force {
		// A wake may have reached several workers: who comes late takes nothing.
		switch in, err := l.Look(ctx, id); {
		case err == nil && in.State == store.StateLocked:
			return came{elsewhere: true}
		case err == nil && in.Due != nil && !w.hasWork(in.Due):
			return came{}
		}
	}
	begun := time.Now()
	s, err := w.o.Opener.Open(ctx, id, force, approver)
	w.o.Observe(Happening{Kind: Taken, Session: id, Err: err, Took: time.Since(begun)})
	switch {
	case errors.Is(err, outcrop.ErrNotFound):
		return came{gone: true, err: err}
	case errors.Is(err, store.ErrLocked), errors.Is(err, store.ErrMoved):
		// Whoever has it looks what there is to do when they hand it back.
		return came{elsewhere: true}
	case err != nil:
		w.log.Warn("a session cannot be worked on", "session", id, "err", err)
		return came{failed: true, away: w.away(ctx, id), more: true, err: err}
	}
	st.s = s
	w.log.Info("a session was taken", "session", id, "events", s.Session().Len())
	c := st.run(ctx)
	w.settled(id)
	if err := s.Close(ctx); err != nil {
		c.err = errors.Join(c.err, err)
		if !errors.Is(err, store.ErrMoved) {
			w.log.Warn("a session was not handed back in good order", "session", id, "err", err)
			c.failed = true
		}
	}
	if c.failed && c.err != nil {
		c.away = w.away(ctx, id)
	}
	w.o.Observe(Happening{Kind: Handed, Session: id, Err: c.err, Took: time.Since(begun)})
	w.log.Info("a session was handed back", "session", id, "events", s.Session().Len())
	if c.more && w.o.Bus != nil && (w.isEnding() || st.isLost()) {
		// Somebody else goes on with it at once.
		if err := w.o.Bus.Wake(ctx, id, false); err != nil {
			w.log.Debug("nobody was woken", "session", id, "err", err)
		}
	}
	return c
}

// awayWithin is how long a store may take to say something about a session before
// it counts as one that cannot be reached.
const awayWithin = 2 * time.Second

// away reports that what failed is the store and not the session: with every
// session that is tried while servers are away the pause before the next try would
// grow, and last long after they are back.
func (w *Worker) away(ctx context.Context, id string) bool {
	l, ok := w.o.Store.(store.Looker)
	if !ok {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, awayWithin)
	defer stop()
	_, err := l.Look(ctx, id)
	return err != nil && !errors.Is(err, outcrop.ErrNotFound)
}

func (w *Worker) isEnding() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ending
}

// run does what is to be done, until nothing is.
func (st *stint) run(ctx context.Context) (c came) {
	ag, s := st.s.Agent(), st.s.Session()
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { st.watch(ctx, done) })
	defer func() { close(done); watching.Wait() }()

	st.holder = NewHolder(ag, s, st.s.Flush, st.w.o.Name)
	st.holder.ask, st.holder.release = st.ask, sync.OnceFunc(func() { close(st.release) })
	var begun time.Time
	stop := ag.Observe(func(ev outcrop.Event) {
		switch ev.Type {
		case outcrop.TypeTurnStart:
			begun = time.Now()
		case outcrop.TypeTurnEnd:
			st.w.o.Observe(Happening{Kind: Turned, Session: st.id, Reason: reasonOf(ev), Took: time.Since(begun)})
		}
	})
	defer stop()

	due := dueOf(s.Header(), s.Log())
	if due.Cuts >= st.w.o.Attempts {
		st.w.log.Warn("a session is left alone: process after process died over it; it is gone on with when a person sends it something",
			"session", st.id, "deaths", due.Cuts)
		return came{}
	}
	first := due.Cut && st.w.o.Interrupted == Continue
	for {
		hush := st.answers()
		failed, err := st.turns(ctx, first)
		hush()
		first = false
		// What was delivered while the answering ended is still done here.
		if err != nil || st.leaving() {
			st.settle(ctx)
			moved := errors.Is(err, store.ErrMoved)
			return came{err: err, failed: err != nil && !moved, elsewhere: moved || st.leaving() && !st.w.isEnding(), more: st.remains()}
		}
		switch left, idle := st.left(ctx); {
		case failed && idle:
			return came{failed: true, more: left}
		case idle && !left:
			return came{}
		}
	}
}

// settle stops what a late delivery has begun, so that another process goes on
// with it.
func (st *stint) settle(ctx context.Context) {
	st.stop(ctx)
	if _, err := st.s.Agent().Wait(ctx); err != nil && !errors.Is(err, agent.ErrClosed) {
		st.w.log.Warn("a turn did not end", "session", st.id, "err", err)
	}
}

// answers answers for the session until hush is called.
func (st *stint) answers() (hush func()) {
	if st.w.o.Bus == nil {
		return func() {}
	}
	hush, err := st.w.o.Bus.Answer(st.id, func(ctx context.Context, r Request) Reply {
		if st.leaving() && r.Kind != Release {
			return Reply{Code: CodeLeaving, Text: "the session is handed back", By: st.w.o.Name}
		}
		reply := st.holder.Answer(ctx, r)
		st.w.o.Observe(Happening{Kind: Asked, Session: st.id, Request: r.Kind, Code: reply.Code})
		return reply
	})
	if err != nil {
		st.w.log.Warn("nobody can reach a session that is worked on", "session", st.id, "err", err)
		return func() {}
	}
	return hush
}

// turns runs turns until nothing is pending, a turn has failed, or the session is
// to be left. err is what makes going on impossible.
func (st *stint) turns(ctx context.Context, first bool) (failed bool, err error) {
	ag := st.s.Agent()
	for !st.leaving() {
		if first && !st.goingOn(ctx) {
			if _, err := ag.GoOn(ctx, goOnWith(st.s.Session().Log())); err != nil && !errors.Is(err, agent.ErrInput) {
				return false, err
			}
		}
		first = false
		pending, err := ag.Wake(ctx)
		if err != nil {
			return false, err
		}
		if !pending && ag.Status().Phase == agent.Idle {
			return false, nil
		}
		out, err := ag.Wait(ctx)
		switch {
		case errors.Is(err, agent.ErrClosed) && st.leaving():
			return false, nil
		case err != nil:
			return false, err
		case out.Err != nil && out.Reason.Kind != outcrop.Blocked:
			return false, out.Err
		case out.Reason.Kind == outcrop.TurnError:
			return true, nil
		}
	}
	return false, nil
}

// goOnID begins the ids of messages that go on with a turn.
const goOnID = "go-on-"

// goingOn reports that a message which goes on with a cut turn waits already.
func (st *stint) goingOn(ctx context.Context) bool {
	step, turn, err := st.s.Agent().Pending(ctx)
	is := func(ms []message.Message) bool {
		for _, m := range ms {
			if strings.HasPrefix(m.ID, goOnID) && m.Source.Kind == "plugin" {
				return true
			}
		}
		return false
	}
	return err == nil && (is(step) || is(turn))
}

// left reports whether input waits, and whether the agent does nothing.
func (st *stint) left(ctx context.Context) (pending, idle bool) {
	step, turn, err := st.s.Agent().Pending(ctx)
	return len(step)+len(turn) > 0, err != nil || st.s.Agent().Status().Phase == agent.Idle
}

// remains reports whether the log leaves something for the next holder.
func (st *stint) remains() bool {
	return st.w.hasWork(dueOf(st.s.Session().Header(), st.s.Session().Log()))
}

// isLost reports that the lease lapsed or was taken.
func (st *stint) isLost() bool {
	select {
	case <-st.lost:
		return true
	default:
		return false
	}
}

// leaving reports that the session is to be handed back as soon as can be.
func (st *stint) leaving() bool {
	for _, c := range []<-chan struct{}{st.w.drain, st.release, st.lost} {
		select {
		case <-c:
			return true
		default:
		}
	}
	return false
}

// watch ends the running turn when the session is to be left.
func (st *stint) watch(ctx context.Context, done <-chan struct{}) {
	ag := st.s.Agent()
	select {
	case <-done:
		return
	case <-st.s.Lost():
		close(st.lost)
		st.w.log.Warn("a session was lost: its tools are killed", "session", st.id)
		st.w.o.Observe(Happening{Kind: Gone, Session: st.id})
		// A lease that lapsed may not have been taken by anybody: then what the
		// log says of the end of this turn counts.
		st.stop(ctx)
		return
	case <-st.release:
		st.stop(ctx)
		return
	case <-st.w.drain:
	}
	// The worker ends: the step may come to its end.
	grace := time.NewTimer(st.w.o.Grace)
	defer grace.Stop()
	step := make(chan struct{}, 1)
	unwatch := ag.Observe(func(ev outcrop.Event) {
		if ev.Type == outcrop.TypeStepEnd || ev.Type == outcrop.TypeApprovalAsked {
			select {
			case step <- struct{}{}:
			default:
			}
		}
	})
	defer unwatch()
	if !st.ask.waiting() {
		select {
		case <-done:
			return
		case <-step:
		case <-grace.C:
		case <-st.s.Lost():
			close(st.lost)
		}
	}
	st.stop(ctx)
}

// stop cancels the running turn, for another holder to go on with; what waits goes
// on waiting.
func (st *stint) stop(ctx context.Context) {
	why := agent.Cause{Kind: agent.ByHook, Reason: store.HandedOver}
	if _, err := st.s.Agent().Cancel(ctx, why, agent.KeepInbox); err != nil && !errors.Is(err, agent.ErrClosed) {
		st.w.log.Warn("a turn cannot be stopped", "session", st.id, "err", err)
	}
}

func reasonOf(end outcrop.Event) outcrop.ReasonKind {
	kind, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(end.Data, "reason"), "kind"))
	return outcrop.ReasonKind(kind)
}
