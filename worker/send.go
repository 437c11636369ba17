package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Sender gives input to sessions of a store, whoever holds them.
type Sender struct {
	Store store.Store
	// Bus reaches whoever holds a session; nil: a session that is held is
	// refused.
	Bus Bus
	// Name tells this sender from others.
	Name string
	// Options are for sessions that are opened for a moment.
	Options store.Options
	// Reply is how long a holder may take to answer before it is asked again;
	// default 10 s.
	Reply  time.Duration
	Logger *slog.Logger
}

// Receipt says what became of a request that was carried out.
type Receipt struct {
	Session string
	Message string      // id of the input
	Seq     outcrop.Seq // of the event that holds it, durable
	Known   bool        // it was there already
	By      string      // name of the process that held the session; "" when the sender took it for a moment

	Canceled bool // a turn was running, and ends
	Dropped  int  // messages that were pending
}

// ErrRefused: whoever holds the session refuses the request.
var ErrRefused = errors.New("the request was refused")

const (
	pauseFirst = 20 * time.Millisecond
	pauseMost  = time.Second
)

// Send puts a message into the inbox of a stored session, with steer where the
// running turn's next step takes it, and returns when it is durable. The message
// needs an id; one that was given to the session before is found and not put in
// again. While the session changes hands Send tries again until ctx ends; then the
// input may or may not be there, and Send with the same id finds out. Without a
// bus a session that is held gives store.ErrLocked at once.
func (s *Sender) Send(ctx context.Context, session string, m message.Message, steer bool) (Receipt, error) {
	kind, target := Deliver, outcrop.NextTurn
	if steer {
		kind, target = Steer, outcrop.NextStep
	}
	if m.ID == "" {
		return Receipt{}, fmt.Errorf("%w: it has no id", agent.ErrInput)
	}
	if !utf8.ValidString(m.ID) {
		return Receipt{}, fmt.Errorf("%w: its id is no UTF-8", agent.ErrInput)
	}
	if m.Role == "" {
		m.Role = message.User
	}
	if m.Source.Kind == "" && m.Source.Raw == nil {
		m.Source = message.FromUser
	}
	r, err := s.request(ctx, session, Request{Kind: kind, Message: m.AppendJSON(nil), From: s.Name}, func(l *store.Live) (Reply, error) {
		return put(l.Session(), target, m)
	})
	return Receipt{Session: session, Message: m.ID, Seq: r.Seq, Known: r.Known, By: r.By}, err
}

// put puts input into a session that this process holds for a moment.
func put(s *outcrop.Session, target outcrop.InboxTarget, m message.Message) (Reply, error) {
	if seq, known := newInputs(s.Header()).find(s.Log(), m.ID); known {
		return Reply{Seq: seq, Known: true}, nil
	}
	ev, err := agent.Deliver(s, target, m, 0)
	return Reply{Seq: ev.Seq}, err
}

// Begin makes a new session whose first event is the input, and returns when it is
// durable. When the session is there already, the input is sent to it.
func (s *Sender) Begin(ctx context.Context, h outcrop.Header, m message.Message) (Receipt, error) {
	l, err := store.Create(ctx, s.Store, h, s.Options)
	if errors.Is(err, store.ErrExists) {
		return s.Send(ctx, h.ID, m, false)
	}
	if err != nil {
		return Receipt{}, err
	}
	r, err := put(l.Session(), outcrop.NextTurn, m)
	if err == nil {
		err = s.keep(ctx, l)
	}
	err = errors.Join(err, l.Close(context.WithoutCancel(ctx)))
	if errors.Is(err, store.ErrExists) {
		return s.Send(ctx, h.ID, m, false)
	}
	if err != nil {
		return Receipt{}, err
	}
	s.wake(ctx, h.ID)
	return Receipt{Session: h.ID, Message: m.ID, Seq: r.Seq}, nil
}

// Cancel ends the turn that runs in a session and drops what is pending.
func (s *Sender) Cancel(ctx context.Context, session string) (Receipt, error) {
	r, err := s.request(ctx, session, Request{Kind: Cancel, From: s.Name}, func(l *store.Live) (Reply, error) {
		dropped, err := agent.DropPending(l.Session())
		return Reply{Seq: outcrop.Seq(l.Session().Len()) - 1, Dropped: len(dropped)}, err
	})
	return Receipt{Session: session, Seq: r.Seq, By: r.By, Canceled: r.Canceled, Dropped: r.Dropped}, err
}

// Questions are the calls of a session that wait for approval; none when nobody
// holds it.
func (s *Sender) Questions(ctx context.Context, session string) ([]Question, error) {
	r, err := s.ask(ctx, session, Request{Kind: Questions, From: s.Name})
	if errors.Is(err, store.ErrNobody) {
		return nil, nil
	}
	return r.Questions, err
}

