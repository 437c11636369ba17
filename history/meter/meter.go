// Package meter says how large the next request of a session will be, and
// knows of each node of the surface what history operations ask about it.
//
// # How it counts
//
// Each node has a price: what a Counter makes of its text, and 4 tokens around
// each block and each message. A price depends on the message alone, so a node
// is priced once; after a replace only the new nodes are.
//
// Where the provider said how many tokens a request had, that figure counts
// (it is the anchor), and only what came after that request is priced. The
// anchor belongs to the surface that the request was built from: the event
// outcrop/request names it, else it is what stands before the reply. When an
// edit changes that part of the surface the figure no longer holds; what is
// left of it is the ratio between figure and prices, with which the prices are
// multiplied until the next reply. A figure that cannot be right (none, less
// than a quarter of the price, more than the window) is passed over.
//
//	usage        the anchor holds
//	calibrated   prices, times the ratio of the last anchor of this model
//	estimate     prices alone
//
// # What it costs
//
// Update looks at each new event once and at each new node once; with nothing
// new it does nothing. After a replace it compares the surface before and
// after and adds up prices from the first difference on, which are a few
// nanoseconds a node. Used, Parts and Sum cost the same for any surface.
package meter

import (
	"math"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Counter counts the tokens of a text.
type Counter interface {
	// Name says what counts: "heuristic", "o200k_base".
	Name() string
	// Text is the number of tokens of s, 0 or more. Equal texts give equal
	// numbers.
	Text(s string) int64
}

// Heuristic is the fixed rule of package llm: a quarter of a token a code
// point, rounded up.
type Heuristic struct{}

// Name implements Counter.
func (Heuristic) Name() string { return "heuristic" }

// Text implements Counter.
func (Heuristic) Text(s string) int64 {
	return llm.EstimateText(s) - perBlock
}

const (
	perBlock   = 4
	perMessage = 4
)

// Basis says what a figure stands on.
type Basis string

const (
	Usage      Basis = "usage"
	Calibrated Basis = "calibrated"
	Estimate   Basis = "estimate"
)

// Parts is what the next request consists of, in tokens; they add up to Used.
type Parts struct {
	System, Tools      int64
	Messages           int64 // all but results and media
	Results            int64
	Media              int64
	Used               int64
	Basis              Basis
	Counter            string
	Anchor             outcrop.Seq // the reply whose usage counts, -1 without one
	OpenTurn, OpenStep int         // 0 when none is open
}

// Meter measures one session. The zero value is not ready, see New. One
// goroutine at a time.
type Meter struct {
	counter Counter
	window  int64

	seqs       []outcrop.Seq // of the surface, shared with it
	nodes      []*Node
	sums       []int64 // sums[i]: prices of the nodes before i
	generation int
	results    int64 // part of the prices
	media      int64
	pairs      pairing

	next     outcrop.Seq // the first event that was not looked at
	header   []byte
	system   int64
	tools    int64
	provider string
	model    string
	turn     int
	step     int
	turnFrom outcrop.Seq // where the open turn begins
	stepFrom outcrop.Seq // where the open step begins

	pins map[outcrop.Seq]bool

	request outcrop.Seq // prefix of the open step's last request, -1
	last    outcrop.Seq // prefix of the last request that was answered or announced, -1
	seen    []reply     // the newest replies with a usage that no Update has judged yet
	anchor  anchor
	ratio   float64 // of the last anchor of this model; 0: none yet
}

// reply is a reply with what its provider reported.
type reply struct {
	seq             outcrop.Seq
	prefix          outcrop.Seq
	tokens          int64 // of the request
	header          []byte
	before          int64 // price of what the header puts before the messages
	provider, model string
	edited          bool // what the request held was replaced since
}

// judged is how many replies of one Update are looked at for a usage that
// makes sense.
const judged = 4

// anchor is a reported figure and the part of the surface it belongs to.
type anchor struct {
	at     outcrop.Seq // the reply; -1: no anchor holds
	nodes  int         // that the request held
	tokens int64
	header []byte
}

// New makes a meter. A nil counter is Heuristic. window is the model's context
// window in tokens, 0 when it is unknown.
func New(c Counter, window int64) *Meter {
	if c == nil {
		c = Heuristic{}
	}
	return &Meter{counter: c, window: window, sums: []int64{0}, pins: map[outcrop.Seq]bool{}, turnFrom: -1, stepFrom: -1, request: -1, last: -1, anchor: anchor{at: -1}}
}

// SetWindow changes the window that figures are held against.
func (m *Meter) SetWindow(window int64) { m.window = window }

// Update takes in what is new. nodes is the surface of exactly this log, and
// generation how many replaces made it; both as a session's view has them.
func (m *Meter) Update(log outcrop.Log, nodes []outcrop.Seq, generation int) {
	for r := range log.Records(m.next) {
		if r.Run == nil {
			m.event(&r.Event)
		}
	}
	m.next = max(m.next, outcrop.Seq(log.Len()))
	m.surface(log, nodes, generation)
	m.settle()
}

func (m *Meter) event(ev *outcrop.Event) {
	switch ev.Type {
	case outcrop.TypeAssistantChunk:
		return
	case outcrop.TypeTurnStart:
		m.turn, m.step, m.turnFrom, m.stepFrom = number(ev.Data, "turn"), 0, ev.Seq, -1
	case outcrop.TypeTurnEnd:
		m.turn, m.step, m.turnFrom, m.stepFrom = 0, 0, -1, -1
	case outcrop.TypeStepStart:
		m.step, m.stepFrom, m.request = number(ev.Data, "step"), ev.Seq, -1
	case outcrop.TypeStepEnd:
		m.step, m.stepFrom = 0, -1
	case outcrop.TypeRequestHeader:
		m.setHeader(jsonwire.Get(ev.Data, "header"))
	case outcrop.TypeOutcropRequest:
		if n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "prefix")); ok && outcrop.Seq(n) < ev.Seq {
			m.request, m.last = outcrop.Seq(n), outcrop.Seq(n)
		}
	case outcrop.TypeAssistantMessage:
		if ev.Op.IsAppend() {
			m.reply(ev)
		}
	case outcrop.TypeOutcropPin:
		if n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "node")); ok {
			if string(jsonwire.Get(ev.Data, "pinned")) == "true" {
				m.pins[outcrop.Seq(n)] = true
			} else {
				delete(m.pins, outcrop.Seq(n))
			}
		}
	}
	if start, _, replace := ev.Op.Range(); replace {
		for i := range m.seen {
			m.seen[i].edited = m.seen[i].edited || start <= m.seen[i].prefix
		}
	}
}

