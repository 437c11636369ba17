package history

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/dsh"
	"github.com/outcrop-dev/outcrop/history/meter"
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
	// Recall tells the model where the originals are; only for a session that
	// offers history_read.
	Recall bool
}

// What stands around a summary in a checkpoint. Programs know a checkpoint by
// its source; the text is for the model.
const (
	checkpointHead = "An earlier part of this conversation was condensed to make room. The summary below stands for it: " +
		"take it as what happened, do not answer it, and go on with the messages that follow."
	checkpointRecall = " The originals are the events %s: history_read shows them."
	frameName        = "compacted-summary"
	checkpointOpen   = "<" + frameName + ">"
	checkpointTail   = "</" + frameName + ">"
)

const (
	pluginKind    = "plugin"
	compactPlugin = "compact"
)

// CommitCompaction replaces a range of the surface by a checkpoint, as one
// group. Both ends must be on the surface, neither cut may split an exchange,
// and the checkpoint must be smaller than what it stands for.
func CommitCompaction(s *outcrop.Session, c Compaction) (Edit, error) {
	m := measured(s)
	r, err := c.rangeOf(s, m, rules{})
	if err != nil {
		return Edit{}, err
	}
	b := bracketFor(s, c.ID, c.CommandID)
	return c.commit(s, m, r, b, rules{}, b.startEvent())
}

// measured is a meter of a session as it is now.
func measured(s *outcrop.Session) *meter.Meter {
	m := meter.New(nil, 0)
	update(m, s)
	return m
}

func update(m *meter.Meter, s *outcrop.Session) {
	v := s.Surface().View()
	m.Update(outcrop.Prefix(s.Log(), v.LogLen()), v.Nodes(), v.Generation())
}

// BalancedCut reports for each position of the surface whether a cut there
// splits no exchange: element i is the cut before node i, the last element the
// one behind the last node.
func BalancedCut(s *outcrop.Session) []bool { return measured(s).Cuts() }

// rules are what the policies do not share when they commit.
type rules struct {
	counted bool    // dsh: calls and results are counted, prices are dsh's
	shrink  float64 // a checkpoint over this part of its range is refused; 0: it must be smaller
}

func (r rules) count(m *meter.Meter, msg message.Message) int64 {
	if r.counted {
		return dsh.Price(msg)
	}
	return m.Count(msg)
}

// most is the largest checkpoint of a range that is accepted.
func (r rules) most(tokens int64) int64 {
	most := tokens - 1
	if r.shrink > 0 {
		most = min(most, int64(r.shrink*float64(tokens)))
	}
	return most
}

// span is a range by positions, with the nodes it held when it was chosen.
type span struct {
	from, to int // to is behind it
	seqs     []outcrop.Seq
	tokens   int64
}

// rangeOf finds a range on the surface and judges its borders.
func (c *Compaction) rangeOf(s *outcrop.Session, m *meter.Meter, rule rules) (span, error) {
	const op = "compact"
	start, end, err := ends(s.ID(), s.Log(), m, c.Start, c.End)
	if err != nil {
		return span{}, err
	}
	if openBracket(s) != "" {
		return span{}, refuse(op, s.ID(), CodeBusy, -1, "another compaction has begun and has not ended", "wait for it, or open the session again")
	}
	return c.bordersOf(s, m, rule, start, end+1)
}

// ends finds the positions of the first and the last node of a range.
func ends(session string, log outcrop.Log, m *meter.Meter, first, last outcrop.Seq) (start, end int, err error) {
	const op = "compact"
	start, end = m.Index(first), m.Index(last)
	switch {
	case start < 0:
		return 0, 0, notOnSurface(op, session, log, first)
	case end < 0:
		return 0, 0, notOnSurface(op, session, log, last)
	case end < start:
		return 0, 0, refuse(op, session, CodeReversed, first,
			fmt.Sprintf("the range ends at node %d, which stands before its first node %d", last, first), "swap the two")
	}
	return start, end, nil
}

