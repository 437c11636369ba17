package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/outcrop-dev/outcrop"
)

// Bus is how processes that share a store reach each other: whoever holds a
// session answers for it, and wakes tell workers where there may be work. Nothing
// depends on it for being right: what a bus loses is found in the logs. All
// methods may be called from any goroutine.
type Bus interface {
	// Ask puts a request to whoever answers for a session, and waits for the
	// reply. ErrNobody when nobody does. Any other error says nothing about
	// whether the request was carried out.
	Ask(ctx context.Context, session string, r Request) (Reply, error)

	// Answer answers for a session until stop is called, each request on a
	// goroutine of its own; stop waits for those that are being answered.
	Answer(session string, answer func(ctx context.Context, r Request) Reply) (stop func(), err error)

	// Wake says that a session may have work: to one worker, or to each.
	Wake(ctx context.Context, session string, each bool) error

	// Wakes hears of wakes until stop is called. one says that nobody else heard
	// of this one. An empty session says: look at all of them, a process may be
	// gone. f returns at once.
	Wakes(f func(session string, one bool)) (stop func(), err error)
}

// ErrNobody: nobody answers for the session.
var ErrNobody = errors.New("nobody answers for the session")

// Kind says what a Request is for.
type Kind string

const (
	// Deliver puts a message at the end of the inbox, Steer where the running
	// turn's next step takes it. The reply comes when it is durable.
	Deliver Kind = "deliver"
	Steer   Kind = "steer"
	// Cancel ends the running turn and drops what is pending.
	Cancel Kind = "cancel"
	// Questions asks for the calls that wait for approval, Decide answers one.
	Questions Kind = "questions"
	Decide    Kind = "decide"
	// Release asks the holder to hand the session over: its turn is stopped and
	// gone on with elsewhere.
	Release Kind = "release"
)

// Request is what is asked of the holder of a session.
type Request struct {
	Kind Kind `json:"kind"`
	// Message is that of Deliver and Steer, as a log has it, with an id.
	Message []byte `json:"message,omitempty"`
	// Question is what Decide answers: the id of the question or of its call.
	Question string `json:"question,omitempty"`
	Allow    bool   `json:"allow,omitempty"`
	Reason   string `json:"reason,omitempty"` // told to the model when Allow is false
	// From names who asks, for logs.
	From string `json:"from,omitempty"`
}

// Reply answers a Request. Code is empty when it was carried out.
type Reply struct {
	Code string `json:"code,omitempty"` // see the Code constants
	Text string `json:"text,omitempty"` // what is wrong, for people

	Seq       outcrop.Seq `json:"seq"`             // of the event that holds the input
	Known     bool        `json:"known,omitempty"` // it was there before
	Canceled  bool        `json:"canceled,omitempty"`
	Dropped   int         `json:"dropped,omitempty"`
	Questions []Question  `json:"questions,omitempty"`
	By        string      `json:"by,omitempty"` // name of the holder
}

// Codes of a Reply.
const (
	CodeLeaving  = "LEAVING"  // the holder hands the session back: ask again
	CodeRefused  = "REFUSED"  // the request cannot be carried out, now or later
	CodeFull     = "FULL"     // too much is pending
	CodeFailed   = "FAILED"   // it may be carried out when it is asked again
	CodeNotAsked = "NOTASKED" // no such question waits
)

// Question is a call that waits for approval.
type Question struct {
	ID        string `json:"id"`
	CallID    string `json:"callId"`
	Tool      string `json:"tool"`
	Class     string `json:"class"`
	Arguments string `json:"arguments"`
	Title     string `json:"title"`
	Body      string `json:"body"`
	Dir       string `json:"dir,omitempty"`
}

// NewBus makes a bus between the goroutines of one process.
func NewBus() Bus {
	return &localBus{answers: map[string]*answerer{}}
}

// localBus is the bus of one process.
type localBus struct {
	mu      sync.Mutex
	answers map[string]*answerer
	wakes   []*func(string, bool)
}

// answerer answers for one session.
type answerer struct {
	f       func(context.Context, Request) Reply
	closing bool
	busy    sync.WaitGroup
}

func (b *localBus) Ask(ctx context.Context, session string, r Request) (Reply, error) {
	b.mu.Lock()
	a := b.answers[session]
	if a == nil || a.closing {
		b.mu.Unlock()
		return Reply{}, ErrNobody
	}
	a.busy.Add(1)
	b.mu.Unlock()
	got := make(chan Reply, 1)
	go func() {
		defer a.busy.Done()
		got <- a.f(ctx, r)
	}()
	select {
	case reply := <-got:
		return reply, nil
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	}
}

func (b *localBus) Answer(session string, f func(context.Context, Request) Reply) (func(), error) {
	a := &answerer{f: f}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[session] = a
	return sync.OnceFunc(func() {
		b.mu.Lock()
		a.closing = true
		if b.answers[session] == a {
			delete(b.answers, session)
		}
		b.mu.Unlock()
		a.busy.Wait()
	}), nil
}

func (b *localBus) Wake(_ context.Context, session string, each bool) error {
	b.mu.Lock()
	all := slices.Clone(b.wakes)
	b.mu.Unlock()
	if len(all) > 0 && !each {
		(*all[rand.IntN(len(all))])(session, true)
		return nil
	}
	for _, f := range all {
		(*f)(session, false)
	}
	return nil
}

func (b *localBus) Wakes(f func(string, bool)) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wakes = append(b.wakes, &f)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wakes = slices.DeleteFunc(b.wakes, func(g *func(string, bool)) bool { return g == &f })
	}, nil
}
