package usage

import (
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Scan finds the calls of one log that passes by, in the order in which they
// ended. It holds one call at a time.
type Scan struct {
	each  func(Call)
	price Price
	seed  outcrop.Seq // events below it were inherited

	provider, model string // of the request header in force
	changed         string // why the next request cannot begin as the last one did
	any             bool   // there was a request already

	turn, step int
	attempts   int // of the open step
	now        *attempt

	summarising int       // calls of a compaction that were announced
	summariser  [2]string // their provider and model
	last        outcrop.Event
}

// attempt is the call that is under way.
type attempt struct {
	Call
	recorded bool // it has an outcrop/request
	streamed bool // something of a reply came
	finished bool
	failed   bool
	canceled bool
}

// NewScan begins with the log of header h; price may be nil. each gets every
// call.
func NewScan(h outcrop.Header, price Price, each func(Call)) *Scan {
	s := &Scan{each: each, price: price}
	if h.SeedLength != nil {
		s.seed = outcrop.Seq(*h.SeedLength)
	}
	return s
}

// Add takes the next record.
func (s *Scan) Add(r outcrop.Record) {
	if r.Run != nil {
		s.chunk(r.Run.Turn(), r.Run.Step(), nil)
		last := r.Run.At(r.Run.Len - 1)
		s.last.Seq, s.last.Time = last.Seq, last.Time
		return
	}
	if _, _, isReplace := r.Op.Range(); isReplace {
		s.changed = "edit"
	}
	s.event(&r.Event)
	s.last.Seq, s.last.Time = r.Seq, r.Time
}

// End takes the end of the log.
func (s *Scan) End() {
	if s.now != nil && !s.now.finished {
		s.close(s.last, Open)
	}
	s.giveUp(s.last)
	s.abandon(Open)
}

func (s *Scan) event(ev *outcrop.Event) {
	switch ev.Type {
	case outcrop.TypeRequestHeader:
		header := jsonwire.Get(ev.Data, "header")
		config := jsonwire.Get(header, "config")
		s.provider, _ = jsonwire.Text(jsonwire.Get(config, "provider"))
		s.model, _ = jsonwire.Text(jsonwire.Get(config, "model"))
		if jsonwire.TextIs(jsonwire.Get(ev.Data, "reason"), "change") {
			s.changed = "header"
		}
	case outcrop.TypeStepStart:
		s.giveUp(*ev)
		s.turn, s.step, s.attempts = number(ev.Data, "turn"), number(ev.Data, "step"), 0
	case outcrop.TypeOutcropRequest:
		if jsonwire.TextIs(jsonwire.Get(ev.Data, "purpose"), string(llm.Turn)) {
			s.giveUp(*ev)
			s.begin(number(ev.Data, "turn"), number(ev.Data, "step"), number(ev.Data, "attempt"), true)
		}
	case outcrop.TypeAssistantChunk:
		s.chunk(number(ev.Data, "turn"), number(ev.Data, "step"), jsonwire.Get(ev.Data, "chunk"))
	case outcrop.TypeLLMRetry:
		if s.now == nil {
			s.begin(number(ev.Data, "turn"), number(ev.Data, "step"), 0, false)
		}
		s.now.failed = true
		s.giveUp(*ev)
	case outcrop.TypeAssistantMessage:
		s.answer(ev)
	case outcrop.TypeStepEnd, outcrop.TypeTurnEnd:
		s.giveUp(*ev)
		if ev.Type == outcrop.TypeTurnEnd {
			s.turn, s.step = 0, 0
		}
	case outcrop.TypeCompactionStart:
		s.giveUp(*ev)
		s.abandon(Interrupted)
	case outcrop.TypeEndSeed:
		s.abandon(Interrupted)
	case outcrop.TypeOutcropSummarizer:
		s.announced(ev)
	case history.TypeSummarizerUsage:
		s.uncounted(ev)
	case outcrop.TypeCompactionSummary:
		s.summary(ev)
	case outcrop.TypeCompactionEnd:
		if s.summarising > 0 {
			s.compaction(*ev, Failed, nil)
		}
	}
}

// abandon ends the calls of a compaction that a crash cut off, with the last
// event before.
func (s *Scan) abandon(how Outcome) {
	if s.summarising > 0 {
		s.compaction(s.last, how, nil)
	}
}

// begin opens a call. n is its number, 0 when the log does not say.
func (s *Scan) begin(turn, step, n int, recorded bool) {
	s.attempts++
	if n > 0 {
		s.attempts = n
	}
	s.now = &attempt{recorded: recorded, Call: Call{Purpose: string(llm.Turn), Calls: 1, Turn: turn, Step: step,
		Attempt: s.attempts, Provider: s.provider, Model: s.model}}
	if s.any {
		s.now.CacheBreak = s.changed
	}
	s.any, s.changed = true, ""
}

// chunk takes a piece of a reply; raw is nil for pieces of text.
func (s *Scan) chunk(turn, step int, raw []byte) {
	if s.now != nil && s.now.finished && !s.now.recorded {
		s.giveUp(s.last)
	}
	if s.now == nil {
		s.begin(turn, step, 0, false)
	}
	if raw == nil {
		s.now.streamed = true
		return
	}
	kind, _ := jsonwire.Text(jsonwire.Get(raw, "type"))
	switch message.ChunkType(kind) {
	case message.UsageChunk:
		if u := message.ParseUsage(jsonwire.Get(raw, "usage")); u != nil {
			s.now.Usage = u
		}
	case message.FinishChunk:
		s.now.finished = true
		reason, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(raw, "reason"), "kind"))
		s.now.failed = message.FinishKind(reason) == message.Errored
		s.now.canceled = message.FinishKind(reason) == message.Aborted
	default:
		s.now.streamed = true
	}
}

