// Package script is a provider that plays written replies: for demonstrations,
// tests and bug reports. Its name, script, shows wherever a model's name does.
//
// # Script files, version 1
//
// UTF-8 text of one JSON object a line. Blank lines and lines that start with
// # are skipped. Anything unknown, repeated or wrong is an error with file and
// line, found before the first reply is played.
//
// The first line may be the header; these are its defaults, except that model
// is the file's base name:
//
//	{"script":1,"model":"hello","window":32000,"maxOutput":4096,"piece":12,"delayMs":0,"end":"error"}
//
// window is the most tokens that a request may hold, as llm.EstimateRequest
// counts them, 0 for no limit. piece is the number of code points in a delta.
//
// Every other line is one reply to one model call:
//
//	reasoning, text   strings; blocks come in the order reasoning, text, tools
//	tools             [{"name":"read","args":{...}}]; "raw":"{\"pa" in the place of args
//	                  for broken arguments; id is optional (call_TURN_STEP_N, N from 1)
//	blocks            instead of these three: content blocks as a log has them
//	chunks            instead of all of these: stream chunks as a log has them, played
//	                  as they are, without a usage or finish of the script's own
//	finish            stop, tool-calls or max-tokens; else by whether there are calls
//	usage             {"input","cacheRead","cacheWrite","output","reasoning"}; else the
//	                  estimate, with as cacheRead the leading messages that equal those of
//	                  the request before, if system prompt and tools are the same too
//	error             {"code":"RATE_LIMIT","message":"...","status":429,"retryAfterMs":50}
//	cut               eof, reset (both TRANSPORT) or hang (until the call is cancelled)
//	after             deltas that come before the error or the cut, 0 by default
//	delayMs           wait before the reply starts
//	when              {"purpose":"turn","turn":2,"step":1,"attempt":1,"contains":"..."}, each
//	                  optional: which call the reply is for; contains is text in the last
//	                  message; purpose is turn (the default), compaction or title
//	expect            {"contains":"...","absent":"...","tools":["read"],"messages":7}: what
//	                  must hold of the request: text that it has or has not anywhere, tools
//	                  that it offers (an empty list: none), how many messages; a miss fails
//	                  the call with the code SCRIPT_EXPECT
//
// A failure in chunks (a finish of the kind error or aborted) is returned as an
// error, as every provider does.
//
// # Which reply
//
// The first unused reply whose when names a turn or a step and fits; else the
// first unused one without turn and step that fits. Each is used once. When
// none is left, end decides: error (the code SCRIPT_END), last (that purpose's
// last reply again) or stop (the text "(end of script)").
//
// Every request passes llm.Check first, then the window; a request refused by
// them uses no reply.
package script

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Provider is the name under which scripted models are recorded.
const Provider = "script"

// Failure codes of a scripted model's own.
const (
	CodeEnd    = "SCRIPT_END"    // no reply is left for the call
	CodeExpect = "SCRIPT_EXPECT" // the request is not what the script expects
)

// Script is a parsed script file. It does not change.
type Script struct {
	Path    string // as given to Parse
	Header  Header
	Replies []Reply
}

// Header is what a script says about its model.
type Header struct {
	Model     string
	Window    int64 // tokens, 0: no limit
	MaxOutput int64 // tokens
	Piece     int   // code points a delta; 0 counts as 12
	Delay     time.Duration
	End       End
}

// End says what happens when no reply is left.
type End string

const (
	EndError End = "error" // also the zero value
	EndLast  End = "last"
	EndStop  End = "stop"
)

const defaultPiece = 12

// Model is a provider that plays a script, or what a function answers. Set
// Script or Reply before the first call and not afterwards; with both, Reply
// answers and Script gives the header. It is safe for use by several
// goroutines.
type Model struct {
	Script *Script
	// Reply, when set, answers each call, for long generated runs. When is
	// ignored in what it returns, and Delay is its own.
	Reply func(llm.Request) Reply
	// Sleep waits for d or until ctx is done; nil waits by the real clock.
	Sleep func(ctx context.Context, d time.Duration)

	mu    sync.Mutex
	used  []bool              // of Script.Replies
	last  map[llm.Purpose]int // the reply used last
	check llm.Checker
	prior llm.Request // the request before, for the cache estimate
	price priced      // its estimate
}

// priced is the estimate for a request in parts.
type priced struct {
	header   int64
	messages []int64
	total    int64
	cached   int64 // tokens of the leading messages that the request before had
}

var _ llm.Provider = (*Model)(nil)

// Name implements llm.Provider.
func (m *Model) Name() string { return Provider }

