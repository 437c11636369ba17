package history

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// BalancedCut reports for each position of the surface whether a cut there
// splits no exchange: element i is the cut before node i, the last element the
// one behind the last node.
//
// A result belongs to the nearest earlier call of its id that has none yet. A
// call without a result blocks every cut behind it only while it can still be
// answered, that is while its step is open; later a request supplies the
// result. A result without a call blocks nothing.
func BalancedCut(s *outcrop.Session) []bool {
	n := nodesOf(s)
	return n.cuts(openFrom(s))
}

// openFrom is the seq from which on messages belong to the open step; past the
// end of the log when no step is open.
func openFrom(s *outcrop.Session) outcrop.Seq {
	log := s.Log()
	end := outcrop.Seq(log.Len())
	if _, step, open := outcrop.OpenTurn(log); !open || step == 0 {
		return end
	}
	for seq := end - 1; seq >= 0; seq-- {
		if log.At(seq).Type == outcrop.TypeStepStart {
			return seq
		}
	}
	return end
}

// cuts finds the balanced cuts. open is where the open step begins.
func (n nodes) cuts(open outcrop.Seq) []bool {
	type call struct {
		at   int
		open bool
	}
	waiting := map[string][]call{}
	// over[i] counts exchanges that reach across the cut before node i.
	over := make([]int, len(n.seqs)+2)
	span := func(from, to int) { // from < to: both sides of every cut between
		over[from+1]++
		over[to+1]--
	}
	for i, m := range n.msgs {
		if m == nil {
			continue
		}
		calls, result := pairing(m)
		for _, id := range calls {
			waiting[id] = append(waiting[id], call{i, n.seqs[i] >= open})
		}
		if result != "" {
			if w := waiting[result]; len(w) > 0 {
				span(w[len(w)-1].at, i)
				waiting[result] = w[:len(w)-1]
			}
		}
	}
	for _, w := range waiting {
		for _, c := range w {
			if c.open {
				// It reaches behind the end.
				over[c.at+1]++
			}
		}
	}
	cuts := make([]bool, len(n.seqs)+1)
	depth := 0
	for i := range cuts {
		depth += over[i]
		cuts[i] = depth == 0
	}
	return cuts
}

// pairing returns the ids of the calls of a message, or the id that it
// answers.
func pairing(m *outcrop.Message) (calls []string, result string) {
	for b := range jsonwire.Elements(jsonwire.Get(m.Raw, "content")) {
		typ := jsonwire.Get(b, "type")
		switch {
		case jsonwire.TextIs(typ, string(message.ToolCallBlock)):
			if id, ok := jsonwire.Text(jsonwire.Get(b, "id")); ok {
				calls = append(calls, id)
			}
		case jsonwire.TextIs(typ, string(message.ToolResultBlock)):
			result, _ = jsonwire.Text(jsonwire.Get(b, "toolCallId"))
		}
	}
	return calls, result
}

// lastRequest is the seq of the last event that the last request was built
// from. A log of another program announces none; there it is what stands before
// the last assistant message.
func lastRequest(log outcrop.Log) (outcrop.Seq, bool) {
	for seq := outcrop.Seq(log.Len()) - 1; seq >= 0; seq-- {
		switch ev := log.At(seq); ev.Type {
		case outcrop.TypeOutcropRequest:
			n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "prefix"))
			return outcrop.Seq(n), ok
		case outcrop.TypeAssistantMessage:
			first := seq
			for src := range ev.Sources.All() {
				first = min(first, src)
			}
			if !hasRequest(log, seq) {
				return first - 1, true
			}
		}
	}
	return 0, false
}

// hasRequest reports whether the step of an assistant message announces its
// requests.
func hasRequest(log outcrop.Log, seq outcrop.Seq) bool {
	for ; seq >= 0; seq-- {
		switch log.At(seq).Type {
		case outcrop.TypeOutcropRequest:
			return true
		case outcrop.TypeStepStart:
			return false
		}
	}
	return false
}
