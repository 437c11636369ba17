package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// How the messages of a request were taken, as outcrop/summarizer-call records
// it: from the surface as it was behind its event prefix, up to its node
// through. The messages in its member extra follow them, in full. Its digest is
// outcrop.DigestOf the request header in force and the messages, those in extra
// too, as they were given to llm.Build.
const (
	modeWhole = "whole" // the surface from its head up to through
	modeCut   = "cut"   // the same, with results cut to head and tail
	modePart  = "part"  // from behind the last part up to through, long texts cut
	modeJoin  = "join"  // none: extra has the summaries of the parts
)

// What is kept of a result in the modes cut and part, in code points.
const (
	cutHead = 2000
	cutTail = 500
)

// What a summariser is told. The request before it is the conversation's own,
// so that it is found in the provider's cache; the instruction comes last.
const (
	askStart = "Stop the work here for one message. The part of this conversation that begins with the message %q and ends right above will be taken out to make room, and what you write now will stand in its place. Nothing else of that part will be known afterwards."
	askMerge = "Stop the work here for one message. The summaries at the end of this conversation, from the one that begins with %q on, will be taken out to make room, and one summary that you write now will stand in their place. Keep what still matters of each and drop what later ones made void."
	askJoin  = "These are summaries of the consecutive parts of one conversation, in order. Write one summary that stands for all of them. Keep what still matters of each and drop what later ones made void."
	askHow   = "Write it so that the work can go on from it alone: what was asked for and why; what was decided; what was done, with exact paths, commands, names, numbers and error texts; what failed and what was learnt from it; what is open and what comes next. Quote what a person demanded in their words. Use headings and short lines, at most %d words. Answer with that text alone: no tool call, no greeting, no comment about this request."
	askAgain = "The last answer could not be used. Answer in plain text only, do not call a tool, and do not repeat these instructions."
)

// summarize gets the summary of a range from a model and puts it into c. It
// takes the simplest way that fits into the model's window, and another one
// when the model finds the request too long.
func (o *op) summarize(c *Compaction, b bracket, src source, j job) (calls, error) {
	if src.config.Model == "" {
		return nil, refuse("summarize", o.m.session, CodeSummarizer, -1, "the session has no request header that names a model", "")
	}
	most := min(o.m.meter.Scale(j.most), maxSummary)
	s := &summarizer{op: o, b: b, src: src, most: most, room: o.room(most)}
	err := s.ways()
	if err != nil {
		return s.calls, err
	}
	c.Summary, c.Usage = s.text, s.calls.counted()
	c.MaxTokens, c.Provider, c.Model = s.most, src.config.Provider, src.config.Model
	if len(s.calls) == 1 {
		c.RawOutput = s.raw
	} else {
		c.RawOutput = nil
	}
	return s.calls, nil
}

// room is the price that a request may have; 0: unknown.
func (o *op) room(most int64) int64 {
	window := o.m.o.Window
	if o.m.o.Model.Model != "" {
		window = o.m.o.ModelWindow
	}
	if window <= 0 {
		return 0
	}
	return max(o.m.meter.Unscale(window-most-margin(window)), 256)
}

// summarizer is the work on one range.
type summarizer struct {
	*op
	b     bracket
	src   source
	most  int64 // tokens of the answer
	room  int64 // price of the request, 0: unknown
	calls calls // of this range

	text []message.Block
	raw  []message.Block
}

// ways tries whole, cut and part.
func (s *summarizer) ways() error {
	nodes := s.src.parsed
	ask := s.instruction(s.src.merge)
	whole := s.price(nodes, ask)
	if s.room == 0 || whole <= s.room {
		err := s.ask(modeWhole, nodes, s.src.msgs, ask)
		if !tooLong(err) {
			return err
		}
		s.narrow(whole)
	}
	short := shortened(nodes, cutHead, cutTail, false)
	if n := s.price(short, ask); n <= s.room {
		err := s.ask(modeCut, short, nil, ask)
		if !tooLong(err) {
			return err
		}
		s.narrow(n)
	}
	return s.parts()
}

// narrow learns from a request that was too long although it seemed to fit.
func (s *summarizer) narrow(price int64) {
	if n := price * 7 / 10; s.room == 0 || n < s.room {
		s.room = n
	}
}