func (m *Model) header() Header {
	if m.Script == nil {
		return Header{}
	}
	return m.Script.Header
}

// Stream implements llm.Provider.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	return func(yield func(message.Chunk, error) bool) {
		if req.Purpose == "" {
			req.Purpose = llm.Turn
		}
		price, err := m.admit(req)
		if err != nil {
			yield(message.Chunk{}, err)
			return
		}
		reply, err := m.pick(req)
		if err != nil {
			yield(message.Chunk{}, err)
			return
		}
		p := player{ctx: ctx, yield: yield, reply: &reply, piece: m.header().Piece, turn: req.Turn, step: req.Step}
		if p.piece <= 0 {
			p.piece = defaultPiece
		}
		if reply.Delay > 0 {
			m.sleep(ctx, reply.Delay)
		}
		p.play(price)
	}
}

func (m *Model) sleep(ctx context.Context, d time.Duration) {
	if m.Sleep != nil {
		m.Sleep(ctx, d)
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// admit checks the request, prices it and holds it against the window. What the
// request before already held is not looked at again.
func (m *Model) admit(req llm.Request) (priced, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check.Check(req); err != nil {
		return priced{}, err
	}
	same := 0
	for same < min(len(req.Messages), len(m.prior.Messages)) && equalMessage(&req.Messages[same], &m.prior.Messages[same]) {
		same++
	}
	p := priced{messages: m.price.messages[:same]}
	if same < len(m.price.messages) {
		p.messages = slices.Clip(p.messages)
	}
	for _, n := range p.messages {
		p.total += n
	}
	if req.System == m.prior.System && slices.EqualFunc(req.Tools, m.prior.Tools, equalTool) {
		p.cached = p.total
		p.header = m.price.header
	} else {
		p.header = llm.EstimateHeader(req.System, req.Tools)
	}
	for _, msg := range req.Messages[same:] {
		n := llm.EstimateTokens(msg)
		p.messages = append(p.messages, n)
		p.total += n
	}
	p.total += p.header
	if h := m.header(); h.Window > 0 && p.total > h.Window {
		return p, &message.Failure{
			Code:    message.CodeContextWindow,
			Message: fmt.Sprintf("%s: context too long (%s of %s)", Provider, llm.Thousands(p.total), llm.Thousands(h.Window)),
		}
	}
	m.prior, m.price = req, p
	return p, nil
}

// pick chooses the reply for a request and checks what it expects.
func (m *Model) pick(req llm.Request) (Reply, error) {
	if m.Reply != nil {
		r := m.Reply(req)
		return r, r.Expect.check(req, "reply")
	}
	if m.Script == nil {
		return Reply{}, &message.Failure{Code: CodeEnd, Message: Provider + ": no script was given"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.choose(Attempt{Turn: req.Turn, Step: req.Step, Attempt: req.Attempt, Purpose: req.Purpose}, func(text string) bool {
		return messageContains(&req.Messages[len(req.Messages)-1], text)
	})
	file := filepath.Base(m.Script.Path)
	if i < 0 {
		again, ok := m.last[req.Purpose]
		switch {
		case m.Script.Header.End == EndStop:
			return Reply{Text: "(end of script)"}, nil
		case m.Script.Header.End == EndLast && ok:
			i = again
		default:
			return Reply{}, &message.Failure{Code: CodeEnd, Message: fmt.Sprintf("%s: no reply for turn %d step %d (purpose %s); %d of %d used",
				file, req.Turn, req.Step, req.Purpose, m.countUsed(), len(m.Script.Replies))}
		}
	}
	m.use(i)
	r := m.Script.Replies[i]
	return r, r.Expect.check(req, fmt.Sprintf("%s:%d", file, r.Line))
}

func (m *Model) countUsed() int {
	n := 0
	for _, u := range m.used {
		if u {
			n++
		}
	}
	return n
}

func equalMessage(a, b *message.Message) bool {
	return a.Role == b.Role && equalBlocks(a.Content, b.Content)
}

func equalBlocks(a, b []message.Block) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) > 0 && &a[0] == &b[0] {
		return true
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Type != y.Type || x.Text != y.Text || x.ID != y.ID || x.Name != y.Name || x.Arguments != y.Arguments ||
			x.ToolCallID != y.ToolCallID || x.IsError != y.IsError || string(x.Attachment) != string(y.Attachment) ||
			!equalBlocks(x.Content, y.Content) {
			return false
		}
	}
	return true
}

func equalTool(a, b llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && string(a.Parameters) == string(b.Parameters)
}
