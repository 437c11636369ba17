// Package history edits what the model sees, without losing anything: each
// operation appends events, one of which takes the place of a range of the
// surface. What it covers stays in the log.
//
// An operation is one group. Either all its events are committed or none, so
// an operation that is refused leaves no trace, and nothing stands between the
// event that announces a replacement and the replacement:
//
//	compaction/start       outcrop/edit follows each bracket and says
//	compaction/summary     what the edit saved and what it cost
//	user/message           replace: the checkpoint
//	compaction/end
//	outcrop/edit
//
//	compaction/prune
//	tool/result            replace: the same result with less content
//	outcrop/edit
//
// A range never splits an exchange: a call and its result are both inside or
// both outside. They are paired by call id, a result with the nearest earlier
// call of that id that is still open, never by counting.
//
// The functions append, so they run where the session's one appender runs: on
// an idle session, or through the agent's Maintain.
package history

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Codes of the errors of this package; all wrap outcrop.ErrRefused.
const (
	CodeNotOnSurface outcrop.Code = "NODE_NOT_ON_SURFACE"
	CodeReversed     outcrop.Code = "RANGE_REVERSED"
	CodeSplitsPair   outcrop.Code = "RANGE_SPLITS_PAIR"
	CodeNoSummary    outcrop.Code = "SUMMARY_EMPTY"
	CodeBusy         outcrop.Code = "BUSY"
	CodeNotSmaller   outcrop.Code = "NOT_SMALLER"
	CodeNotResult    outcrop.Code = "NODE_NOT_TOOL_RESULT"
)

func refuse(op string, s *outcrop.Session, code outcrop.Code, seq outcrop.Seq, msg, hint string) error {
	return &outcrop.Error{Op: op, Session: s.ID(), Code: code, Seq: seq, Offset: -1, Err: outcrop.ErrRefused, Msg: msg, Hint: hint}
}

// nodes is the surface with the message of each node; nil for a node that
// derives to nothing.
type nodes struct {
	seqs []outcrop.Seq
	msgs []*outcrop.Message
}

func nodesOf(s *outcrop.Session) nodes {
	n := nodes{seqs: s.Surface().Nodes()}
	n.msgs = make([]*outcrop.Message, len(n.seqs))
	derived := s.Messages()
	at := 0
	for i, seq := range n.seqs {
		if at < len(derived) && derived[at].Seq == seq {
			n.msgs[i] = derived[at]
			at++
		}
	}
	return n
}

func (n nodes) index(seq outcrop.Seq) int {
	for i, s := range n.seqs {
		if s == seq {
			return i
		}
	}
	return -1
}

// tokens is the estimate for the nodes from one position up to another.
func (n nodes) tokens(from, to int) (total int64) {
	for _, m := range n.msgs[from:to] {
		total += estimate(m)
	}
	return total
}

func estimate(m *outcrop.Message) int64 {
	if m == nil {
		return 0
	}
	parsed, err := message.Parse(m.Raw)
	if err != nil {
		return 0
	}
	return llm.EstimateTokens(parsed)
}

// invalidated is how many tokens of the last request an edit at position at
// puts out of a provider's cache: those of the nodes from there on that the
// request held. Without a request nothing was cached.
func invalidated(s *outcrop.Session, n nodes, at int) int64 {
	last, ok := lastRequest(s.Log())
	if !ok {
		return 0
	}
	var total int64
	for i := at; i < len(n.seqs); i++ {
		if n.seqs[i] <= last {
			total += estimate(n.msgs[i])
		}
	}
	return total
}
