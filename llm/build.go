package llm

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm/internal/growth"
	"github.com/outcrop-dev/outcrop/message"
)

// What Build says to a model in the place of something that is not there.
const (
	textNoResult   = "Error: no result of this call was recorded. It may have run completely, in part, or not at all; check before you repeat it."
	textNoOutput   = "(no output)"
	textContinue   = "Continue."
	textEmpty      = "(empty message)"
	textEarlier    = "(earlier messages are not shown)"
	textLostCall   = "[Result of tool call %s, which is no longer part of this conversation:]"
	textLateResult = "[Another result of tool call %s, which came later:]"
	textUnsendable = "[A block of the type %q stands here; it cannot be sent to a model.]"
)

// Build makes derived messages fit to send: Check accepts what it returns,
// whatever a valid log can hold. The log stays as it is; this is only what the
// model gets to see.
//
//   - Each call is followed directly by its one result, in the order of the
//     calls. A result belongs to the first call without one, of that id, in the
//     assistant message before it; what stood between call and results (a
//     steering message) goes behind them. A missing result is supplied. Any
//     other result, because an edit took its call off the surface or because it
//     came too late, becomes user text that says so.
//   - Ids of calls, and the names in them, get an acceptable form; an id that
//     does not match ^[A-Za-z0-9_-]{1,40}$, or was used before, is replaced by
//     c_ and 20 hexadecimal digits of the SHA-256 of "SEQ:INDEX", the seq of
//     the call's event and the place of its block. Arguments that are not a clean JSON object
//     are carried as text in the member _raw.
//   - Text is valid UTF-8 without NUL. Blank text is dropped, a result with
//     nothing in it says "(no output)", white space at the end of an assistant
//     message's text is cut, blocks that cannot be sent become a note. An
//     assistant message of which nothing is left, or nothing but reasoning, is
//     dropped; a user message says "(empty message)".
//   - The first message is from the user, and so is the last: where it is not,
//     a short one is put there. A surface of which nothing is left becomes that
//     one message.
//
// Reasoning and images stay blocks; encoders decide about them. The replay
// state of a changed message keeps step with its blocks, or is dropped.
//
// The messages given are not changed, but share memory with the result.
func Build(nodes []Node) []message.Message {
	var b Builder
	return b.Build(nodes)
}

// Node is a message as it is derived from the surface, with the seq of its
// event.
type Node struct {
	Seq int64
	message.Message
}

// Builder is Build for a session that grows: it remembers what it built, and
// when the nodes are those of the call before and some more, only these cost
// time. After an edit of the surface it goes on from the place of the edit.
//
// Nodes are the same when seq and content (the same memory) are. A slice that
// begins at the same element as the one before is taken for the same slice,
// grown: so neither content nor elements may be changed after they were given
// to it, and a list that an edit changed must be a copy. What it returns keeps
// that rule. The zero value is ready; one goroutine at a time.
type Builder struct {
	given  growth.Seen
	marks  []mark            // after each node that was given
	out    []message.Message // only ever appended to
	tokens int64             // the estimate for out
	total  int64             // and for what was returned last
	ids    callIDs
	calls  []sentCall        // in order
	seen   map[string]string // id in the log -> id sent, of each call so far
	open   []call            // the calls of the last assistant message while one lacks its result, in order
	behind []message.Message // what goes behind their results
}

// mark is how far a Builder was. It can go back to where nothing was open.
type mark struct {
	out, calls int
	tokens     int64
	open       bool
}

type sentCall struct{ logged, sent string }

type call struct {
	sentCall
	result *message.Message
}

// Build is the function Build.
func (b *Builder) Build(nodes []Node) []message.Message {
	same := b.given.Same(len(nodes), func(i int) (int64, *message.Message) { return nodes[i].Seq, &nodes[i].Message })
	if same < b.given.Len() {
		b.back(same)
	}
	if b.ids == nil {
		b.ids, b.seen = make(callIDs), make(map[string]string)
		b.out = make([]message.Message, 0, len(nodes)+2)
	}
	for i := b.given.Len(); i < len(nodes); i++ {
		if nodes[i].Role == message.Assistant {
			b.assistant(nodes[i])
		} else {
			b.user(nodes[i].Message)
		}
		b.given.Add(nodes[i].Seq, &nodes[i].Message)
		b.marks = append(b.marks, mark{len(b.out), len(b.calls), b.tokens, len(b.open) > 0})
	}
	out := append(slices.Clip(b.out), b.answers()...)
	if n := len(out); n == 0 || out[n-1].Role != message.User {
		out = append(out, note("outcrop-continue", textContinue))
	}
	b.total = b.tokens
	for i := len(b.out); i < len(out); i++ {
		b.total += EstimateTokens(out[i])
	}
	return out
}

