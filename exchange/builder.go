package exchange

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

var (
	// errStopped: nobody takes more records.
	errStopped = errors.New("the log is not wanted any further")
	// errSeeded: the inherited events were counted, which was all.
	errSeeded = errors.New("the seed is counted")
)

// Prompt is what a person wrote to the model.
type Prompt struct {
	ID      string // "": made from the seq
	Time    int64  // Unix milliseconds; 0: that of the event before
	Content []message.Block
	// Steer says that it came while the model was at work and did not begin a
	// turn of its own.
	Steer bool
}

// Context is what the program told the model by itself: instructions, facts,
// reminders.
type Context struct {
	ID      string
	Time    int64
	Content []message.Block
	Form    string // instructions, snapshot, notice; "": notice
}

// Model is what answers from now on. What is zero was not recorded.
type Model struct {
	Provider string
	Model    string
	Window   int64 // tokens
	Effort   string
	System   string
	Tools    []llm.Tool
}

// Reply is one answer of the model: one step.
type Reply struct {
	ID   string
	Time int64
	// Provider and Model; "": those of Builder.Model.
	Provider, Model string
	Content         []message.Block
	// Replay is what the provider wants back with the reply: see ThinkingReplay.
	Replay json.RawMessage
	Usage  *message.Usage
	// Interrupted says that it was cut off by the person.
	Interrupted bool
	// MaxTokens says that it was cut off by its limit.
	MaxTokens bool
}

// Result answers a call of the last reply.
type Result struct {
	CallID  string
	ID      string // of the message; "": made from the seq
	Time    int64
	IsError bool
	Content []message.Block
	Meta    json.RawMessage // opaque, for people; nil: none
}

// call is a tool call of the open step.
type call struct {
	id   string // as it was given
	as   string // as it stands in the log
	name string
	seq  outcrop.Seq // of its tool/call
	done bool
	at   int // of its block
}

// node is a message on the surface.
type node struct {
	seq    outcrop.Seq
	id     string // as it was given
	turn   int    // that it began, 0: none
	result bool   // it answers a call before it
}

// waiting is a message that came while results were missing.
type waiting struct {
	prompt  *Prompt
	context *Context
	line    int64
}

// Builder makes the log of an own session out of a foreign history that is
// given to it in order. Turns and steps are its business: a prompt begins a
// turn, a reply is a step, and each call gets exactly one result before its
// step ends. What a history lacks is supplied, what it has too much is kept as
// text, and the report says both.
//
// The same history always gives the same bytes. What the builder holds is the
// surface and the open step.
//
// The error of a method is to be returned from Session.Feed as it is.
type Builder struct {
	ctx     context.Context
	enc     *outcrop.Encoder
	yield   func(outcrop.Record, error) bool
	report  *Report
	objects store.Objects
	err     error // of an earlier call

	model   Model
	header  string // the request header that was logged last
	context outcrop.RequestContext

	time     int64
	line     int64
	items    int64
	turns    int
	messages int64

	turn      int  // the open one, 0 none
	step      int  // the last one of the open turn
	inStep    bool // it is open
	replied   bool // the last step has its reply, and nothing came behind it
	started   bool // the open turn has a reply
	maxTokens bool // a reply of the open turn was cut off
	calls     []call
	held      []waiting
	nodes     []node

	cuts      []cut
	mapped    int64
	dropped   int64
	counting  bool // stop at Seed
	inherited int64
}

// cut is where an earlier import ended: its mark.
type cut struct {
	items int64
	data  json.RawMessage
}

func newBuilder(ctx context.Context, s *Session, h outcrop.Header, o Options, yield func(outcrop.Record, error) bool) (*Builder, error) {
	enc, err := outcrop.NewEncoder(h, nil)
	if err != nil {
		return nil, err
	}
	return &Builder{ctx: ctx, enc: enc, yield: yield, report: o.Report, objects: o.Objects, time: h.CreatedAt, cuts: o.cuts}, nil
}

// Report hears what Feed itself maps or drops; it may be nil.
func (b *Builder) Report() *Report { return b.report }

// Context is for what Feed does that may take long.
func (b *Builder) Context() context.Context { return b.ctx }

// At says which line of the source, from 1, what follows came from.
func (b *Builder) At(line int64) { b.line = line }

// Turns is the number of turns so far.
func (b *Builder) Turns() int { return b.turns }

