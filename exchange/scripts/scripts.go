// Package scripts writes what a model said in a session as a script file
// (package llm/script, version 1), so that the session can be played again
// without the model: for bug reports and tests.
//
// # What is written
//
// One reply for each attempt at a call that the log shows, with turn, step and
// attempt in its when:
//
//	it succeeded                  its chunks; where the log has none, its blocks
//	it failed                     its chunks, then the failure as a finish chunk
//	it was cancelled              its chunks, then cut hang: whoever plays it cancels it too
//	a crash cut it                its chunks, then cut eof
//
// Replies of a summariser, of purpose compaction, have no place: they are used
// one after the other. Comments hold the prompts, as JSON strings, in the place
// where they were sent. The window is 0, no limit: nothing is compacted by
// itself when the script is played.
//
// Played with the same prompts, tools that give the same results, and the same
// limits, the script gives the same conversation. Steering that came in the
// middle of a turn is a comment, and up to whoever plays it.
package scripts

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/masking"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Options: the zero value is the whole log, masked.
type Options struct {
	Raw    bool
	Before outcrop.Seq // events from this seq on do not count; 0: all count
}

// Report says what was written.
type Report struct {
	Header  outcrop.Header
	Replies int
	Masked  int
	Tail    store.Tail
	Damage  error // why the log could not be read to its end
}

// Write writes the script of a session. It holds the chunks of one attempt at a
// time. The error is one of opening, of ctx or of w.
func Write(ctx context.Context, w io.Writer, src transcript.Source, o Options) (Report, error) {
	sd, err := src.Open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer sd.Close()
	m := masking.Masker{Raw: o.Raw}
	s := &writer{w: bufio.NewWriterSize(w, 64<<10), raw: o.Raw}
	rep := Report{Header: sd.Header()}
	s.header(sd.Header().ID)
	for r, err := range m.Log(records.Through(ctx, sd.Records(), o.Before-1)) {
		if err != nil {
			if ctx.Err() != nil {
				return rep, context.Cause(ctx)
			}
			rep.Damage = store.Located(err, sd)
			break
		}
		for ev := range r.Events() {
			if o.Before > 0 && ev.Seq >= o.Before {
				break
			}
			s.event(&ev)
		}
	}
	s.flush(crashed, nil)
	if o.Before == 0 {
		rep.Tail = sd.Tail()
	}
	rep.Replies, rep.Masked = s.replies, m.Found
	return rep, s.w.Flush()
}

// writer is the scan for attempts.
type writer struct {
	w       *bufio.Writer
	raw     bool
	replies int

	turn, step, n int
	inStep        bool
	open          bool // an attempt is under way
	recorded      bool // outcrop/request events tell where attempts begin
	chunks        []message.Chunk
}

type ending uint8

const (
	answered ending = iota
	failed
	cancelled
	crashed
)

func (s *writer) header(id string) {
	b := jsonwire.AppendIntMember([]byte{'{'}, "script", 1)
	b = jsonwire.AppendStringMember(b, "model", id)
	b = jsonwire.AppendIntMember(b, "window", 0)
	s.line(append(b, '}'))
	s.comment("Play it with the prompts below, one run or one line of chat each:")
	s.comment(`outcrop run --script FILE "PROMPT", then outcrop run --script FILE --session ID "PROMPT"`)
}

func (s *writer) line(b []byte) {
	s.w.Write(b)
	s.w.WriteByte('\n')
}

func (s *writer) comment(text string) { s.w.WriteString("# " + text + "\n") }

func number(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(n)
}

func (s *writer) event(ev *outcrop.Event) {
	switch ev.Type {
	case outcrop.TypeTurnStart:
		s.turn = number(ev.Data, "turn")
	case outcrop.TypeUserMessage:
		s.prompt(ev)
	case outcrop.TypeStepStart:
		s.flush(crashed, nil)
		s.inStep, s.turn, s.step, s.n, s.recorded = true, number(ev.Data, "turn"), number(ev.Data, "step"), 0, false
	case outcrop.TypeOutcropRequest:
		if !s.inStep || !jsonwire.TextIs(jsonwire.Get(ev.Data, "purpose"), "turn") {
			return
		}
		s.flush(crashed, nil)
		s.recorded, s.open = true, true
		s.n = number(ev.Data, "attempt")
	case outcrop.TypeAssistantChunk:
		s.chunk(ev)
	case outcrop.TypeLLMRetry:
		if !s.inStep || !s.open && s.n >= number(ev.Data, "retry") {
			return // its chunks told of the failure
		}
		s.begin()
		s.flush(failed, message.ParseFailure(jsonwire.Get(ev.Data, "failure")))
	case outcrop.TypeAssistantMessage:
		s.answer(ev)
	case outcrop.TypeCompactionSummary:
		s.summary(ev)
	case outcrop.TypeTurnEnd:
		s.endTurn(jsonwire.Get(ev.Data, "reason"))
	}
}