// answer ends the call that a reply was put together from.
func (s *Scan) answer(ev *outcrop.Event) {
	if s.now == nil {
		s.begin(number(ev.Data, "turn"), number(ev.Data, "step"), 0, false)
	}
	if u := message.ParseUsage(jsonwire.Get(ev.Data, "usage")); u != nil {
		s.now.Usage = u
	}
	source := jsonwire.Get(jsonwire.Get(ev.Data, "message"), "source")
	if p, ok := jsonwire.Text(jsonwire.Get(source, "provider")); ok && p != "" {
		s.now.Provider = p
	}
	if m, ok := jsonwire.Text(jsonwire.Get(source, "model")); ok && m != "" {
		s.now.Model = m
	}
	s.now.streamed = true
	how := Answered
	if string(jsonwire.Get(ev.Data, "interrupted")) == "true" {
		how = Interrupted
	}
	s.close(*ev, how)
}

// giveUp ends a call that got no answer: it failed, unless it was cancelled, or
// just stops where its step ends.
func (s *Scan) giveUp(at outcrop.Event) {
	if s.now == nil {
		return
	}
	how := Interrupted
	if s.now.failed || !s.now.canceled && (s.now.finished || at.Type == outcrop.TypeOutcropRequest) {
		how = Failed
	}
	s.close(at, how)
}

func (s *Scan) close(at outcrop.Event, how Outcome) {
	c, streamed := s.now.Call, s.now.streamed
	s.now = nil
	c.Outcome = how
	s.give(c, at, streamed || how == Answered || how == Open)
}

// give prices a call and hands it on. billed says that it had a cost, known or
// not.
func (s *Scan) give(c Call, at outcrop.Event, billed bool) {
	c.Seq, c.Time = at.Seq, at.Time
	c.Inherited = at.Seq < s.seed
	c.Usage = sensible(c.Usage)
	var price *llm.Price
	if s.price != nil {
		price = s.price(c.Provider, c.Model)
	}
	if c.Usage != nil {
		if micro, ok := llm.Cost(c.Usage, price); ok {
			c.Cost = &micro
		}
	}
	c.Unpriced = c.Cost == nil && (billed || c.Usage != nil)
	c.NoPrice = price == nil && !c.Unpriced
	s.each(c)
}

// announced takes a call of another purpose. Its model is PROVIDER:MODEL.
func (s *Scan) announced(ev *outcrop.Event) {
	c := s.otherwise(ev)
	if c.Purpose == string(llm.Compaction) {
		s.summarising++
		s.summariser = [2]string{c.Provider, c.Model}
		return
	}
	s.give(c, *ev, true)
}

// otherwise is the call of another purpose that an event is about.
func (s *Scan) otherwise(ev *outcrop.Event) Call {
	c := Call{Turn: number(ev.Data, "turn"), Calls: 1, Outcome: Answered, Provider: s.provider}
	c.Purpose, _ = jsonwire.Text(jsonwire.Get(ev.Data, "purpose"))
	c.Model, _ = jsonwire.Text(jsonwire.Get(ev.Data, "model"))
	if provider, model, ok := strings.Cut(c.Model, ":"); ok {
		c.Provider, c.Model = provider, model
	}
	return c
}

// uncounted takes a call that the summary of its compaction does not count.
func (s *Scan) uncounted(ev *outcrop.Event) {
	c := s.otherwise(ev)
	outcome, _ := jsonwire.Text(jsonwire.Get(ev.Data, "outcome"))
	if history.Outcome(outcome) != history.OutcomeUsed {
		c.Outcome = Failed
	}
	c.Usage = message.ParseUsage(jsonwire.Get(ev.Data, "usage"))
	s.summarising = max(s.summarising-1, 0)
	s.give(c, *ev, history.Outcome(outcome) != history.OutcomeNothing)
}

// summary takes what a compaction came to. One that no model was asked for has
// neither usage nor output of one; what was asked before a summary without a
// model took its place is in no summary, and its usage is not known.
func (s *Scan) summary(ev *outcrop.Event) {
	u := message.ParseUsage(jsonwire.Get(ev.Data, "usage"))
	if u == nil && jsonwire.TextIs(jsonwire.Get(ev.Data, "provider"), history.DigestProvider) && jsonwire.TextIs(jsonwire.Get(ev.Data, "model"), history.DigestModel) {
		if s.summarising > 0 {
			s.compaction(*ev, Failed, nil)
		}
		return
	}
	if s.summarising == 0 {
		if u == nil && string(jsonwire.Get(ev.Data, "llmStreamCall")) != "true" {
			return
		}
		s.summarising = 1
	}
	s.summariser[0], _ = jsonwire.Text(jsonwire.Get(ev.Data, "provider"))
	s.summariser[1], _ = jsonwire.Text(jsonwire.Get(ev.Data, "model"))
	s.compaction(*ev, Answered, u)
}

func (s *Scan) compaction(at outcrop.Event, how Outcome, u *message.Usage) {
	c := Call{Purpose: string(llm.Compaction), Turn: s.turn, Calls: s.summarising, Outcome: how, Usage: u,
		Provider: s.summariser[0], Model: s.summariser[1]}
	s.summarising = 0
	s.give(c, at, true)
}

// number is a whole number in the data of an event, 0 when there is none.
func number(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(n)
}
