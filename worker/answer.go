package worker

import (
	"context"
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Holder answers requests for a session that this process holds: a worker's, and
// that of every other program that runs an agent on a store with a bus. Its method
// Answer is given to Bus.Answer.
type Holder struct {
	agent *agent.Agent
	s     *outcrop.Session
	flush func(ctx context.Context) error
	ask   *questions // nil: questions are asked elsewhere
	name  string
	// release hands the session over; nil: it is not given away.
	release func()

	mu  sync.Mutex // one delivery at a time: two of one id are one
	ins *inputs
}

// NewHolder answers for the session of an agent. flush is that of its live
// session, name tells this process from others.
func NewHolder(ag *agent.Agent, s *outcrop.Session, flush func(ctx context.Context) error, name string) *Holder {
	return &Holder{agent: ag, s: s, flush: flush, name: name, ins: newInputs(s.Header())}
}

// Answer carries a request out.
func (h *Holder) Answer(ctx context.Context, r Request) Reply {
	reply := h.answer(ctx, r)
	reply.By = h.name
	return reply
}

func (h *Holder) answer(ctx context.Context, r Request) Reply {
	switch r.Kind {
	case Deliver, Steer:
		return h.deliver(ctx, r)
	case Cancel:
		running := h.agent.Status().Phase != agent.Idle
		dropped, err := h.agent.Cancel(ctx, agent.Cause{Kind: agent.ByUser})
		if err == nil {
			err = h.flush(ctx)
		}
		if err != nil {
			return replyOf(err)
		}
		return Reply{Seq: outcrop.Seq(h.s.Len()) - 1, Canceled: running, Dropped: len(dropped)}
	case Questions:
		if h.ask == nil {
			return Reply{}
		}
		return Reply{Questions: h.ask.list()}
	case Decide:
		a := agent.Answer{Verdict: agent.Reject, Reason: r.Reason}
		if r.Allow {
			a = agent.Answer{Verdict: agent.AllowOnce}
		}
		if h.ask == nil || !h.ask.decide(r.Question, a) {
			return Reply{Code: CodeNotAsked, Text: "no call with this id waits for an answer here"}
		}
		return Reply{}
	case Release:
		if h.release == nil {
			return Reply{Code: CodeRefused, Text: "it is not handed over while it is used: end that program"}
		}
		h.release()
		return Reply{}
	}
	return Reply{Code: CodeRefused, Text: "this program does not know the request " + string(r.Kind)}
}

// deliver puts input into the inbox, unless it is or was there, and makes it
// durable.
func (h *Holder) deliver(ctx context.Context, r Request) Reply {
	m, err := message.Parse(r.Message)
	if err != nil {
		return Reply{Code: CodeRefused, Text: "the message cannot be read: " + err.Error()}
	}
	if m.ID == "" {
		return Reply{Code: CodeRefused, Text: "the message has no id"}
	}
	if !utf8.ValidString(m.ID) {
		// It would stand in the log as another one, and not be found there when it
		// is sent again.
		return Reply{Code: CodeRefused, Text: "the id of the message is no UTF-8"}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	seq, known := h.ins.find(h.s.Log(), m.ID)
	if !known {
		send := h.agent.Send
		if r.Kind == Steer {
			send = h.agent.Steer
		}
		if _, err := send(ctx, m); err != nil {
			return replyOf(err)
		}
		seq, _ = h.ins.find(h.s.Log(), m.ID)
	}
	if err := h.flush(ctx); err != nil {
		return replyOf(err)
	}
	return Reply{Seq: seq, Known: known}
}

// replyOf says why a request was not carried out. A veto is that of the store: it
// is no fault of the input, and passes or ends this holder.
func replyOf(err error) Reply {
	r := Reply{Code: CodeFailed, Text: err.Error()}
	switch {
	case errors.Is(err, agent.ErrClosed), errors.Is(err, store.ErrMoved), errors.Is(err, store.ErrLocked):
		r.Code = CodeLeaving // or has lost it, and is about to notice
	case errors.Is(err, agent.ErrInboxFull):
		r.Code = CodeFull
	case errors.Is(err, agent.ErrInput), errors.Is(err, outcrop.ErrRefused):
		r.Code = CodeRefused
	}
	return r
}
