package history

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/cut"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// snapshot is the conversation as its next request would have it. All requests
// of a pass are made from one snapshot, whatever the pass has edited meanwhile:
// so each of them begins as the conversation's last request did and is found in
// the provider's cache.
type snapshot struct {
	header json.RawMessage
	config llm.Config
	system string
	tools  []llm.Tool
	prefix outcrop.Seq // last event that it is made from

	seqs   []outcrop.Seq // of the surface
	ex     []meter.Exchange
	msgs   []*outcrop.Message // of the nodes that derive to something
	parsed []llm.Node         // the same
	at     []int              // their positions on the surface
}

// source is what the requests about one range are made from: a snapshot up to
// the end of the range.
type source struct {
	*snapshot
	msgs   []*outcrop.Message
	parsed []llm.Node
	from   int   // the first of the range
	starts []int // where the exchanges of the range begin
	merge  bool  // the range consists of checkpoints
}

// take makes the snapshot of a session, on the appender.
func (o *op) take(s *outcrop.Session) (*snapshot, error) {
	mt := o.m.meter
	sn := &snapshot{prefix: outcrop.Seq(s.Len() - 1), seqs: mt.Seqs(), ex: mt.Exchanges(nil, 0)}
	if h, ok := s.RequestHeader(); ok {
		sn.header = h.Raw
		var err error
		if sn.config, sn.system, sn.tools, err = llm.ParseHeader(h.Raw); err != nil {
			// A header that cannot be read gives no request, but a digest all the same.
			o.m.log.Warn("the request header cannot be read", "session", s.ID(), "seq", int64(h.Seq), "err", err)
		}
	}
	if o.m.o.Model.Model != "" {
		sn.config = o.m.o.Model
	}
	at := 0
	for _, m := range s.Messages() {
		for sn.seqs[at] != m.Seq {
			at++
		}
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			return nil, fmt.Errorf("read event %d: %w", m.Seq, err)
		}
		sn.msgs = append(sn.msgs, m)
		sn.parsed = append(sn.parsed, llm.Node{Seq: int64(m.Seq), Message: parsed})
		sn.at = append(sn.at, at)
	}
	return sn, nil
}

// source cuts a snapshot behind a range; ok is false when the range is not in
// it.
func (sn *snapshot) source(j job) (src source, ok bool) {
	from := slices.Index(sn.seqs, j.seqs[0])
	to := from + len(j.seqs)
	if from < 0 || to > len(sn.seqs) || !slices.Equal(sn.seqs[from:to], j.seqs) {
		return src, false
	}
	first, _ := slices.BinarySearch(sn.at, from)
	end, _ := slices.BinarySearch(sn.at, to)
	src = source{snapshot: sn, msgs: sn.msgs[:end:end], parsed: sn.parsed[:end:end], from: first, merge: j.merge}
	for _, e := range sn.ex {
		if e.From < from || e.To > to {
			continue
		}
		at, _ := slices.BinarySearch(sn.at, e.From)
		if at < end && (len(src.starts) == 0 || src.starts[len(src.starts)-1] < at) {
			src.starts = append(src.starts, at)
		}
	}
	return src, true
}

// recalls reports whether the model can look at originals.
func (src *source) recalls() bool {
	for _, t := range src.tools {
		if t.Name == "history_read" {
			return true
		}
	}
	return false
}

// begins is how the range begins, for a model to find it.
func (src *source) begins() string {
	if src.from >= len(src.parsed) {
		return ""
	}
	m := &src.parsed[src.from]
	text := message.PlainText(m.Content)
	if m.Source.Plugin == compactPlugin && len(m.Content) > 1 { // all frames begin alike
		text = m.Content[1].Text
	}
	if text == "" && len(m.Content) > 0 {
		text = "call of " + m.Content[len(m.Content)-1].Name
	}
	return clip(llm.Clean(text), 80)
}

// shortened is a copy of nodes in which no text is longer than head and tail
// code points; results alone, or with all every text and all arguments.
func shortened(nodes []llm.Node, head, tail int, all bool) []llm.Node {
	out := make([]llm.Node, len(nodes))
	const marker = "\n[... cut ...]\n"
	var blocks func(in []message.Block, inResult bool) []message.Block
	blocks = func(in []message.Block, inResult bool) []message.Block {
		list := make([]message.Block, 0, len(in))
		for _, b := range in {
			switch {
			case b.Type == message.ToolResultBlock:
				b = message.ToolResult(b.ToolCallID, b.IsError, blocks(b.Content, true)...)
			case (b.Type == message.TextBlock || b.Type == message.ReasoningBlock) && (all || inResult):
				if text := cut.Text(b.Text, head, tail, marker); text != b.Text {
					b = message.Block{Type: b.Type, Text: text}
				}
			case b.Type == message.ToolCallBlock && all:
				if args := cut.Text(b.Arguments, head, tail, marker); args != b.Arguments {
					b = message.ToolCall(b.ID, b.Name, args)
				}
			}
			list = append(list, b)
		}
		return list
	}
	for i, n := range nodes {
		n.Content = blocks(n.Content, false)
		if all { // what a provider gave for its own blocks does not fit others
			n.Source = message.Source{Kind: n.Source.Kind}
		}
		out[i] = n
	}
	return out
}

// digestOf is the request digest of a header and the messages given to
// llm.Build.
func digestOf(header json.RawMessage, nodes []llm.Node, raw []*outcrop.Message) string {
	list := make([]*outcrop.Message, 0, len(nodes))
	for i := range nodes {
		if i < len(raw) {
			list = append(list, raw[i])
		} else {
			list = append(list, &outcrop.Message{Raw: nodes[i].AppendJSON(nil)})
		}
	}
	return outcrop.DigestOf(header, list)
}
