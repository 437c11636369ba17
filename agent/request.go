package agent

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// parsedMessages are the session's messages, each parsed once.
type parsedMessages struct {
	generation int
	from       []*outcrop.Message
	nodes      []llm.Node
}

// update parses what is new. A derived message never changes, so the pointer
// says whether it is the same; only after a replace the first ones have to be
// looked at, and everything from its place on is parsed again, into memory that
// no earlier request has.
func (p *parsedMessages) update(s *outcrop.Session) error {
	now, generation := s.Messages(), s.Surface().Generation()
	if generation != p.generation {
		same := 0
		for same < len(p.from) && same < len(now) && p.from[same] == now[same] {
			same++
		}
		p.generation, p.from, p.nodes = generation, now[:same], slices.Clone(p.nodes[:same])
	}
	for _, m := range now[len(p.from):] {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			return err
		}
		p.nodes = append(p.nodes, llm.Node{Seq: int64(m.Seq), Message: parsed})
		p.from = now[:len(p.nodes)]
	}
	return nil
}

// counted is what a provider said about the last request that it counted.
type counted struct {
	header     []byte // of that request: the same memory means the same header
	generation int
	estimate   int64 // of it, in tokens
	tokens     int64 // that it had, 0: nobody counted
}

// disbelief is how far from the estimate a provider's count may be. One that is
// further away is no count: some endpoints send zeros, some the sum of the
// whole session.
const disbelief = 4

// size is how many tokens the request has that is about to be sent: the
// provider's count of the last one and the estimate of what came since, or the
// estimate of all of it where there is no such count.
func (a *Agent) size(c counted) int64 {
	last := &a.counted
	if last.tokens > 0 && &last.header[0] == &c.header[0] && last.generation == c.generation {
		return last.tokens + c.estimate - last.estimate
	}
	return c.estimate
}

// count takes in the usage of an attempt.
func (a *Agent) count(sent *sentRequest, rep *reply) {
	u := rep.asm.Usage()
	if u == nil {
		if len(rep.chunks) > 0 {
			a.show(func(st *Status) { st.Unpriced++ })
		}
		return
	}
	cost, known := llm.Cost(u, sent.model.Price)
	if known {
		a.spent += cost
	}
	in := u.InputTokens
	for _, more := range []*int64{u.CacheReadTokens, u.CacheWriteTokens} {
		if more != nil {
			in += *more
		}
	}
	if c := sent.counted; in >= c.estimate/disbelief && in <= c.estimate*disbelief {
		c.tokens = in
		a.counted = c
	}
	a.show(func(st *Status) {
		if in > 0 {
			st.Tokens = in
		}
		if st.SpentMicroUSD = a.spent; !known {
			st.Unpriced++
		}
	})
}

// sentRequest is a request with what has to be known when its reply comes.
type sentRequest struct {
	llm.Request
	model   Model
	counted counted // not yet
}

// choose asks the hooks for the settings of the next call.
func (t *turn) choose(attempt int) (Model, error) {
	m := t.a.model
	m.Config = cloneConfig(m.Config)
	for _, h := range t.a.o.Hooks.Request {
		st, c := t.stage(t.step, attempt), cloneConfig(m.Config)
		c, err := hooked(t, "request", func() (llm.Config, error) { return h.Request(t.ctx, st, c) })
		switch {
		case err != nil:
			return m, err
		case t.canceled():
			return m, t.ctx.Err()
		case c.Model == "":
			return m, hookFailed(fmt.Errorf("a request hook chose no model"))
		case c.Provider != m.Config.Provider:
			return m, hookFailed(fmt.Errorf("a request hook chose the provider %q, the agent has %q: SetModel changes it", c.Provider, m.Config.Provider))
		}
		m = m.otherwise(cloneConfig(c))
	}
	return m, nil
}

