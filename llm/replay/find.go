package replay

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// find reads the attempts of a log, in order.
func find(log outcrop.Log) []*Attempt {
	var f finder
	for r := range log.Records(0) {
		if r.Run != nil {
			f.chunks(r.Run.Turn(), r.Run.Step(), r.Run.First, r.Run.Last(), nil)
			continue
		}
		f.event(&r.Event)
	}
	f.endStep(outcrop.Seq(log.Len()))
	return f.found
}

// finder is the scan. Attempts that are not answered stay cut until something
// says how they ended.
type finder struct {
	found []*Attempt

	inStep   bool
	turn     int
	step     int
	n        int      // attempts of the step so far
	now      *Attempt // the attempt that runs
	answered bool     // the step has its assistant/message
	begins   bool     // outcrop/request events tell where attempts begin

	last *Attempt // the one that ran last, while it is not answered
}

func (f *finder) event(ev *outcrop.Event) {
	switch ev.Type {
	case outcrop.TypeStepStart:
		f.endStep(ev.Seq)
		*f = finder{found: f.found, inStep: true, turn: number(ev.Data, "turn"), step: number(ev.Data, "step")}
	case outcrop.TypeOutcropRequest:
		if !f.inStep || !jsonwire.TextIs(jsonwire.Get(ev.Data, "purpose"), "turn") {
			return
		}
		f.begins = true
		f.n = number(ev.Data, "attempt") - 1
		f.begin(outcrop.Seq(number(ev.Data, "prefix")))
	case outcrop.TypeAssistantChunk:
		var finish *message.Finish
		if c, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk")); err == nil && c.Type == message.FinishChunk {
			if finish = c.Reason; finish == nil {
				finish = &message.Finish{Kind: message.Stop}
			}
		}
		f.chunks(number(ev.Data, "turn"), number(ev.Data, "step"), ev.Seq, ev.Seq, finish)
	case outcrop.TypeLLMRetry:
		f.retry(ev)
	case outcrop.TypeLLMRetryStarted:
		if f.inStep && !f.begins {
			f.begin(ev.Seq)
		}
	case outcrop.TypeAssistantMessage:
		f.answer(ev)
	case outcrop.TypeStepEnd:
		f.endStep(ev.Seq)
	case outcrop.TypeTurnEnd:
		f.endStep(ev.Seq)
		f.endTurn(jsonwire.Get(ev.Data, "reason"))
	}
}

// begin opens the next attempt of the step.
func (f *finder) begin(prefix outcrop.Seq) {
	f.n++
	f.now = &Attempt{Turn: f.turn, Step: f.step, N: f.n, Prefix: prefix, Cut: true}
	f.found = append(f.found, f.now)
}

// chunks takes a range of chunk events; finish is the reason when it is a
// finish chunk.
func (f *finder) chunks(turn, step int, first, last outcrop.Seq, finish *message.Finish) {
	if !f.inStep || turn != f.turn || step != f.step {
		return
	}
	if f.now == nil {
		f.begin(first - 1)
	}
	a := f.now
	if finish != nil {
		switch finish.Kind {
		case message.Aborted:
			// The call was cancelled: whoever plays it again cancels it too.
			return
		case message.Errored:
			f.fail(finish.Failure)
			return
		}
		a.Cut = false
	}
	a.Chunks += int(last-first) + 1
	if n := len(a.spans); n > 0 && a.spans[n-1].last == first-1 {
		a.spans[n-1].last = last
	} else {
		a.spans = append(a.spans, span{first, last})
	}
	if finish != nil && !f.begins {
		f.now, f.last = nil, a
	}
}

// fail ends the attempt that runs.
func (f *finder) fail(failure *message.Failure) {
	if failure == nil {
		failure = &message.Failure{Code: message.CodeUnknown, Message: Name + ": the log does not say why the attempt failed"}
	}
	f.now.Failure, f.now.Cut = failure, false
	f.now, f.last = nil, f.now
}

// retry says that an attempt failed. One that is not seen yet had no chunk.
func (f *finder) retry(ev *outcrop.Event) {
	if !f.inStep {
		return
	}
	retries := number(ev.Data, "retry")
	if f.now == nil && f.n >= retries {
		return // its chunks told of the failure
	}
	if f.now == nil {
		f.begin(ev.Seq - 1)
	}
	f.fail(message.ParseFailure(jsonwire.Get(ev.Data, "failure")))
}

// answer says that an attempt succeeded, or that a cancelled one left
// something to see.
func (f *finder) answer(ev *outcrop.Event) {
	if !f.inStep {
		return
	}
	f.answered = true
	interrupted := string(jsonwire.Get(ev.Data, "interrupted")) == "true"
	a := f.now
	if a == nil {
		a = f.last
	}
	if a == nil || a.Failure != nil {
		f.begin(ev.Seq - 1) // an empty stream
		a = f.now
	}
	a.Cut = interrupted
	f.now, f.last = nil, nil
}

// endStep ends a step before the event seq. One in which nothing came of the
// call had one all the same.
func (f *finder) endStep(seq outcrop.Seq) {
	if !f.inStep {
		return
	}
	if f.n == 0 {
		f.begin(seq - 1)
	}
	if f.now != nil {
		f.last = f.now
	}
	f.inStep, f.now = false, nil
}

// endTurn says how the last attempt ended when nothing before said it.
func (f *finder) endTurn(reason []byte) {
	if !f.answered && f.last != nil && f.last.Cut && jsonwire.TextIs(jsonwire.Get(reason, "kind"), string(outcrop.TurnError)) {
		f.now = f.last
		f.fail(message.ParseFailure(jsonwire.Get(reason, "error")))
	}
	*f = finder{found: f.found}
}

// number is a whole number in the data of an event, 0 when there is none.
func number(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(n)
}