// Tokens is the estimate for the messages that Build returned last, in tokens:
// the sum of EstimateTokens, kept while they grow.
func (b *Builder) Tokens() int64 { return b.total }

// back forgets the nodes from n on, and those before it back to where no call
// was open. Messages that were returned stay as they are.
func (b *Builder) back(n int) {
	for n > 0 && b.marks[n-1].open {
		n--
	}
	if n == 0 {
		*b = Builder{}
		return
	}
	m := b.marks[n-1]
	b.given.Cut(n)
	b.marks = b.marks[:n]
	b.out, b.tokens = slices.Clip(b.out[:m.out]), m.tokens
	b.calls = b.calls[:m.calls]
	clear(b.ids)
	clear(b.seen)
	for _, c := range b.calls {
		b.ids[c.sent], b.seen[c.logged] = true, c.sent
	}
	b.open, b.behind = b.open[:0], nil
}

// push appends a message for good.
func (b *Builder) push(m message.Message) {
	b.out = append(b.out, m)
	b.tokens += EstimateTokens(m)
}

// note is a user message of ours.
func note(id, text string) message.Message {
	return message.Message{
		ID:      id,
		Role:    message.User,
		Content: []message.Block{message.Text(text)},
		Source:  message.Source{Kind: "outcrop", Form: "note"},
	}
}

// answers are the results of the open calls, and what waits behind them.
func (b *Builder) answers() []message.Message {
	if len(b.open) == 0 {
		return b.behind
	}
	out := make([]message.Message, 0, len(b.open)+len(b.behind))
	for _, c := range b.open {
		if c.result != nil {
			out = append(out, *c.result)
			continue
		}
		out = append(out, message.Message{
			ID:      "outcrop-result-" + c.sent,
			Role:    message.User,
			Content: []message.Block{message.ToolResult(c.sent, true, message.Text(textNoResult))},
			Source:  message.FromTool(c.sent),
		})
	}
	return append(out, b.behind...)
}

// settle closes the last assistant message.
func (b *Builder) settle() {
	for _, m := range b.answers() {
		b.push(m)
	}
	b.open, b.behind = b.open[:0], nil
}

func (b *Builder) assistant(node Node) {
	m := node.Message
	var results []message.Block
	blocks := make([]message.Block, 0, len(m.Content))
	from := make([]int, 0, len(m.Content)) // where each one stood
	changed, sendable := false, false
	for i, c := range m.Content {
		was := c.Text
		switch c.Type {
		case message.ToolResultBlock:
			results = append(results, c)
			continue
		case message.TextBlock:
			if c = cleanText(c); blank(c.Text) {
				continue
			}
		case message.ReasoningBlock:
			c = cleanText(c)
		case message.ToolCallBlock:
		default:
			c, changed = unsendable(c), true
		}
		changed = changed || c.Text != was
		sendable = sendable || c.Type != message.ReasoningBlock
		blocks, from = append(blocks, c), append(from, i)
	}
	if sendable {
		b.settle()
		if len(b.out) == 0 {
			b.push(note("outcrop-earlier", textEarlier))
		}
		for i := range blocks {
			if c := blocks[i]; c.Type == message.ToolCallBlock {
				blocks[i] = b.call(c, node.Seq, from[i])
				changed = changed || blocks[i].ID != c.ID || blocks[i].Name != c.Name || blocks[i].Arguments != c.Arguments
			}
		}
		trimEnd(blocks)
		if changed || len(blocks) != len(m.Content) {
			m.Source = keepReplayState(m.Source, len(m.Content), from, changed)
		}
		b.push(message.Message{ID: m.ID, Role: message.Assistant, Content: blocks, Source: m.Source})
	}
	if results != nil {
		b.user(message.Message{ID: m.ID, Role: message.User, Content: results, Source: m.Source})
	}
}

// call makes one call fit and opens it.
func (b *Builder) call(c message.Block, seq int64, index int) message.Block {
	id := b.ids.take(c.ID, seq, index)
	made := sentCall{logged: c.ID, sent: id}
	b.calls = append(b.calls, made)
	b.open = append(b.open, call{sentCall: made})
	b.seen[c.ID] = id
	name, args := toolName(c.Name), arguments(c.Arguments)
	if id == c.ID && name == c.Name && args == c.Arguments {
		return c
	}
	return message.ToolCall(id, name, args)
}