// Decide answers a question by its id or that of its call. The reason is told to
// the model when the call is not allowed.
func (s *Sender) Decide(ctx context.Context, session, question string, allow bool, reason string) (Receipt, error) {
	r, err := s.ask(ctx, session, Request{Kind: Decide, Question: question, Allow: allow, Reason: reason, From: s.Name})
	if errors.Is(err, store.ErrNobody) {
		err = fmt.Errorf("%w: nobody works on the session, so no call of it waits for an answer", ErrRefused)
	}
	return Receipt{Session: session, By: r.By}, err
}

// ask asks the holder of a session once.
func (s *Sender) ask(ctx context.Context, session string, r Request) (Reply, error) {
	if s.Bus == nil {
		return Reply{}, store.ErrNobody
	}
	wait := s.Reply
	if wait <= 0 {
		wait = 10 * time.Second
	}
	ctx, stop := context.WithTimeoutCause(ctx, wait, fmt.Errorf("whoever holds the session did not answer within %s", wait))
	defer stop()
	reply, err := s.Bus.Ask(ctx, session, r)
	switch {
	case err != nil:
		return Reply{}, err
	case reply.Code != "":
		return reply, &replyError{reply}
	}
	return reply, nil
}

// replyError is a reply that says no.
type replyError struct{ Reply }

func (e *replyError) Error() string {
	if e.By == "" {
		return e.Text
	}
	return e.By + ": " + e.Text
}

func (e *replyError) Unwrap() error {
	switch e.Code {
	case CodeFull:
		return agent.ErrInboxFull
	case CodeRefused, CodeNotAsked:
		return ErrRefused
	}
	return nil
}

// again reports whether a request that failed so may succeed later.
func again(err error) bool {
	var no *replyError
	if errors.As(err, &no) {
		return no.Code == CodeLeaving || no.Code == CodeFailed
	}
	return !errors.Is(err, outcrop.ErrRefused) // what no courier carries
}

// request has a request carried out by the holder, or carries it out itself on a
// session that nobody holds.
func (s *Sender) request(ctx context.Context, session string, r Request, own func(*store.Live) (Reply, error)) (Reply, error) {
	pause := pauseFirst
	for {
		reply, err := s.ask(ctx, session, r)
		if err == nil {
			return reply, nil
		}
		if errors.Is(err, store.ErrNobody) {
			if reply, err = s.myself(ctx, session, own); err == nil {
				return reply, nil
			}
			// A session that is held and answers to nobody is about to be
			// answered for, or its holder is dead and about to be known as such.
			if s.Bus == nil || !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrMoved) {
				return Reply{}, err
			}
		} else if !again(err) {
			return Reply{}, err
		}
		if s.Logger != nil {
			s.Logger.Debug("asking again", "session", session, "request", r.Kind, "err", err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Reply{}, fmt.Errorf("%w (given up: %w)", err, context.Cause(ctx))
		}
		pause = min(2*pause, pauseMost)
	}
}

// myself carries a request out on a session that is taken for a moment.
func (s *Sender) myself(ctx context.Context, session string, own func(*store.Live) (Reply, error)) (Reply, error) {
	l, err := store.Open(ctx, s.Store, session, s.Options)
	if err != nil {
		return Reply{}, err
	}
	reply, err := own(l)
	if err == nil {
		err = s.keep(ctx, l)
	}
	if err := errors.Join(err, l.Close(context.WithoutCancel(ctx))); err != nil {
		return Reply{}, err
	}
	s.wake(ctx, session)
	return reply, nil
}

// keep makes what was appended durable.
func (s *Sender) keep(ctx context.Context, l *store.Live) error {
	if err := l.Flush(ctx); err != nil {
		return fmt.Errorf("the input is not acknowledged: %w", err)
	}
	return nil
}

func (s *Sender) wake(ctx context.Context, session string) {
	if s.Bus == nil {
		return
	}
	if err := s.Bus.Wake(ctx, session, false); err != nil && s.Logger != nil {
		s.Logger.Debug("nobody was woken", "session", session, "err", err)
	}
}

// releaseWithin is how long a holder may take to hand a session over before it is
// taken away.
const releaseWithin = 2 * time.Second

// releaseFirst asks the holder of a session to hand it over, and waits a little
// for it to say that it does. What it says decides nothing.
func releaseFirst(ctx context.Context, bus Bus, session, name string) {
	if bus == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, releaseWithin)
	defer stop()
	_, _ = bus.Ask(ctx, session, Request{Kind: Release, From: name})
}

// TakeOver opens a session that somebody may hold: the holder is asked to hand it
// over, and when it does not do so within two seconds the session is taken from it,
// where the store can do that (store.TakeOver).
func TakeOver(ctx context.Context, st store.Store, bus Bus, session, name string, o store.Options) (*store.Live, error) {
	if bus != nil {
		releaseFirst(ctx, bus, session, name)
		deadline := time.Now().Add(releaseWithin)
		for time.Now().Before(deadline) && ctx.Err() == nil {
			l, err := store.Open(ctx, st, session, o)
			if !errors.Is(err, store.ErrLocked) {
				return l, err
			}
			timer := time.NewTimer(pauseFirst)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
		}
	}
	return store.TakeOver(ctx, st, session, o)
}
