package agent

import (
	"bytes"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// parsedMessages are the session's messages, each parsed once.
type parsedMessages struct {
	from []*outcrop.Message
	msgs []llm.Node
}

// update parses what is new. A derived message never changes, so the pointer
// says whether it is the same; after a replace everything from its place on is
// parsed again.
func (p *parsedMessages) update(now []*outcrop.Message) ([]llm.Node, error) {
	same := 0
	for same < len(p.from) && same < len(now) && p.from[same] == now[same] {
		same++
	}
	p.msgs = p.msgs[:same]
	for _, m := range now[same:] {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			p.from = nil
			return nil, err
		}
		p.msgs = append(p.msgs, llm.Node{Seq: int64(m.Seq), Message: parsed})
	}
	p.from = now
	return p.msgs, nil
}

// encoded is a provider that names the way it encodes requests; a request that
// was logged can be rebuilt to the byte only by the same encoder.
type encoded interface{ Encoder() string }

func (a *Agent) encoder() string {
	if e, ok := a.o.Provider.(encoded); ok {
		return e.Encoder()
	}
	return a.o.Provider.Name() + "/1"
}

// request logs what is owed before a call, builds the request from the log
// alone, checks it and announces it. The events are durable when it returns.
func (t *turn) request(attempt int) (llm.Request, error) {
	a := t.a
	a.setStatus(Status{Phase: Preparing, Turn: t.n, Step: t.step, Attempt: attempt})
	if err := a.logHeader(); err != nil {
		return llm.Request{}, err
	}
	if err := a.logContext(); err != nil {
		return llm.Request{}, err
	}
	prefix := outcrop.Seq(a.s.Len() - 1)
	digest := a.s.RequestDigest()
	msgs, err := a.parsed.update(a.s.Messages())
	if err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{
		Config: a.o.Config, System: a.o.System, Tools: a.o.Tools.Offered(), Messages: a.builder.Build(msgs),
		Session: a.s.ID(), Purpose: llm.Turn, Turn: t.n, Step: t.step, Attempt: attempt,
	}
	if err := a.checker.Check(req); err != nil {
		return llm.Request{}, err
	}
	_, err = a.s.Append(outcrop.OutcropRequest{
		Turn: t.n, Step: t.step, Attempt: attempt, Purpose: string(llm.Turn),
		Prefix: prefix, Digest: digest, Encoder: a.encoder(),
	})
	if err != nil {
		return llm.Request{}, err
	}
	return req, a.flush(t.ctx)
}

// logHeader writes request/header when it is owed: as the first one of the
// log, as the first one of this agent, or because it changed.
func (a *Agent) logHeader() error {
	have, ok := a.s.RequestHeader()
	reason := ""
	switch {
	case !ok:
		reason = "initial"
	case !a.headerDone:
		reason = "resume"
	case !bytes.Equal(have.Raw, a.header) && !outcrop.EqualHeaders(have.Raw, a.header):
		reason = "change"
	default:
		return nil
	}
	if _, err := a.s.Append(outcrop.RequestHeader{Header: a.header, Reason: reason}); err != nil {
		return err
	}
	a.headerDone = true
	return nil
}

// logContext writes request/context when model or window changed.
func (a *Agent) logContext() error {
	want := outcrop.RequestContext{Provider: a.o.Config.Provider, Model: a.o.Config.Model, ContextWindow: a.o.Window}
	if have, ok := a.s.RequestContext(); ok && have == want {
		return nil
	}
	_, err := a.s.Append(want)
	return err
}