// prompt is a comment with what a person sent.
func (s *writer) prompt(ev *outcrop.Event) {
	if !ev.Op.IsAppend() || !jsonwire.TextIs(jsonwire.Get(jsonwire.Get(ev.Data, "source"), "kind"), message.FromUser.Kind) {
		return
	}
	msg, err := message.Parse(ev.Data)
	if err != nil {
		return
	}
	what := "prompt"
	if s.open || s.step > 1 || len(s.chunks) > 0 {
		what = "sent meanwhile"
	}
	s.comment(fmt.Sprintf("turn %d, %s: %s", s.turn, what, jsonwire.AppendString(nil, message.PlainText(msg.Content))))
	for i := range msg.Content {
		if b := &msg.Content[i]; b.Type == message.ImageBlock {
			id, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "attachmentId"))
			s.comment("  with the attachment " + string(jsonwire.AppendString(nil, id)))
		}
	}
}

func (s *writer) begin() {
	if !s.open {
		s.open = true
		s.n++
	}
}

func (s *writer) chunk(ev *outcrop.Event) {
	if !s.inStep || number(ev.Data, "turn") != s.turn || number(ev.Data, "step") != s.step {
		return
	}
	c, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk"))
	if err != nil || !fits(&c) {
		return
	}
	s.begin()
	if c.Type != message.FinishChunk {
		s.chunks = append(s.chunks, c)
		return
	}
	switch {
	case c.Reason == nil:
		c.Reason = &message.Finish{Kind: message.Stop}
	case c.Reason.Kind == message.Errored:
		s.flush(failed, c.Reason.Failure)
		return
	case c.Reason.Kind == message.Aborted:
		s.flush(cancelled, nil)
		return
	}
	if !s.raw {
		c.ReplayState = nil // signed by a provider; a masked text has no signature
	}
	s.chunks = append(s.chunks, c)
	s.flush(answered, nil)
}

// fits reports whether a script can hold a chunk. A log can hold others: what a
// chunk is made of is no reason to refuse one.
func fits(c *message.Chunk) bool {
	if c.Index < 0 || c.Index > 1_000_000 {
		return false
	}
	switch c.Type {
	case message.BlockStart, message.TextDelta, message.ReasoningDelta, message.ToolCallDelta, message.FinishChunk:
		return true
	case message.BlockEnd:
		return c.Block != nil && (c.Block.Raw == nil || jsonwire.Kind(c.Block.Raw) == '{')
	case message.UsageChunk:
		return c.Usage != nil
	}
	return false
}

// answer says that an attempt succeeded; one that shows no chunk has its blocks.
func (s *writer) answer(ev *outcrop.Event) {
	if !s.inStep {
		return
	}
	msg, err := message.Parse(jsonwire.Get(ev.Data, "message"))
	if err != nil {
		return
	}
	interrupted := string(jsonwire.Get(ev.Data, "interrupted")) == "true"
	switch {
	case s.open && len(s.chunks) > 0 && interrupted:
		s.flush(cancelled, nil)
	case s.open && len(s.chunks) > 0:
		s.flush(answered, nil)
	case !s.open && s.n > 0:
		// Its finish chunk ended it.
	default:
		s.begin()
		s.blocks(msg.Content, message.ParseUsage(jsonwire.Get(ev.Data, "usage")))
	}
	s.open, s.chunks = false, nil
}

func (s *writer) endTurn(reason []byte) {
	kind, _ := jsonwire.Text(jsonwire.Get(reason, "kind"))
	switch outcrop.ReasonKind(kind) {
	case outcrop.TurnError:
		s.flush(failed, message.ParseFailure(jsonwire.Get(reason, "error")))
	case outcrop.TurnAborted:
		s.flush(cancelled, nil)
	default:
		s.flush(crashed, nil)
	}
	s.inStep, s.step, s.n = false, 0, 0
}