// parts summarises the range in parts, cut between exchanges, and joins them.
func (s *summarizer) parts() error {
	ask := s.instruction(s.src.merge)
	each := s.room - s.price(nil, ask)
	left := maxCalls - s.op.calls
	if left < 1 || each < 128 {
		return refuse("summarize", s.m.session, CodeSummarizer, -1, "the range does not fit into the model's window", "")
	}
	n := max(left-1, 1)
	nodes := s.fitted(s.src.parsed[s.src.from:], each*int64(n)*8/10)
	parts := s.pack(nodes, each)
	if len(parts) > n {
		return refuse("summarize", s.m.session, CodeSummarizer, -1,
			fmt.Sprintf("the range needs %d parts, %d calls are left", len(parts), left), "")
	}
	var texts []message.Block
	for _, part := range parts {
		if err := s.ask(modePart, part, nil, ask); err != nil {
			return err
		}
		texts = append(texts, s.text...)
	}
	if len(parts) == 1 {
		return nil
	}
	join := message.Message{Role: message.User, Source: ours, Content: append([]message.Block{message.Text(askJoin)}, texts...)}
	return s.ask(modeJoin, nil, nil, join, message.Message{Role: message.User, Source: ours, Content: []message.Block{message.Text(s.how())}})
}

// fitted cuts results, and when that is not enough every long text, until the
// nodes fit.
func (s *summarizer) fitted(nodes []llm.Node, most int64) []llm.Node {
	short := shortened(nodes, cutHead, cutTail, false)
	for head := 8 * cutHead; s.price(short) > most && head >= 16; head /= 2 {
		short = shortened(nodes, head, head/4, true)
	}
	return short
}

// pack puts exchanges together to parts of at most most. An exchange that is
// larger is a part by itself, with its texts cut.
func (s *summarizer) pack(nodes []llm.Node, most int64) (parts [][]llm.Node) {
	var now []llm.Node
	var sum int64
	for i, start := range s.src.starts {
		from, to := start-s.src.from, len(nodes)
		if i+1 < len(s.src.starts) {
			to = s.src.starts[i+1] - s.src.from
		}
		ex := nodes[from:to]
		price := s.price(ex)
		if price > most {
			ex = s.fitted(ex, most)
			price = s.price(ex)
		}
		if len(now) > 0 && sum+price > most {
			parts, now, sum = append(parts, now), nil, 0
		}
		now, sum = append(now, ex...), sum+price
	}
	if len(now) > 0 {
		parts = append(parts, now)
	}
	return parts
}

var ours = message.Source{Kind: pluginKind, Plugin: "outcrop", Form: "instruction"}

func (s *summarizer) how() string { return fmt.Sprintf(askHow, max(s.most*6/10, 40)) }

func (s *summarizer) instruction(merge bool) message.Message {
	ask := askStart
	if merge {
		ask = askMerge
	}
	text := fmt.Sprintf(ask, s.src.begins()) + "\n\n" + s.how()
	return message.Message{Role: message.User, Source: ours, Content: []message.Block{message.Text(text)}}
}

// price is what a request with these messages has, tools and system prompt
// included.
func (s *summarizer) price(nodes []llm.Node, extra ...message.Message) (n int64) {
	if len(extra) > 0 {
		system, tools := s.m.meter.Before()
		n += system + tools
	}
	for i := range nodes {
		n += s.m.meter.Count(nodes[i].Message)
	}
	for _, m := range extra {
		n += s.m.meter.Count(m)
	}
	return n
}

// ask makes a call, and one more when the answer was none.
func (s *summarizer) ask(mode string, nodes []llm.Node, raw []*outcrop.Message, extra ...message.Message) error {
	err := s.call(mode, nodes, raw, extra)
	var v *verdict
	if errors.As(err, &v) && v.again && s.op.calls < maxCalls && s.ctx.Err() == nil {
		extra = append(append([]message.Message(nil), extra...), message.Message{Role: message.User, Source: ours, Content: []message.Block{message.Text(askAgain)}})
		err = s.call(mode, nodes, raw, extra)
	}
	return err
}

