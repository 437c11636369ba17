package exchange

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// Compaction is a summary by which the program replaced what the model had
// read so far.
type Compaction struct {
	ID      string // "": made from the seq
	Time    int64
	Summary []message.Block // what the model reads from then on
	// MessageID is the id of the message that it came as, "": made from the seq.
	MessageID string
	// Through is the id of the last message that it stands for; "": of all.
	Through         string
	Provider, Model string // that summarised; "": those of Builder.Model
	Usage           *message.Usage
	// TokensBefore and TokensAfter are what the program says that the model's
	// input took; 0: it does not say.
	TokensBefore, TokensAfter int64
}

// Compact replaces the messages so far by a summary, in a compaction bracket
// of its own. What they held stays in the log.
func (b *Builder) Compact(c Compaction) error {
	if err := b.item(c.Time); err != nil {
		return err
	}
	if err := b.settle(); err != nil {
		return err
	}
	if len(b.nodes) == 0 {
		b.Mapped("compaction of nothing", "a context message with the summary")
		return b.contextMessage(&Context{ID: c.MessageID, Content: c.Summary})
	}
	if b.replied && len(b.calls) == 0 {
		// The turn was over: nobody asked for more.
		if err := b.closeTurn(nil); err != nil {
			return err
		}
	}
	end := b.through(c.Through)
	var turn *int
	if b.turn > 0 {
		// Between two steps of the turn.
		if err := b.endStep(); err != nil {
			return err
		}
		n := b.turn
		turn, b.replied, b.calls = &n, false, nil
	}
	provider, model := c.Provider, c.Model
	if provider == "" {
		provider = b.model.Provider
	}
	if model == "" {
		model = b.model.Model
	}
	if provider == "" {
		provider = "unknown"
	}
	if model == "" {
		model = "unknown"
	}
	id := c.ID
	start := b.enc.Len()
	if id == "" {
		id = fmt.Sprintf("cmp-%d", start)
	}
	shadowed := make([]outcrop.Seq, 0, end+1)
	for _, n := range b.nodes[:end+1] {
		shadowed = append(shadowed, n.seq)
	}
	if err := b.log(outcrop.CompactionStart{CompactionID: id, Turn: turn}); err != nil {
		return err
	}
	if err := b.log(outcrop.CompactionSummary{CompactionID: id, Summary: someContent(c.Summary), Shadowed: shadowed,
		ShadowedTokenCount: max(c.TokensBefore, 0), Provider: provider, Model: model, Usage: c.Usage}); err != nil {
		return err
	}
	sources := append([]outcrop.Seq{start, start + 1}, shadowed...)
	checkpoint := message.Message{ID: c.MessageID, Role: message.User, Content: someContent(c.Summary),
		Source: message.Source{Kind: "plugin", Plugin: "compact", CompactionID: id}}
	seq, err := b.add(outcrop.SurfaceCandidate(outcrop.UserMessage{Message: checkpoint},
		outcrop.Replace(shadowed[0], shadowed[end]), outcrop.SourcesOf(sources...)))
	if err != nil {
		return err
	}
	b.messages++
	b.nodes = append([]node{{seq: seq, id: c.MessageID}}, b.nodes[end+1:]...)
	if err := b.log(outcrop.CompactionEnd{CompactionID: id, Turn: turn}); err != nil {
		return err
	}
	b.report.Kept("compaction")
	if c.TokensBefore > 0 {
		return b.log(outcrop.OutcropEdit{ReplaceSeq: seq, Kind: "compaction", TokensBefore: c.TokensBefore,
			TokensAfter: max(c.TokensAfter, 0), CacheInvalidated: c.TokensBefore})
	}
	return nil
}

// through is the place of the last node that a summary stands for. A call and
// its results are not parted.
func (b *Builder) through(id string) int {
	end := len(b.nodes) - 1
	if id == "" {
		return end
	}
	for i := end; i >= 0; i-- {
		if b.nodes[i].id != id {
			continue
		}
		for i < end && b.nodes[i+1].result {
			i++
		}
		return i
	}
	b.Mapped("compaction of a part", "one of everything before it: the part's end is not there")
	return end
}