func (m *Meter) setHeader(raw []byte) {
	if m.header != nil && outcrop.EqualHeaders(m.header, raw) {
		return
	}
	config := jsonwire.Get(raw, "config")
	provider, _ := jsonwire.Text(jsonwire.Get(config, "provider"))
	model, _ := jsonwire.Text(jsonwire.Get(config, "model"))
	if provider != m.provider || model != m.model {
		m.ratio = 0
	}
	m.header, m.provider, m.model = raw, provider, model
	m.system, m.tools = 0, 0
	if s, ok := jsonwire.Text(jsonwire.Get(raw, "system")); ok && s != "" {
		m.system = m.counter.Text(s) + perBlock
	}
	tools := jsonwire.Get(raw, "tools")
	for range jsonwire.Elements(tools) {
		m.tools = m.counter.Text(string(tools)) + perBlock
		break
	}
}

// reply keeps what a provider reported. A log that announces no requests built
// each from what stood before the first chunk of its reply.
func (m *Meter) reply(ev *outcrop.Event) {
	prefix := m.request
	if prefix < 0 {
		prefix = ev.Seq - 1
		for src := range ev.Sources.All() {
			prefix = min(prefix, src-1)
		}
		m.last = prefix
	}
	u := message.ParseUsage(jsonwire.Get(ev.Data, "usage"))
	if u == nil {
		return
	}
	if tokens, ok := PromptTokens(u); ok {
		if len(m.seen) == judged {
			m.seen = append(m.seen[:0], m.seen[1:]...)
		}
		m.seen = append(m.seen, reply{seq: ev.Seq, prefix: prefix, tokens: tokens,
			header: m.header, before: m.system + m.tools, provider: m.provider, model: m.model})
	}
}

// PromptTokens is how many tokens a request had by its usage; ok is false when
// the usage makes no sense.
func PromptTokens(u *message.Usage) (n int64, ok bool) {
	n = u.InputTokens
	ok = n >= 0
	for _, part := range []*int64{u.CacheReadTokens, u.CacheWriteTokens} {
		if part != nil {
			ok = ok && *part >= 0 && n <= jsonwire.MaxSafe
			n += *part
		}
	}
	return n, ok && n > 0 && n <= jsonwire.MaxSafe
}

// settle anchors the newest reply whose usage makes sense, when the surface
// still begins with what its request held.
func (m *Meter) settle() {
	seen := m.seen
	m.seen = m.seen[:0]
	for i := len(seen) - 1; i >= 0; i-- {
		r := &seen[i]
		if r.edited {
			return
		}
		held := m.heldBy(r.prefix)
		price := r.before + m.sums[held]
		if r.tokens < price/4 || m.window > 0 && r.tokens > m.window {
			continue
		}
		m.anchor = anchor{at: r.seq, nodes: held, tokens: r.tokens, header: r.header}
		if price > 0 && r.provider == m.provider && r.model == m.model {
			m.ratio = min(max(float64(r.tokens)/float64(price), 0.25), 4)
		}
		return
	}
}

// heldBy is how many nodes at the head of the surface a request with this
// prefix held. What was appended later stands at the tail.
func (m *Meter) heldBy(prefix outcrop.Seq) int {
	n := len(m.seqs)
	for n > 0 && m.seqs[n-1] > prefix {
		n--
	}
	return n
}