// Mapped counts one thing that stands in the log in another shape.
func (b *Builder) Mapped(kind, how string) {
	b.mapped++
	b.report.Mapped(kind, how, b.line)
}

// Dropped counts one thing that does not stand in the log.
func (b *Builder) Dropped(kind, why string) {
	b.dropped++
	b.report.Dropped(kind, why, b.line)
}

// item begins a piece of the history.
func (b *Builder) item(time int64) error {
	if b.err != nil {
		return b.err
	}
	if len(b.cuts) > 0 && b.items == b.cuts[0].items {
		c := b.cuts[0]
		b.cuts = b.cuts[1:]
		if err := b.end(c.data); err != nil {
			return err
		}
	}
	if b.items++; b.items%256 == 0 {
		if err := b.ctx.Err(); err != nil {
			b.err = err
			return err
		}
	}
	if time != 0 {
		b.time = time
	}
	return nil
}

// add appends one event.
func (b *Builder) add(c outcrop.Candidate) (outcrop.Seq, error) {
	if b.err != nil {
		return -1, b.err
	}
	ev, err := b.enc.Next(c, b.time)
	if err != nil {
		b.err = err
		return -1, err
	}
	if !b.yield(outcrop.Record{Event: ev}, nil) {
		b.err = errStopped
		return -1, b.err
	}
	return ev.Seq, nil
}

func (b *Builder) log(p outcrop.LogPayload) error {
	_, err := b.add(outcrop.LogCandidate(p))
	return err
}

// place appends a message at the end of the surface.
func (b *Builder) place(p outcrop.SurfacePayload, id string, sources outcrop.Sources) error {
	seq, err := b.add(outcrop.SurfaceCandidate(p, outcrop.Tail, sources))
	if err == nil {
		b.messages++
		_, result := p.(outcrop.ToolResult)
		b.nodes = append(b.nodes, node{seq: seq, id: id, result: result})
	}
	return err
}

// Model says what answers from now on.
func (b *Builder) Model(m Model) { b.model = m }

// Prompt adds what a person wrote. It begins a turn, unless it steers the one
// that is open or that one has no reply yet.
func (b *Builder) Prompt(p Prompt) error {
	if err := b.item(p.Time); err != nil {
		return err
	}
	b.report.Kept("prompt")
	if b.pending() > 0 {
		// Results may still come; a message between a call and its result
		// belongs behind them.
		b.held = append(b.held, waiting{prompt: &p, line: b.line})
		return nil
	}
	return b.prompt(&p)
}

func (b *Builder) prompt(p *Prompt) error {
	if b.turn > 0 && b.started && !p.Steer {
		if err := b.closeTurn(nil); err != nil {
			return err
		}
	}
	if err := b.openStep(); err != nil {
		return err
	}
	began := b.turn
	if b.started {
		began = 0
	}
	err := b.place(outcrop.UserMessage{Message: message.Message{ID: p.ID, Role: message.User, Content: someContent(p.Content), Source: message.FromUser}}, p.ID, outcrop.NoSources)
	if err == nil {
		b.nodes[len(b.nodes)-1].turn = began
	}
	return err
}

// AddContext adds what the program told the model.
func (b *Builder) AddContext(c Context) error {
	if err := b.item(c.Time); err != nil {
		return err
	}
	b.report.Kept("context")
	if b.pending() > 0 {
		b.held = append(b.held, waiting{context: &c, line: b.line})
		return nil
	}
	return b.contextMessage(&c)
}

func (b *Builder) contextMessage(c *Context) error {
	form := c.Form
	if form == "" {
		form = "notice"
	}
	return b.place(outcrop.ContextMessage{Message: message.Message{ID: c.ID, Role: message.User, Content: someContent(c.Content),
		Source: message.Source{Kind: "outcrop", Form: form}}}, c.ID, outcrop.NoSources)
}

// someContent is a content list that is never null.
func someContent(b []message.Block) []message.Block {
	if b == nil {
		return []message.Block{}
	}
	return b
}

