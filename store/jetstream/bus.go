package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// The bus of a realm is core NATS: nothing of it is stored, and no stream listens
// on its subjects.
//
//	outcrop.NAME.bus.ask.TOKEN   a question to whoever holds a session; the
//	                             header Outcrop-Within says for how many
//	                             milliseconds the answer is waited for; the one
//	                             who takes it says so at once, with the header
//	                             Outcrop-Taken, and answers when it is done
//	outcrop.NAME.bus.wake        the id of a session, for one of the workers
//	outcrop.NAME.bus.wake-all    the same, for each
const (
	busWithin  = "Outcrop-Within"
	busTaken   = "Outcrop-Taken"
	busWorkers = "workers" // the queue group of bus.wake
	// busTakes is how long a question waits for somebody who takes it. Servers
	// learn late that one who answered does so no more; what they carry to nobody
	// meanwhile would be waited for in vain.
	busTakes = time.Second
	// busMost is how long a question without that header may take.
	busMost = time.Minute
	// busClose is how long the questions that have come already are waited for
	// when a session is answered for no more.
	busClose = 2 * time.Second
)

var _ store.Reachable = (*Store)(nil)

// Courier is store.Reachable's: it carries messages between all processes that
// have the realm open.
func (s *Store) Courier(ctx context.Context) (store.Courier, error) {
	lk, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	return &courier{s: s, lk: lk}, nil
}

type courier struct {
	s  *Store
	lk *link
}

// busSubject is a subject of the bus.
func (lk *link) busSubject(parts ...string) string {
	return "outcrop." + lk.realm.Name + ".bus." + strings.Join(parts, ".")
}

// Ask is store.Courier's.
func (c *courier) Ask(ctx context.Context, session string, question []byte) ([]byte, error) {
	nc := c.lk.nc
	m := nats.NewMsg(c.lk.busSubject("ask", token(session)))
	m.Data, m.Reply = question, nc.NewRespInbox()
	if deadline, ok := ctx.Deadline(); ok {
		m.Header.Set(busWithin, strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 1), 10))
	}
	answers, err := nc.SubscribeSync(m.Reply)
	if err != nil {
		return nil, c.s.failed("ask", session, err)
	}
	defer func() { _ = answers.Unsubscribe() }() // a connection that is closed has none
	if err := nc.PublishMsg(m); err != nil {
		if errors.Is(err, nats.ErrMaxPayload) {
			return nil, c.s.sessionProblem("ask", session, "", outcrop.ErrRefused,
				fmt.Sprintf("the message has %d bytes, and the servers carry %d at once", len(question), nc.MaxPayload()),
				"put long text into a file and name it, or raise max_payload of the servers")
		}
		return nil, c.s.failed("ask", session, err)
	}
	taking, stop := context.WithTimeout(ctx, busTakes)
	defer stop()
	for waits := taking; ; {
		a, err := answers.NextMsgWithContext(waits)
		switch {
		case err == nil && a.Header.Get(busTaken) != "":
			waits = ctx
			continue
		case err == nil && len(a.Data) == 0 && a.Header.Get("Status") == noResponders, errors.Is(err, nats.ErrNoResponders):
			return nil, store.ErrNobody
		case err == nil:
			return a.Data, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case taking.Err() != nil:
			return nil, store.ErrNobody
		}
		return nil, c.s.failed("ask", session, err)
	}
}

// noResponders is the status with which a server says that nobody listens.
const noResponders = "503"

// Answer is store.Courier's.
func (c *courier) Answer(session string, answer func(ctx context.Context, question []byte) []byte) (func(), error) {
	var busy sync.WaitGroup
	sub, err := c.lk.nc.Subscribe(c.lk.busSubject("ask", token(session)), func(m *nats.Msg) {
		busy.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), within(m))
			defer stop()
			taken := nats.NewMsg(m.Reply)
			taken.Header.Set(busTaken, "1")
			err := m.RespondMsg(taken)
			if err = errors.Join(err, m.Respond(answer(ctx, m.Data))); err != nil {
				c.s.opt.Logger.Debug("an answer was not sent", "session", session, "error", err)
			}
		})
	})
	if err != nil {
		return nil, c.s.failed("answer", session, err)
	}
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	return sync.OnceFunc(func() {
		// What has come already is answered: whoever asked it would wait in vain.
		if err := sub.Drain(); err != nil {
			_ = sub.Unsubscribe() // without a connection there is nothing to end
		} else {
			timer := time.NewTimer(busClose)
			defer timer.Stop()
			select {
			case <-closed:
			case <-timer.C:
			}
		}
		busy.Wait()
	}), nil
}

// within is how long the answer to a question is waited for.
func within(m *nats.Msg) time.Duration {
	ms, err := strconv.ParseInt(m.Header.Get(busWithin), 10, 32)
	if err != nil || ms <= 0 {
		return busMost
	}
	return min(time.Duration(ms)*time.Millisecond, busMost)
}

// Wake is store.Courier's.
func (c *courier) Wake(_ context.Context, session string, each bool) error {
	subject := "wake"
	if each {
		subject = "wake-all"
	}
	err := c.lk.nc.Publish(c.lk.busSubject(subject), []byte(session))
	if err == nil {
		return nil
	}
	return c.s.failed("wake", session, err)
}

// Wakes is store.Courier's. Processes that are gone are noticed by their keys.
func (c *courier) Wakes(f func(session string, one bool)) (func(), error) {
	var subs []*nats.Subscription
	end := func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // a connection that is closed has none
		}
	}
	one, err := c.lk.nc.QueueSubscribe(c.lk.busSubject("wake"), busWorkers, func(m *nats.Msg) { f(string(m.Data), true) })
	if err == nil {
		subs = append(subs, one)
		var all *nats.Subscription
		if all, err = c.lk.nc.Subscribe(c.lk.busSubject("wake-all"), func(m *nats.Msg) { f(string(m.Data), false) }); err == nil {
			subs = append(subs, all)
		}
	}
	if err != nil {
		end()
		return nil, c.s.failed("listen", "", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(ctx, func() { f("", false) }) })
	return sync.OnceFunc(func() {
		stop()
		end()
		watching.Wait()
	}), nil
}

// watch calls gone whenever a worker is not alive any more.
func (c *courier) watch(ctx context.Context, gone func()) {
	every := time.NewTicker(max(c.lk.realm.Lease/3, 200*time.Millisecond))
	defer every.Stop()
	var before map[string]bool
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		workers, err := c.s.Workers(ctx)
		if err != nil {
			continue // the servers are away; what is known stays
		}
		now := make(map[string]bool, len(workers))
		for _, w := range workers {
			now[w.ID] = true
		}
		for id := range before {
			if !now[id] {
				gone()
				break
			}
		}
		before = now
	}
}
