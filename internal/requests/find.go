package requests

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Find finds the model calls of a log, in order.
func Find(log outcrop.Log) []Attempt {
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
	found    []Attempt
	first    int  // where the open step begins in found
	inStep   bool //
	turn     int
	step     int
	recorded bool // the open step has an outcrop/request
	finished bool // the last chunk was a finish
	answered bool // the open step has its assistant/message
}

func (f *finder) event(ev *outcrop.Event) {
	switch ev.Type {
	case outcrop.TypeStepStart:
		f.stepEnd(ev.Seq)
		f.inStep, f.turn, f.step = true, number(ev.Data, "turn"), number(ev.Data, "step")
		f.first, f.recorded, f.finished, f.answered = len(f.found), false, false, false
	case outcrop.TypeOutcropRequest:
		if purpose, _ := jsonwire.Text(jsonwire.Get(ev.Data, "purpose")); purpose != "turn" {
			return
		}
		f.recorded, f.finished = true, false
		at := Attempt{Turn: number(ev.Data, "turn"), Step: number(ev.Data, "step"), N: number(ev.Data, "attempt"), Prefix: outcrop.Seq(number(ev.Data, "prefix")), chunks: -1, end: -1}
		at.Recorded, _ = jsonwire.Text(jsonwire.Get(ev.Data, "digest"))
		at.Encoder, _ = jsonwire.Text(jsonwire.Get(ev.Data, "encoder"))
		at.MaxOutput, _ = jsonwire.Int(jsonwire.Get(ev.Data, "maxOutput"))
		at.Images = string(jsonwire.Get(ev.Data, "images")) == "true"
		f.found = append(f.found, at)
	case outcrop.TypeAssistantChunk:
		kind := jsonwire.Get(jsonwire.Get(ev.Data, "chunk"), "type")
		f.chunk(number(ev.Data, "turn"), number(ev.Data, "step"), ev.Seq, ev.Seq, jsonwire.TextIs(kind, "finish"))
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
		f.found = append(f.found, Attempt{Turn: f.turn, Step: f.step, N: len(f.found) - f.first + 1, Prefix: first - 1, chunks: -1})
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
	f.found[pick].OK = true
}

// silent adds the one attempt of a step that shows no chunk.
func (f *finder) silent(before outcrop.Seq) {
	if len(f.found) == f.first {
		f.found = append(f.found, Attempt{Turn: f.turn, Step: f.step, N: 1, Prefix: before - 1, chunks: -1, end: -1})
	}
}

func (f *finder) stepEnd(seq outcrop.Seq) {
	if f.inStep && !f.answered {
		f.silent(seq)
	}
	f.inStep = false
}