// place is the beginning of a reply's line.
func (s *writer) place() []byte {
	b := fmt.Appendf(nil, `{"when":{"turn":%d,"step":%d`, max(s.turn, 1), max(s.step, 1))
	if s.n > 1 {
		b = jsonwire.AppendIntMember(b, "attempt", int64(s.n))
	}
	return append(b, '}')
}

// flush writes the attempt that is under way.
func (s *writer) flush(how ending, failure *message.Failure) {
	if !s.open {
		return
	}
	chunks := s.chunks
	s.open, s.chunks = false, nil
	b := s.place()
	deltas := 0
	for i := range chunks {
		switch chunks[i].Type {
		case message.TextDelta, message.ReasoningDelta, message.ToolCallDelta:
			deltas++
		}
	}
	switch how {
	case failed:
		if failure == nil {
			failure = &message.Failure{Code: message.CodeUnknown, Message: "the log does not say why the call failed"}
		}
		chunks = append(chunks, message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Errored, Failure: failure}})
	case cancelled, crashed:
		cut := "hang"
		if how == crashed {
			cut = "eof"
			s.comment("the session broke off here")
		} else {
			s.comment("cancelled here: whoever plays it does that too")
		}
		b = jsonwire.AppendStringMember(b, "cut", cut)
		if deltas == 0 {
			chunks = nil
		} else {
			b = jsonwire.AppendIntMember(b, "after", int64(deltas))
		}
	}
	if len(chunks) > 0 {
		b = append(jsonwire.AppendMember(b, "chunks"), '[')
		for i := range chunks {
			if i > 0 {
				b = append(b, ',')
			}
			b = chunks[i].AppendJSON(b)
		}
		b = append(b, ']')
	}
	s.line(append(b, '}'))
	s.replies++
}

// blocks writes a reply of which the log has no chunks.
func (s *writer) blocks(content []message.Block, usage *message.Usage) {
	b := appendBlocks(jsonwire.AppendMember(s.place(), "blocks"), content)
	s.line(append(appendUsage(b, usage), '}'))
	s.replies++
}

// appendBlocks writes the blocks that a script may have.
func appendBlocks(dst []byte, content []message.Block) []byte {
	dst = append(dst, '[')
	for i := range content {
		b := content[i]
		b.Raw = nil
		switch {
		case b.Type == message.ToolCallBlock && b.ID == "", b.Type == message.ToolResultBlock:
			continue
		case b.Type == message.TextBlock, b.Type == message.ReasoningBlock, b.Type == message.ToolCallBlock, b.Type == message.ImageBlock:
		default:
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = b.AppendJSON(dst)
	}
	return append(dst, ']')
}

func appendUsage(dst []byte, u *message.Usage) []byte {
	if u == nil {
		return dst
	}
	dst = append(jsonwire.AppendMember(dst, "usage"), '{')
	dst = jsonwire.AppendIntMember(dst, "input", max(u.InputTokens, 0))
	dst = jsonwire.AppendIntMember(dst, "output", max(u.OutputTokens, 0))
	for _, one := range [...]struct {
		name string
		n    *int64
	}{{"cacheRead", u.CacheReadTokens}, {"cacheWrite", u.CacheWriteTokens}, {"reasoning", u.ReasoningTokens}} {
		if one.n != nil {
			dst = jsonwire.AppendIntMember(dst, one.name, max(*one.n, 0))
		}
	}
	return append(dst, '}')
}

// summary writes what a summariser said.
func (s *writer) summary(ev *outcrop.Event) {
	content, _ := message.ParseBlocks(jsonwire.Get(ev.Data, "rawOutput"))
	if len(content) == 0 {
		if string(jsonwire.Get(ev.Data, "usage")) == "" {
			return // no model was asked
		}
		content, _ = message.ParseBlocks(jsonwire.Get(ev.Data, "summary"))
	}
	if text := message.PlainText(content); strings.TrimSpace(text) == "" {
		return
	}
	b := appendBlocks([]byte(`{"when":{"purpose":"compaction"},"blocks":`), content)
	s.line(append(appendUsage(b, message.ParseUsage(jsonwire.Get(ev.Data, "usage"))), '}'))
	s.replies++
}
