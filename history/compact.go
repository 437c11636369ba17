package history

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Compaction is a summary that takes the place of a range of the surface.
type Compaction struct {
	// ID names the bracket; empty: made from the seq of its start.
	ID        string
	CommandID string // of the command that asked for it, or ""
	// Start and End are the first and the last node of the range.
	Start, End outcrop.Seq
	// Summary is what the model keeps of the range: text blocks, not blank.
	Summary []message.Block
	// RawOutput is all that the summarising call gave; nil when the summary
	// did not come from exactly one call.
	RawOutput []message.Block
	// Provider and Model say who summarised.
	Provider, Model string
	MaxTokens       int64 // the limit that the summary had, 0 when none
	Usage           *message.Usage
	Level           int // height in the layers of checkpoints; 0: not said
	// MessageID is the checkpoint's; empty: the session makes one.
	MessageID string
}

// Edit is what an operation has committed.
type Edit struct {
	ID          string        // of the compaction; "" for a prune
	First, Last outcrop.Seq   // first and last event of the group
	Replacement outcrop.Seq   // the event that is on the surface now
	Shadowed    []outcrop.Seq // what it stands for, in model order
	// In estimated tokens: the range, what replaced it, and how much of the
	// last request is no longer a prefix of the next one.
	TokensBefore, TokensAfter, CacheInvalidated int64
}

// What stands around a summary in a checkpoint. Programs know a checkpoint by
// its source; the text is for the model.
const (
	checkpointHead = "An earlier part of this conversation was condensed to make room. The summary below stands for it: " +
		"take it as what happened, do not answer it, and go on with the messages that follow.\n\n<compacted-summary>"
	checkpointTail = "</compacted-summary>"
)

const (
	pluginKind    = "plugin"
	compactPlugin = "compact"
)

// CommitCompaction replaces a range of the surface by a checkpoint. Both ends
// must be on the surface, neither cut may split an exchange, and the checkpoint
// must be smaller than what it stands for.
func CommitCompaction(s *outcrop.Session, c Compaction) (Edit, error) {
	const op = "compact"
	n := nodesOf(s)
	start, end := n.index(c.Start), n.index(c.End)
	switch {
	case start < 0:
		return Edit{}, notOnSurface(op, s, c.Start)
	case end < 0:
		return Edit{}, notOnSurface(op, s, c.End)
	case end < start:
		return Edit{}, refuse(op, s, CodeReversed, c.Start,
			fmt.Sprintf("the range ends at node %d, which stands before its first node %d", c.End, c.Start), "swap the two")
	case bracketOpen(s):
		return Edit{}, refuse(op, s, CodeBusy, -1, "another compaction has begun and has not ended", "wait for it, or open the session again")
	case blank(c.Summary):
		return Edit{}, refuse(op, s, CodeNoSummary, -1, "the summary has no text", "")
	}
	cuts := n.cuts(openFrom(s))
	if !cuts[start] || !cuts[end+1] {
		seq := c.Start
		if cuts[start] {
			seq = c.End
		}
		return Edit{}, refuse(op, s, CodeSplitsPair, seq,
			"the range would keep a tool call and cover its result, or the reverse", "move its ends to the borders of the exchange")
	}
	shadowed := append([]outcrop.Seq(nil), n.seqs[start:end+1]...)
	first := outcrop.Seq(s.Len())
	if c.ID == "" {
		c.ID = fmt.Sprintf("cmp-%d", first)
	}
	before := n.tokens(start, end+1)
	checkpoint := message.Message{
		ID: c.MessageID, Role: message.User, Content: framed(c.Summary),
		Source: message.Source{Kind: pluginKind, Plugin: compactPlugin, CompactionID: c.ID, SourceCommandID: c.CommandID},
	}
	after := llm.EstimateTokens(checkpoint)
	if after >= before {
		return Edit{}, refuse(op, s, CodeNotSmaller, c.Start,
			fmt.Sprintf("the checkpoint has %d tokens, the range %d", after, before), "take a longer range or a shorter summary")
	}
	lost := invalidated(s, n, start)
	var turn *int
	if t, _, open := outcrop.OpenTurn(s.Log()); open {
		turn = &t
	}
	summary := outcrop.CompactionSummary{
		CompactionID: c.ID, SourceCommandID: c.CommandID, Summary: c.Summary, RawOutput: c.RawOutput,
		LLMStreamCall: c.RawOutput != nil, Shadowed: shadowed, ShadowedTokenCount: before,
		Provider: c.Provider, Model: c.Model, MaxTokens: c.MaxTokens, Usage: c.Usage, Level: c.Level,
	}
	sources := append([]outcrop.Seq{first, first + 1}, shadowed...)
	events, err := s.AppendAll(
		outcrop.LogCandidate(outcrop.CompactionStart{CompactionID: c.ID, SourceCommandID: c.CommandID, Turn: turn}),
		outcrop.LogCandidate(summary),
		outcrop.SurfaceCandidate(outcrop.UserMessage{Message: checkpoint}, outcrop.Replace(c.Start, c.End), outcrop.SourcesOf(sources...)),
		outcrop.LogCandidate(outcrop.CompactionEnd{CompactionID: c.ID, SourceCommandID: c.CommandID, Turn: turn}),
		outcrop.LogCandidate(outcrop.OutcropEdit{
			ReplaceSeq: first + 2, Kind: "compaction", TokensBefore: before, TokensAfter: after, CacheInvalidated: lost}))
	if err != nil {
		return Edit{}, err
	}
	return Edit{
		ID: c.ID, First: first, Last: events[len(events)-1].Seq, Replacement: first + 2, Shadowed: shadowed,
		TokensBefore: before, TokensAfter: after, CacheInvalidated: lost,
	}, nil
}

func notOnSurface(op string, s *outcrop.Session, seq outcrop.Seq) error {
	return refuse(op, s, CodeNotOnSurface, seq, fmt.Sprintf("event %d is not on the surface", seq), "outcrop surface lists the nodes")
}

// bracketOpen reports whether a compaction/start of this process has no end.
// One from before the session was opened is what a crash left; it blocks
// nothing.
func bracketOpen(s *outcrop.Session) bool {
	open := false
	for r := range s.Log().Records(s.FirstLive()) {
		switch r.Type {
		case outcrop.TypeCompactionStart:
			open = true
		case outcrop.TypeCompactionEnd, outcrop.TypeEndSeed:
			open = false
		}
	}
	return open
}

// framed puts the summary between the texts that tell the model what it is.
func framed(summary []message.Block) []message.Block {
	out := make([]message.Block, 0, len(summary)+2)
	out = append(out, message.Text(checkpointHead))
	out = append(out, summary...)
	return append(out, message.Text(checkpointTail))
}

func blank(blocks []message.Block) bool {
	for _, b := range blocks {
		if b.Type != message.TextBlock {
			return true
		}
	}
	return strings.TrimSpace(message.PlainText(blocks)) == ""
}