func (b *Builder) user(m message.Message) {
	rest, results := make([]message.Block, 0, len(m.Content)), false
	for _, c := range m.Content {
		if c.Type != message.ToolResultBlock {
			rest = appendPlain(rest, c)
			continue
		}
		results = true
		i := slices.IndexFunc(b.open, func(o call) bool { return o.logged == c.ToolCallID && o.result == nil })
		if i < 0 {
			rest = append(rest, message.Text(b.lost(c.ToolCallID)))
			rest = append(rest, resultContent(c.Content)...)
			continue
		}
		content := resultContent(c.Content)
		if b.open[i].sent != c.ToolCallID || !sameBlocks(content, c.Content) {
			c = message.ToolResult(b.open[i].sent, c.IsError, content...)
		}
		b.open[i].result = &message.Message{ID: m.ID, Role: message.User, Content: []message.Block{c}, Source: m.Source}
	}
	if len(rest) == 0 && !results && len(m.Content) > 0 {
		// It keeps its place: what stands there must not change when more comes.
		rest = append(rest, message.Text(textEmpty))
	}
	if len(rest) > 0 {
		b.behind = append(b.behind, message.Message{ID: m.ID, Role: message.User, Content: rest, Source: m.Source})
	}
	// A complete set of results is final: what comes now goes behind it anyway.
	if !slices.ContainsFunc(b.open, func(o call) bool { return o.result == nil }) {
		b.settle()
	}
}

// lost says what a result is whose call does not stand directly before it.
func (b *Builder) lost(id string) string {
	if sent, ok := b.seen[id]; ok {
		return fmt.Sprintf(textLateResult, sent)
	}
	if !isCallID(id) {
		id = "(its id cannot be sent)"
	}
	return fmt.Sprintf(textLostCall, id)
}

// resultContent is the content of a result: text and images, never nothing.
func resultContent(blocks []message.Block) []message.Block {
	out := make([]message.Block, 0, len(blocks))
	for _, c := range blocks {
		out = appendPlain(out, c)
	}
	if len(out) == 0 {
		out = append(out, message.Text(textNoOutput))
	}
	return out
}

// appendPlain appends a block as user content can hold it.
func appendPlain(dst []message.Block, c message.Block) []message.Block {
	switch c.Type {
	case message.TextBlock:
		if c = cleanText(c); blank(c.Text) {
			return dst
		}
	case message.ImageBlock:
	case message.ToolResultBlock: // inside a result
		for _, in := range c.Content {
			dst = appendPlain(dst, in)
		}
		return dst
	default:
		c = unsendable(c)
	}
	return append(dst, c)
}

func cleanText(c message.Block) message.Block {
	if isClean(c.Text) {
		return c
	}
	return message.Block{Type: c.Type, Text: Clean(c.Text)}
}

func unsendable(c message.Block) message.Block {
	name := Clean(string(c.Type))
	if r := []rune(name); len(r) > 64 {
		name = string(r[:64])
	}
	return message.Text(fmt.Sprintf(textUnsendable, name))
}

// trimEnd cuts white space at the end of a message: a provider may take the
// message for a beginning to go on with, and refuses it then. Reasoning behind
// the text may not be sent and does not count.
func trimEnd(blocks []message.Block) {
	if n := ending(blocks); n >= 0 && blocks[n].Type == message.TextBlock {
		if t := strings.TrimRightFunc(blocks[n].Text, unicode.IsSpace); t != blocks[n].Text {
			blocks[n] = message.Text(t)
		}
	}
}

// ending is the last block of a reply that is no reasoning, -1 without one.
func ending(blocks []message.Block) int {
	n := len(blocks) - 1
	for n >= 0 && blocks[n].Type == message.ReasoningBlock {
		n--
	}
	return n
}

// sameBlocks reports whether a content list came through unchanged. appendPlain
// never changes a block without changing its text or type.
func sameBlocks(a, b []message.Block) bool {
	return slices.EqualFunc(a, b, func(x, y message.Block) bool { return x.Type == y.Type && x.Text == y.Text })
}

// keepReplayState fits a source to a message of which only the blocks that
// stood at the places in kept are left. A changed block no longer belongs to the
// state that a provider gave for it, so then the state goes.
func keepReplayState(s message.Source, n int, kept []int, changed bool) message.Source {
	if s.ReplayState == nil {
		return s
	}
	state := s.ReplayState
	s.ReplayState, s.Raw = nil, nil
	list := jsonwire.Get(state, "blocks")
	switch {
	case changed:
		return s
	case jsonwire.Kind(list) != '[':
		s.ReplayState = state
		return s
	}
	var states [][]byte
	for v := range jsonwire.Elements(list) {
		states = append(states, v)
	}
	if len(states) != n {
		return s
	}
	blocks := []byte{'['}
	for _, i := range kept {
		if len(blocks) > 1 {
			blocks = append(blocks, ',')
		}
		blocks = append(blocks, states[i]...)
	}
	blocks = append(blocks, ']')
	out := []byte{'{'}
	for k, v := range jsonwire.Members(state) {
		if jsonwire.KeyIs(k, "blocks") {
			v = blocks
		}
		out = jsonwire.AppendRawMember(out, string(k), v)
	}
	s.ReplayState = append(out, '}')
	return s
}