// release adds the messages that waited for results. When these came, the
// prompts among them steered the turn.
func (b *Builder) release(steer bool) error {
	held := b.held
	b.held = nil
	for _, w := range held {
		b.line = w.line
		var err error
		if w.prompt != nil {
			w.prompt.Steer = w.prompt.Steer || steer
			err = b.prompt(w.prompt)
		} else {
			err = b.contextMessage(w.context)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Reply adds an answer of the model, with its calls. Calls of an earlier reply
// that have no result yet get one that says so.
func (b *Builder) Reply(r Reply) error {
	if err := b.item(r.Time); err != nil {
		return err
	}
	if err := b.settle(); err != nil {
		return err
	}
	if b.turn == 0 {
		b.Mapped("reply without a prompt", "a turn of its own")
	}
	if err := b.openStep(); err != nil {
		return err
	}
	provider, model := r.Provider, r.Model
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
	if err := b.request(provider, model); err != nil {
		return err
	}
	content, calls := b.callsOf(r.Content)
	src := message.FromModel(provider, model)
	src.ReplayState = r.Replay
	if err := b.place(outcrop.AssistantMessage{Turn: b.turn, Step: b.step, Interrupted: r.Interrupted, Usage: r.Usage,
		Message: message.Message{ID: r.ID, Role: message.Assistant, Content: someContent(content), Source: src}}, r.ID, outcrop.NoSources); err != nil {
		return err
	}
	b.report.Kept("reply")
	if r.Usage != nil {
		b.report.Kept("usage")
	}
	b.replied, b.started = true, true
	b.maxTokens = b.maxTokens || r.MaxTokens
	b.calls = calls
	for i := range calls {
		seq, err := b.add(outcrop.LogCandidate(outcrop.ToolCall{Turn: b.turn, Step: b.step, CallID: calls[i].as, Name: calls[i].name, Arguments: calls[i].arguments(content)}))
		if err != nil {
			return err
		}
		calls[i].seq = seq
	}
	return nil
}

// Rewind takes the last turns of the surface away, as a person did who went
// back. What they held stays in the log.
func (b *Builder) Rewind(time int64, turns int) error {
	if err := b.item(time); err != nil {
		return err
	}
	if err := b.closeTurn(nil); err != nil {
		return err
	}
	at := len(b.nodes)
	for i := len(b.nodes) - 1; i >= 0 && turns > 0; i-- {
		if b.nodes[i].turn > 0 {
			turns--
			at = i
		}
	}
	if at == len(b.nodes) {
		b.Dropped("rewind", "there is no turn to take back")
		return nil
	}
	to := outcrop.Seq(0)
	if at > 0 {
		to = b.nodes[at-1].seq
	}
	first := b.enc.Len()
	if err := b.log(outcrop.OutcropRewind{To: to}); err != nil {
		return err
	}
	gone := b.nodes[at:]
	sources := []outcrop.Seq{first}
	for _, n := range gone {
		sources = append(sources, n.seq)
	}
	m := message.Message{Role: message.User, Content: []message.Block{}, Source: message.Source{Kind: "outcrop", Form: "rewind"}}
	seq, err := b.add(outcrop.SurfaceCandidate(outcrop.ContextMessage{Message: m},
		outcrop.Replace(gone[0].seq, gone[len(gone)-1].seq), outcrop.SourcesOf(sources...)))
	if err != nil {
		return err
	}
	b.nodes = append(b.nodes[:at], node{seq: seq})
	b.report.Kept("rewind")
	return nil
}

// Title gives the session a title; the last one counts.
func (b *Builder) Title(time int64, title string) error {
	if title == "" {
		return nil
	}
	if err := b.item(time); err != nil {
		return err
	}
	b.report.Kept("title")
	return b.log(outcrop.SessionTitle{Title: title, MessageSeqs: []outcrop.Seq{}, Source: "import"})
}

// Seed says that everything so far was inherited from Session.Parent. The turn
// that is open is closed behind it.
func (b *Builder) Seed(time int64) error {
	if err := b.item(time); err != nil {
		return err
	}
	b.inherited = int64(b.enc.Len())
	if b.counting {
		b.err = errSeeded
		return b.err
	}
	return b.endSeed()
}

// ParentsSeed says that everything so far was inherited by Session.Parent
// itself, from its own parent: the same mark, for a fork of a fork. Seed follows.
func (b *Builder) ParentsSeed(time int64) error {
	if err := b.item(time); err != nil {
		return err
	}
	return b.endSeed()
}

func (b *Builder) endSeed() error {
	if err := b.closeTurn(nil); err != nil {
		return err
	}
	if !b.yield(outcrop.Record{Event: b.enc.EndSeed(b.time)}, nil) {
		b.err = errStopped
	}
	return b.err
}
