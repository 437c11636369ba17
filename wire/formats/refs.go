package formats

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Members of data that name events of the same log.
//
//	command/done                sourceEventSeq
//	compaction/summary, /prune  shadowedRange{start,end}, shadowedSeqs[]
//	session/title, -llm-request messageSeqs[]
//	image/offload               targets[].seq
//	outcrop/request             prefix
//	outcrop/summarizer-call     prefix, through
//	outcrop/edit                replaceSeq
//	outcrop/rewind              to, prompt
//	outcrop/pin                 node
//	outcrop/redacted            seqs[]
//
// A number that names no earlier event stays what it is: nothing is judged here.
func (s *seqs) data(t outcrop.Type, data []byte) []byte {
	switch t {
	case "command/done":
		return s.members(data, "sourceEventSeq")
	case outcrop.TypeCompactionSummary, outcrop.TypeCompactionPrune:
		return edit(data, func(m member) member {
			switch {
			case m.is("shadowedRange"):
				m.value = s.members(m.value, "start", "end")
			case m.is("shadowedSeqs"):
				m.value = s.list(m.value)
			}
			return m
		})
	case outcrop.TypeSessionTitle, typeTitleRequest:
		return s.lists(data, "messageSeqs")
	case "image/offload":
		return edit(data, func(m member) member {
			if m.is("targets") {
				m.value = each(m.value, func(v []byte) []byte { return s.members(v, "seq") })
			}
			return m
		})
	case outcrop.TypeOutcropRequest:
		return s.members(data, "prefix")
	case outcrop.TypeOutcropSummarizer:
		return s.members(data, "prefix", "through")
	case outcrop.TypeOutcropEdit:
		return s.members(data, "replaceSeq")
	case outcrop.TypeOutcropRewind:
		return s.members(data, "to", "prompt")
	case outcrop.TypeOutcropPin:
		return s.members(data, "node")
	case outcrop.TypeOutcropRedacted:
		return s.lists(data, "seqs")
	}
	return data
}

// members maps members that are seqs.
func (s *seqs) members(obj []byte, names ...string) []byte {
	return edit(obj, func(m member) member {
		for _, n := range names {
			if m.is(n) {
				m.value = s.number(m.value)
			}
		}
		return m
	})
}

// lists maps a member that is a list of seqs.
func (s *seqs) lists(obj []byte, name string) []byte {
	return edit(obj, func(m member) member {
		if m.is(name) {
			m.value = s.list(m.value)
		}
		return m
	})
}

func (s *seqs) list(v []byte) []byte { return each(v, s.number) }

func (s *seqs) number(v []byte) []byte {
	if jsonwire.Kind(v) != '0' {
		return v
	}
	n, ok := jsonwire.Int(v)
	if !ok {
		return v
	}
	if to := s.near(outcrop.Seq(n)); int64(to) != n {
		return jsonwire.AppendInt(nil, int64(to))
	}
	return v
}