// Used is how many tokens the next request will hold.
func (m *Meter) Used() int64 {
	used, _ := m.used()
	return used
}

func (m *Meter) used() (int64, Basis) {
	all := m.sums[len(m.nodes)]
	if m.anchor.at >= 0 && m.sameHeader() {
		return m.anchor.tokens + m.Scale(all-m.sums[m.anchor.nodes]), Usage
	}
	if m.ratio > 0 {
		return m.Scale(m.system + m.tools + all), Calibrated
	}
	return m.system + m.tools + all, Estimate
}

// UsedWithout is what Used will say when an edit at position from has taken a
// price away.
func (m *Meter) UsedWithout(from int, price int64) int64 {
	left := m.sums[len(m.nodes)] - price
	switch {
	case m.anchor.at >= 0 && m.sameHeader() && from >= m.anchor.nodes:
		return m.anchor.tokens + m.Scale(left-m.sums[m.anchor.nodes])
	case m.ratio > 0:
		return m.Scale(m.system + m.tools + left)
	}
	return m.system + m.tools + left
}

// Provider is that of the request header in force, "" without one.
func (m *Meter) Provider() string { return m.provider }

func (m *Meter) sameHeader() bool {
	return len(m.header) == len(m.anchor.header) && (len(m.header) == 0 || &m.header[0] == &m.anchor.header[0])
}

// Scale turns a price into tokens of the session's model.
func (m *Meter) Scale(price int64) int64 {
	if m.ratio == 0 {
		return price
	}
	return int64(math.Ceil(float64(price) * m.ratio))
}

// Unscale turns tokens of the session's model into a price, rounded down.
func (m *Meter) Unscale(tokens int64) int64 {
	if m.ratio == 0 {
		return tokens
	}
	return int64(float64(tokens) / m.ratio)
}

// Parts splits Used. The parts have the proportions of their prices.
func (m *Meter) Parts() Parts {
	p := Parts{Counter: m.counter.Name(), Anchor: m.anchor.at, OpenTurn: m.turn, OpenStep: m.step}
	p.Used, p.Basis = m.used()
	if p.Basis != Usage {
		p.Anchor = -1
	}
	all := m.system + m.tools + m.sums[len(m.nodes)]
	if all == 0 {
		p.Messages = p.Used
		return p
	}
	share := func(price int64) int64 { return int64(float64(price) / float64(all) * float64(p.Used)) }
	p.System, p.Tools, p.Results, p.Media = share(m.system), share(m.tools), share(m.results), share(m.media)
	p.Messages = p.Used - p.System - p.Tools - p.Results - p.Media
	return p
}

// Len is the number of nodes.
func (m *Meter) Len() int { return len(m.nodes) }

// Node is the node at position i.
func (m *Meter) Node(i int) *Node { return m.nodes[i] }

// Sum is the price of the nodes from one position up to another.
func (m *Meter) Sum(from, to int) int64 { return m.sums[to] - m.sums[from] }

// Pins are the nodes that outcrop/pin names, whether they are on the surface or
// not. Read it only.
func (m *Meter) Pins() map[outcrop.Seq]bool { return m.pins }

// Index is the position of a node, -1 when it is not on the surface.
func (m *Meter) Index(seq outcrop.Seq) int {
	for i, s := range m.seqs {
		if s == seq {
			return i
		}
	}
	return -1
}

// Seqs is the surface. Read it only.
func (m *Meter) Seqs() []outcrop.Seq { return m.seqs }

// OpenStep is the seq from which on messages belong to the open step; -1 when
// no step is open.
func (m *Meter) OpenStep() outcrop.Seq { return m.stepFrom }

// OpenTurn is the seq of the open turn's start; -1 when no turn is open.
func (m *Meter) OpenTurn() outcrop.Seq { return m.turnFrom }

// Turn is the open turn, 0 when none is.
func (m *Meter) Turn() int { return m.turn }

// Step is the open step, 0 when none is.
func (m *Meter) Step() int { return m.step }

// Before is the price of what stands before the messages: system prompt and
// tools.
func (m *Meter) Before() (system, tools int64) { return m.system, m.tools }

// Cached is the price of the nodes from position i on that the last request
// held: what an edit there puts out of a provider's cache.
func (m *Meter) Cached(i int) (n int64) {
	if m.last < 0 {
		return 0
	}
	end := m.heldBy(m.last)
	if i < end {
		n = m.Sum(i, end)
	}
	// Behind a replace that is newer than the request, older nodes go on.
	for ; i < end; i++ {
		if m.seqs[i] > m.last {
			n -= m.nodes[i].Tokens
		}
	}
	return n
}

// Count is the counter's number for content that is no node yet: a message.
func (m *Meter) Count(msg message.Message) int64 {
	n, _ := price(m.counter, msg.Content)
	if len(msg.Content) > 0 {
		n += perMessage
	}
	return n
}

func number(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(n)
}