func (c *Compaction) bordersOf(s *outcrop.Session, m *meter.Meter, rule rules, from, to int) (span, error) {
	cuts := m.Cuts()
	if rule.counted {
		var err error
		if cuts, err = dsh.Cuts(s.Log(), m.Seqs()); err != nil {
			return span{}, refuse("compact", s.ID(), CodeSplitsPair, -1, err.Error(), "the policy layers pairs by id and can go on")
		}
	}
	if !cuts[from] || !cuts[to] {
		seq := c.Start
		if cuts[from] {
			seq = c.End
		}
		return span{}, refuse("compact", s.ID(), CodeSplitsPair, seq,
			"the range would keep a tool call and cover its result, or the reverse", "move its ends to the borders of the exchange")
	}
	r := span{from: from, to: to, seqs: append([]outcrop.Seq(nil), m.Seqs()[from:to]...), tokens: m.Sum(from, to)}
	if rule.counted {
		r.tokens = 0
		for _, msg := range outcrop.DeriveMessages(s.Log(), r.seqs) {
			if parsed, err := message.Parse(msg.Raw); err == nil {
				r.tokens += dsh.Price(parsed)
			}
		}
	}
	return r, nil
}

// bracket is a compaction that has begun, or is about to.
type bracket struct {
	id, command string
	start       outcrop.Seq
	turn        *int
}

func bracketFor(s *outcrop.Session, id, command string) bracket {
	b := bracket{id: id, command: command, start: outcrop.Seq(s.Len())}
	if b.id == "" {
		b.id = fmt.Sprintf("cmp-%d", b.start)
	}
	if t, _, open := outcrop.OpenTurn(s.Log()); open {
		b.turn = &t
	}
	return b
}

func (b bracket) startEvent() outcrop.Candidate {
	return outcrop.LogCandidate(outcrop.CompactionStart{CompactionID: b.id, SourceCommandID: b.command, Turn: b.turn})
}

// failed closes a bracket that came to nothing.
func (b bracket) failed(reason string) outcrop.Candidate {
	return outcrop.LogCandidate(outcrop.CompactionEnd{CompactionID: b.id, SourceCommandID: b.command, Turn: b.turn, Error: reason})
}

// checkpoint is the message that takes the place of a range.
func (c *Compaction) checkpoint(b bracket, seqs []outcrop.Seq) message.Message {
	head := checkpointHead
	if c.Recall {
		head += fmt.Sprintf(checkpointRecall, spans(seqs))
	}
	content := make([]message.Block, 0, len(c.Summary)+2)
	content = append(content, message.Text(head+"\n\n"+checkpointOpen))
	content = append(content, c.Summary...)
	content = append(content, message.Text(checkpointTail))
	return message.Message{
		ID: c.MessageID, Role: message.User, Content: content,
		Source: message.Source{Kind: pluginKind, Plugin: compactPlugin, CompactionID: b.id, SourceCommandID: b.command},
	}
}

// judge refuses a summary that is none or that saves nothing.
func (c *Compaction) judge(session string, m *meter.Meter, r span, b bracket, rule rules) (msg message.Message, after int64, err error) {
	if blank(c.Summary) {
		return msg, 0, refuse("compact", session, CodeNoSummary, -1, "the summary has no text", "")
	}
	msg = c.checkpoint(b, r.seqs)
	after = rule.count(m, msg)
	if after > rule.most(r.tokens) {
		return msg, after, refuse("compact", session, CodeNotSmaller, c.Start,
			fmt.Sprintf("the checkpoint has %d tokens, the range %d", after, r.tokens), "take a longer range or a shorter summary")
	}
	return msg, after, nil
}