// request logs what is owed before a call, builds the request from the log
// alone, checks it and announces it. The events are durable when it returns. A
// *message.Failure says that the request cannot be sent as it is: it was not
// announced.
func (t *turn) request(m Model, attempt int) (*sentRequest, error) {
	a := t.a
	header, err := a.headers.of(m.Config, a.o.System, a.tools)
	if err != nil {
		return nil, err
	}
	if err := t.tellAgain(); err != nil {
		return nil, err
	}
	if err := a.logHeader(header); err != nil {
		return nil, err
	}
	if err := a.logContext(m); err != nil {
		return nil, err
	}
	prefix := outcrop.Seq(a.s.Len() - 1)
	digest := a.s.RequestDigest()
	if err := a.parsed.update(a.s); err != nil {
		return nil, err
	}
	sent := &sentRequest{
		Request: llm.Request{
			Config: m.Config, System: a.o.System, Tools: a.tools.list, Messages: a.builder.Build(a.parsed.nodes),
			Images: m.Images, Objects: a.o.Objects, Cache: a.cache,
			Session: a.s.ID(), Purpose: llm.Turn, Turn: t.n, Step: t.step, Attempt: attempt,
		},
		model:   m,
		counted: counted{header: header, generation: a.parsed.generation, estimate: a.headers.tokens + a.builder.Tokens()},
	}
	size := a.size(sent.counted)
	a.show(func(st *Status) { st.Tokens, st.Window = size, m.Window })
	sent.MaxOutput = llm.OutputLimit(m.Window, size)
	if err := a.checker.Check(sent.Request); err != nil {
		return nil, err
	}
	_, err = a.s.Append(outcrop.OutcropRequest{
		Turn: t.n, Step: t.step, Attempt: attempt, Purpose: string(llm.Turn),
		Prefix: prefix, Digest: digest, Encoder: encoderOf(m.Provider), MaxOutput: sent.MaxOutput, Images: m.Images,
	})
	if err != nil {
		return nil, err
	}
	return sent, a.flush(t.ctx)
}

// tellAgain appends contexts that an edit took off the surface since the step
// began.
func (t *turn) tellAgain() error {
	a := t.a
	if a.told.current(a.s) {
		return nil
	}
	var group []outcrop.Candidate
	for _, c := range a.told.due(a.s, t.want) {
		group = append(group, a.context(len(group), c))
	}
	_, err := a.s.AppendAll(group...)
	if err != nil {
		a.told.forget()
	}
	return err
}

// encoded is a provider that names the way it encodes requests; a request that
// was logged can be rebuilt to the byte only by the same encoder.
type encoded interface{ Encoder() string }

func encoderOf(p llm.Provider) string {
	if e, ok := p.(encoded); ok {
		return e.Encoder()
	}
	return p.Name() + "/1"
}

// logHeader writes request/header when it is owed: as the first one of the
// log (initial), as the first one of this agent (resume), or because it changed
// (change). The reason is that of the format: it is resume too when this agent
// has another model than the one before; the header says which.
func (a *Agent) logHeader(header []byte) error {
	if a.headerIs != nil && &a.headerIs[0] == &header[0] {
		return nil
	}
	have, ok := a.s.RequestHeader()
	reason := ""
	switch {
	case !ok:
		reason = "initial"
	case !a.headerDone:
		reason = "resume"
	case !bytes.Equal(have.Raw, header) && !outcrop.EqualHeaders(have.Raw, header):
		reason = "change"
	default:
		a.headerIs = header
		return nil
	}
	if _, err := a.s.Append(outcrop.RequestHeader{Header: header, Reason: reason}); err != nil {
		return err
	}
	a.headerDone, a.headerIs = true, header
	return nil
}

// logContext writes request/context when model or window changed.
func (a *Agent) logContext(m Model) error {
	want := outcrop.RequestContext{Provider: m.Config.Provider, Model: m.Config.Model, ContextWindow: m.Window}
	if have, ok := a.s.RequestContext(); ok && have == want {
		return nil
	}
	_, err := a.s.Append(want)
	return err
}