// call makes one call: it is announced in the log, made, and its answer judged.
func (s *summarizer) call(mode string, nodes []llm.Node, raw []*outcrop.Message, extra []message.Message) error {
	if s.op.calls >= maxCalls {
		return refuse("summarize", s.m.session, CodeSummarizer, -1, fmt.Sprintf("%d calls were made in this pass", maxCalls), "")
	}
	given := append([]llm.Node(nil), nodes...)
	list := []byte{'['}
	for i := range extra {
		extra[i].ID = fmt.Sprintf("%s-ask-%d-%d", s.b.id, len(s.calls)+1, i+1)
		given = append(given, llm.Node{Seq: int64(s.src.prefix) + 1 + int64(i), Message: extra[i]})
		if i > 0 {
			list = append(list, ',')
		}
		list = extra[i].AppendJSON(list)
	}
	list = append(list, ']')
	through := s.src.msgs[len(s.src.msgs)-1].Seq
	if len(nodes) > 0 {
		through = outcrop.Seq(nodes[len(nodes)-1].Seq)
	}
	req := llm.Request{
		Config: s.src.config, System: s.src.system, Tools: s.src.tools, Messages: llm.Build(given),
		MaxOutput: s.most, Images: s.m.o.Images, Objects: s.m.o.Objects,
		Session: s.m.session, Purpose: llm.Compaction, Attempt: s.op.calls + 1,
	}
	if s.b.turn != nil {
		req.Turn, req.Step = *s.b.turn, s.m.meter.Step()
	}
	if err := llm.Check(req); err != nil {
		return err
	}
	s.op.calls++
	c := &took{purpose: string(llm.Compaction), turn: s.b.turn, call: len(s.calls) + 1, model: s.src.config.Provider + ":" + s.src.config.Model}
	s.calls = append(s.calls, c)
	err := s.ed.Edit(s.ctx, func(sess *outcrop.Session) error {
		_, err := sess.Append(outcrop.OutcropSummarizerCall{
			Purpose: c.purpose, Turn: c.turn, Call: c.call, Model: c.model,
			Prefix: s.src.prefix, Through: through, Mode: mode, Extra: list, Digest: digestOf(s.src.header, given, raw),
		})
		return err
	})
	if err == nil && s.m.o.Flush != nil {
		err = s.m.o.Flush(s.ctx)
	}
	if err != nil {
		return &unrecorded{err}
	}
	if c.call == 1 {
		s.m.notify(Compacting, fmt.Sprintf("condensing %d messages", len(s.src.msgs)-s.src.from))
	}
	asm, began, err := s.stream(req)
	c.began, c.usage = began, sensible(asm.Usage())
	if err != nil {
		return err
	}
	s.raw = asm.Blocks()
	s.text, err = s.read(&asm, extra)
	c.answered = err == nil
	return err
}

// unrecorded is a call that was not made because it could not be recorded: no
// fault of the summariser, and nothing to go on from.
type unrecorded struct{ err error }

func (u *unrecorded) Error() string { return "announce the summariser's call: " + u.err.Error() }
func (u *unrecorded) Unwrap() error { return u.err }

var errTimeout = errors.New("the summariser did not answer in time")

// stream reads an answer to its end. began says that something of it came, or
// may have. A provider that ignores its cancel, or panics, is left behind.
func (s *summarizer) stream(req llm.Request) (asm message.Assembler, began bool, err error) {
	type answer struct {
		asm   message.Assembler
		began bool
		err   error
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	done := make(chan answer, 1)
	provider := s.m.o.Provider // a call left behind never looks at what SetModel changes
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("the summariser's provider panicked: %v", p)
			}
			done <- a
		}()
		size := 0
		for chunk, err := range provider.Stream(ctx, req) {
			if err != nil {
				a.err = err
				return
			}
			// What a provider says when it is refused is no answer.
			a.began = a.began || chunk.Type != message.FinishChunk || chunk.Reason == nil || chunk.Reason.Failure == nil
			if size += 32 + len(chunk.Text); chunk.Block != nil {
				size += len(chunk.Block.Text) + len(chunk.Block.Arguments)
			}
			if size > maxAnswer {
				a.err = &verdict{msg: "the answer has no end"}
				return
			}
			a.asm.Add(chunk)
		}
	}()
	select {
	case a := <-done:
		if err := s.ctx.Err(); err != nil {
			return a.asm, a.began, err
		}
		return a.asm, a.began, a.err
	case <-s.ctx.Done():
		return asm, true, s.ctx.Err()
	case <-s.m.o.After(s.m.o.Timeout):
		cancel(errTimeout)
		return asm, true, errTimeout
	}
}

// maxAnswer is the longest answer that is read: bytes, and some for each chunk.
const maxAnswer = 4 << 20

// tooLong reports whether a call failed because its request was too long.
func tooLong(err error) bool {
	var f *message.Failure
	return errors.As(err, &f) && f.Code == message.CodeContextWindow
}
