package history

import (
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// TypeSummarizerUsage is the type of an event that says what a call for a
// summary took, when the usage of compaction/summary does not hold it. It is
// ignorable, never on the surface, and stands inside the bracket of its call:
//
//	purpose, turn?, call, model   as in its outcrop/summarizer-call
//	outcome                       an Outcome
//	usage?                        what the provider reported, absent when it did not
//
// The usage of a compaction/summary is the sum over the calls of its bracket
// that have no such event.
const TypeSummarizerUsage outcrop.Type = "outcrop/summarizer-usage"

// Outcome is what came of a call for a summary.
type Outcome string

const (
	OutcomeUsed    Outcome = "used"    // the summary is made of its answer
	OutcomeUnused  Outcome = "unused"  // an answer, or a part of one, came and is in no summary
	OutcomeNothing Outcome = "nothing" // it failed before anything came
)

// took is a call of a summariser with what it took.
type took struct {
	purpose  string
	turn     *int
	call     int // from 1 in its bracket
	model    string
	began    bool // something came, or may have
	answered bool // with what can be used
	usage    *message.Usage
}

// calls are those of one bracket.
type calls []*took

// counted is the usage that compaction/summary has: of the calls whose answers
// are in the summary.
func (c calls) counted() (u *message.Usage) {
	for _, t := range c {
		if t.answered {
			u = sum(u, t.usage)
		}
	}
	return u
}

// uncounted are the events about calls that compaction/summary does not count.
// summarised says that the summary is that of the calls.
func (c calls) uncounted(summarised bool) (events []outcrop.Candidate) {
	partly := c.counted() != nil
	for _, t := range c {
		outcome := OutcomeUnused
		switch {
		case summarised && t.answered && (t.usage != nil || !partly):
			continue
		case summarised && t.answered:
			outcome = OutcomeUsed
		case !t.began && t.usage == nil:
			outcome = OutcomeNothing
		}
		events = append(events, t.event(outcome))
	}
	return events
}

func (t *took) event(outcome Outcome) outcrop.Candidate {
	text := func(dst []byte, name, value string) []byte {
		return jsonwire.AppendString(append(append(dst, `,"`...), name+`":`...), value)
	}
	data := jsonwire.AppendString([]byte(`{"purpose":`), t.purpose)
	if t.turn != nil {
		data = strconv.AppendInt(append(data, `,"turn":`...), int64(*t.turn), 10)
	}
	data = strconv.AppendInt(append(data, `,"call":`...), int64(t.call), 10)
	data = text(text(data, "model", t.model), "outcome", string(outcome))
	if t.usage != nil {
		data = t.usage.AppendJSON(append(data, `,"usage":`...))
	}
	return outcrop.RawCandidate(outcrop.Event{Type: TypeSummarizerUsage, Data: append(data, '}'), Ignorable: true})
}

// sensible is a usage, or nil when a number of it is below 0: that is no report.
func sensible(u *message.Usage) *message.Usage {
	if u == nil || u.InputTokens < 0 || u.OutputTokens < 0 {
		return nil
	}
	for _, n := range []*int64{u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens} {
		if n != nil && *n < 0 {
			return nil
		}
	}
	return sum(u, nil)
}

// sum adds what calls used.
func sum(a, b *message.Usage) *message.Usage {
	if a == nil && b == nil {
		return nil
	}
	out := &message.Usage{}
	for _, u := range []*message.Usage{a, b} {
		if u == nil {
			continue
		}
		out.InputTokens = safe(out.InputTokens + safe(u.InputTokens))
		out.OutputTokens = safe(out.OutputTokens + safe(u.OutputTokens))
		addTo(&out.CacheReadTokens, u.CacheReadTokens)
		addTo(&out.CacheWriteTokens, u.CacheWriteTokens)
		addTo(&out.ReasoningTokens, u.ReasoningTokens)
	}
	return out
}

// addTo adds what may not have been reported.
func addTo(into **int64, n *int64) {
	if n == nil {
		return
	}
	total := safe(*n)
	if *into != nil {
		total = safe(total + **into)
	}
	*into = &total
}

// safe keeps nonsense that a provider reported in a number that a log can hold.
func safe(n int64) int64 { return min(max(n, 0), jsonwire.MaxSafe) }
