package dsh

import (
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Node is a node of the surface with its price.
type Node struct {
	Seq    outcrop.Seq
	Tokens int64
}

// Baseline says where a measurement starts from.
type Baseline string

const (
	None      Baseline = "none"      // nothing was ever there
	Estimated Baseline = "estimated" // prices
	Reported  Baseline = "usage"     // the provider's usage
)

// Measurement is how large the next request would be, in tokens.
type Measurement struct {
	Baseline Baseline
	Tokens   int64 // of the baseline
	Delta    int64 // the surface now less that of the baseline
	Total    int64
	Surface  int64 // the price of all nodes
	Nodes    []Node
}

// Meter measures one log as it grows. Each event is looked at once. Where dsh's
// meter gives up for good (a message outside its step, a chunk that is not
// there), this one goes on from the next step that is in order. The zero value
// is ready; one goroutine at a time.
type Meter struct {
	next    outcrop.Seq
	header  []byte // in force, nil: none
	before  int64  // its price
	nodes   []Node
	surface int64

	inStep   bool
	turn     int64
	step     int64
	atStart  int64 // the surface at step/start
	anchored bool
	anchor   anchor
}

type anchor struct {
	header   []byte
	surface  int64
	baseline Baseline
	tokens   int64
}

// Measure takes in what is new in the log and measures.
func (m *Meter) Measure(log outcrop.Log) Measurement {
	for r := range log.Records(m.next) {
		if r.Run == nil {
			m.event(log, &r.Event)
		}
	}
	m.next = outcrop.Seq(log.Len())
	out := Measurement{Surface: m.surface, Nodes: slices.Clip(m.nodes)}
	switch {
	case m.anchored && m.sameHeader():
		out.Baseline, out.Tokens, out.Delta = m.anchor.baseline, m.anchor.tokens, m.surface-m.anchor.surface
	case m.header == nil && len(m.nodes) == 0:
		out.Baseline = None
	default:
		out.Baseline, out.Tokens = Estimated, m.before+m.surface
	}
	out.Total = max(0, out.Tokens+out.Delta)
	return out
}

func (m *Meter) sameHeader() bool {
	if m.header == nil || m.anchor.header == nil {
		return m.header == nil && m.anchor.header == nil
	}
	return outcrop.EqualHeaders(m.header, m.anchor.header)
}

func (m *Meter) event(log outcrop.Log, ev *outcrop.Event) {
	switch ev.Type {
	case outcrop.TypeRequestHeader:
		m.header = jsonwire.Get(ev.Data, "header")
		m.before = priceHeader(m.header)
	case outcrop.TypeStepStart:
		m.inStep, m.turn, m.step = true, number(ev.Data, "turn"), number(ev.Data, "step")
		m.atStart = m.surface
	case outcrop.TypeStepEnd:
		m.inStep = false
	}
	if !ev.Type.Surface() {
		return
	}
	content := contentOf(ev)
	price := PriceContent(content)
	m.place(ev, price)
	if ev.Type == outcrop.TypeAssistantMessage && m.inStep && number(ev.Data, "turn") == m.turn && number(ev.Data, "step") == m.step {
		m.setAnchor(log, ev, price)
	}
}

// place puts a priced node where its event says.
func (m *Meter) place(ev *outcrop.Event, price int64) {
	node := Node{ev.Seq, price}
	start, end, replace := ev.Op.Range()
	if !replace {
		m.nodes = append(m.nodes, node)
		m.surface += price
		return
	}
	at := func(seq outcrop.Seq) int {
		return slices.IndexFunc(m.nodes, func(n Node) bool { return n.Seq == seq })
	}
	from, to := at(start), at(end)
	if from < 0 || to < from {
		return
	}
	for _, n := range m.nodes[from : to+1] {
		m.surface -= n.Tokens
	}
	m.surface += price
	m.nodes = slices.Concat(m.nodes[:from], []Node{node}, m.nodes[to+1:])
}

// setAnchor takes a reply as the point from which the surface is measured: by
// the provider's usage when that is not less than the prices, where the output
// counts as it was streamed; else by the prices, with the message as logged.
func (m *Meter) setAnchor(log outcrop.Log, ev *outcrop.Event, price int64) {
	m.anchored = true
	u := message.ParseUsage(jsonwire.Get(ev.Data, "usage"))
	if u != nil && m.header != nil {
		total := u.InputTokens + u.OutputTokens
		for _, n := range []*int64{u.CacheReadTokens, u.CacheWriteTokens} {
			if n != nil {
				total += *n
			}
		}
		surface := m.atStart + streamPrice(log, ev, price)
		if total >= m.before+surface {
			m.anchor = anchor{m.header, surface, Reported, total}
			return
		}
	}
	m.anchor = anchor{m.header, m.atStart + price, Estimated, m.before + m.atStart + price}
}

// streamPrice is the price of what the provider sent, put together from the
// cited chunks; that of the message when nothing or something else is cited.
func streamPrice(log outcrop.Log, ev *outcrop.Event, price int64) int64 {
	if _, _, replace := ev.Op.Range(); replace || !ev.Sources.Known() {
		return price
	}
	var asm message.Assembler
	for seq := range ev.Sources.All() {
		if seq < 0 || seq >= ev.Seq {
			return price
		}
		src := log.At(seq)
		chunk, err := message.ParseChunk(jsonwire.Get(src.Data, "chunk"))
		if err != nil || src.Type != outcrop.TypeAssistantChunk {
			return price
		}
		asm.Add(chunk)
	}
	return PriceContent(asm.Blocks())
}

// contentOf is the content of a surface event's message.
func contentOf(ev *outcrop.Event) []message.Block {
	m := ev.Data
	if ev.Type == outcrop.TypeAssistantMessage || ev.Type == outcrop.TypeToolResult {
		m = jsonwire.Get(ev.Data, "message")
	}
	blocks, err := message.ParseBlocks(jsonwire.Get(m, "content"))
	if err != nil {
		return nil
	}
	return blocks
}

func number(data []byte, name string) int64 {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return n
}