// worthwhile refuses a range that no checkpoint can be smaller than, whatever
// the summary is. The policy of dsh asks all the same.
func (c *Compaction) worthwhile(session string, m *meter.Meter, r span, b bracket, rule rules) error {
	if rule.counted {
		return nil
	}
	empty := *c
	empty.Summary = nil
	frame := rule.count(m, empty.checkpoint(b, r.seqs))
	if frame < rule.most(r.tokens) {
		return nil
	}
	return refuse("compact", session, CodeNotSmaller, c.Start,
		fmt.Sprintf("a checkpoint has at least %d tokens, the range %d", frame+1, r.tokens), "take a longer range")
}

// framed is the price of a checkpoint without a summary that does not say where
// the originals are.
func framed(m *meter.Meter) int64 {
	var c Compaction
	return m.Count(c.checkpoint(bracket{}, nil))
}

// commit appends the rest of a bracket behind the events in before, as one
// group with them.
func (c *Compaction) commit(s *outcrop.Session, m *meter.Meter, r span, b bracket, rule rules, before ...outcrop.Candidate) (Edit, error) {
	msg, after, err := c.judge(s.ID(), m, r, b, rule)
	if err != nil {
		return Edit{}, err
	}
	first := outcrop.Seq(s.Len())
	at := first + outcrop.Seq(len(before)) // of the summary
	lost := m.Cached(r.from)
	sources := append([]outcrop.Seq{b.start, at}, r.seqs...)
	events, err := s.AppendAll(append(before,
		outcrop.LogCandidate(outcrop.CompactionSummary{
			CompactionID: b.id, SourceCommandID: b.command, Summary: c.Summary, RawOutput: c.RawOutput,
			LLMStreamCall: c.RawOutput != nil, Shadowed: r.seqs, ShadowedTokenCount: r.tokens,
			Provider: c.Provider, Model: c.Model, MaxTokens: c.MaxTokens, Usage: c.Usage, Level: c.Level,
		}),
		outcrop.SurfaceCandidate(outcrop.UserMessage{Message: msg}, outcrop.Replace(c.Start, c.End), outcrop.SourcesOf(sources...)),
		outcrop.LogCandidate(outcrop.CompactionEnd{CompactionID: b.id, SourceCommandID: b.command, Turn: b.turn}),
		outcrop.LogCandidate(outcrop.OutcropEdit{
			ReplaceSeq: at + 1, Kind: KindCompaction, TokensBefore: r.tokens, TokensAfter: after, CacheInvalidated: lost}))...)
	if err != nil {
		return Edit{}, err
	}
	return Edit{
		ID: b.id, First: first, Last: events[len(events)-1].Seq, Replacement: at + 1, Shadowed: r.seqs,
		TokensBefore: r.tokens, TokensAfter: after, CacheInvalidated: lost, Level: c.Level,
	}, nil
}

// openBracket is the id of a compaction of this process that has begun and has
// not ended, or "". One from before the session was opened is what a crash
// left; it blocks nothing.
func openBracket(s *outcrop.Session) string {
	id := ""
	for r := range s.Log().Records(s.FirstLive()) {
		switch r.Type {
		case outcrop.TypeCompactionStart:
			if id = textOf(r.Data, "compactionId"); id == "" {
				id = "?"
			}
		case outcrop.TypeCompactionEnd, outcrop.TypeEndSeed:
			id = ""
		}
	}
	return id
}

// spans writes where events are, for people: 4 to 24, 31.
func spans(seqs []outcrop.Seq) string {
	const most = 8
	var parts []string
	for i := 0; i < len(seqs); {
		j := i
		for j+1 < len(seqs) && seqs[j+1] > seqs[j] {
			j++
		}
		if len(parts) == most {
			return strings.Join(parts, ", ") + " and more"
		}
		if i == j {
			parts = append(parts, fmt.Sprint(seqs[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d to %d", seqs[i], seqs[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

func blank(blocks []message.Block) bool {
	for _, b := range blocks {
		if b.Type != message.TextBlock {
			return true
		}
	}
	return strings.TrimSpace(message.PlainText(blocks)) == ""
}
