package cli

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// attempt is one model call that the log shows.
type attempt struct {
	turn, step, n int
	prefix        outcrop.Seq // last event that the request was built from
	recorded      string      // digest in outcrop/request, "" when there is none
	encoder       string
	chunks        outcrop.Seq // its first chunk, -1 when none was logged
	end           outcrop.Seq // its last chunk
	ok            bool        // the step's assistant/message was made from it
}

// attempts finds the model calls of a log, in order. Where outcrop/request was
// written it says everything. In other logs a call shows only by its chunks:
// the attempts of a step are separated by finish chunks, and one that failed
// before its first chunk is not seen; a step without any chunk counts as one
// attempt, built from what stands before its end.
func attempts(log outcrop.Log) []attempt {
	f := finder{log: log}
	for r := range log.Records(0) {
		if r.Run != nil {
			f.chunk(r.Run.Turn(), r.Run.Step(), r.Run.First, r.Run.Last(), false)
			continue
		}
		f.event(&r.Event)
	}
	f.stepEnd(outcrop.Seq(log.Len()))
	return f.found
}

// finder is the scan for attempts.
type finder struct {
	log      outcrop.Log
	found    []attempt
	first    int  // where the open step begins in found
	inStep   bool //
	turn     int
	step     int
	recorded bool // the open step has an outcrop/request
	finished bool // the last chunk was a finish
	answered bool // the open step has its assistant/message
}

func (f *finder) event(ev *outcrop.Event) {
	number := func(name string) int {
		n, _ := jsonwire.Int(jsonwire.Get(ev.Data, name))
		return int(n)
	}
	switch ev.Type {
	case outcrop.TypeStepStart:
		f.stepEnd(ev.Seq)
		f.inStep, f.turn, f.step = true, number("turn"), number("step")
		f.first, f.recorded, f.finished, f.answered = len(f.found), false, false, false
	case outcrop.TypeOutcropRequest:
		if purpose, _ := jsonwire.Text(jsonwire.Get(ev.Data, "purpose")); purpose != "turn" {
			return
		}
		f.recorded, f.finished = true, false
		at := attempt{turn: number("turn"), step: number("step"), n: number("attempt"), prefix: outcrop.Seq(number("prefix")), chunks: -1, end: -1}
		at.recorded, _ = jsonwire.Text(jsonwire.Get(ev.Data, "digest"))
		at.encoder, _ = jsonwire.Text(jsonwire.Get(ev.Data, "encoder"))
		f.found = append(f.found, at)
	case outcrop.TypeAssistantChunk:
		kind := jsonwire.Get(jsonwire.Get(ev.Data, "chunk"), "type")
		f.chunk(number("turn"), number("step"), ev.Seq, ev.Seq, jsonwire.TextIs(kind, "finish"))
	case outcrop.TypeAssistantMessage:
		f.answer(ev)
	case outcrop.TypeStepEnd, outcrop.TypeTurnEnd:
		f.stepEnd(ev.Seq)
	}
}

func (f *finder) chunk(turn, step int, first, last outcrop.Seq, finish bool) {
	if !f.inStep || turn != f.turn || step != f.step {
		return
	}
	if len(f.found) == f.first || f.finished && !f.recorded {
		f.found = append(f.found, attempt{turn: f.turn, step: f.step, n: len(f.found) - f.first + 1, prefix: first - 1, chunks: -1})
	}
	at := &f.found[len(f.found)-1]
	if at.chunks < 0 {
		at.chunks = first
	}
	at.end, f.finished = last, finish
}

// answer marks the attempt that a reply was put together from.
func (f *finder) answer(ev *outcrop.Event) {
	if !f.inStep {
		return
	}
	f.silent(ev.Seq)
	f.answered = true
	pick := len(f.found) - 1
	for s := range ev.Sources.All() {
		for i := f.first; i < len(f.found); i++ {
			if at := &f.found[i]; at.chunks >= 0 && s >= at.chunks && s <= at.end {
				pick = i
			}
		}
		break
	}
	f.found[pick].ok = true
}

// silent adds the one attempt of a step that shows no chunk.
func (f *finder) silent(before outcrop.Seq) {
	if len(f.found) == f.first {
		f.found = append(f.found, attempt{turn: f.turn, step: f.step, n: 1, prefix: before - 1, chunks: -1, end: -1})
	}
}

func (f *finder) stepEnd(seq outcrop.Seq) {
	if f.inStep && !f.answered {
		f.silent(seq)
	}
	f.inStep = false
}

// pickAttempt chooses among the attempts of a step: the one with number n, or,
// when n is 0, the one that succeeded, else the last.
func pickAttempt(all []attempt, turn, step, n int) (index int, err error) {
	index = -1
	steps, tries := 0, 0
	for i, at := range all {
		if at.turn != turn {
			continue
		}
		steps = max(steps, at.step)
		if at.step != step {
			continue
		}
		tries = max(tries, at.n)
		switch {
		case n > 0 && at.n == n:
			index = i
		case n == 0 && (index < 0 || at.ok || !all[index].ok):
			index = i
		}
	}
	switch {
	case index >= 0:
		return index, nil
	case tries > 0:
		return -1, usagef("turn %d step %d has no attempt %d: it has %s", turn, step, n, plural(tries, "attempt"))
	case steps > 0:
		return -1, usagef("turn %d has no step %d: it has %s", turn, step, plural(steps, "step"))
	}
	last := 0
	for _, at := range all {
		last = max(last, at.turn)
	}
	if last == 0 {
		return -1, usagef("the log has no model call")
	}
	return -1, usagef("turn %d made no model call: the last turn that did is %d", turn, last)
}
