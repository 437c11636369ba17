package history

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/cut"
	"github.com/outcrop-dev/outcrop/history/dsh"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Kinds of edits, as outcrop/edit records them.
const (
	KindCompaction = "compaction"
	KindPrune      = "prune"
)

// What is kept of a result, in code points.
const (
	keptHead = 4096
	keptTail = 1024
	kept     = keptHead + keptTail
)

// CommitPrune gives the tool result that stands at a node other, smaller
// content. Everything else of it stays byte for byte: turn, step, error, meta,
// the message's id, source and role, the call id and whether it is an error.
func CommitPrune(s *outcrop.Session, node outcrop.Seq, content []message.Block) (Edit, error) {
	m := measured(s)
	edits, err := commitPrunes(s, m, []shorter{{node, content}}, rules{})
	if err != nil {
		return Edit{}, err
	}
	return edits[0], nil
}

// shorter is new content for a result.
type shorter struct {
	node    outcrop.Seq
	content []message.Block
}

// commitPrunes gives results new content, all as one group.
func commitPrunes(s *outcrop.Session, m *meter.Meter, list []shorter, rule rules) ([]Edit, error) {
	edits, group, err := planPrunes(s, m, list, rule)
	if err == nil {
		_, err = s.AppendAll(group...)
	}
	if err != nil {
		return nil, err
	}
	return edits, nil
}

// planPrunes judges results with new content and makes the group that commits
// them.
func planPrunes(s *outcrop.Session, m *meter.Meter, list []shorter, rule rules) (edits []Edit, group []outcrop.Candidate, err error) {
	const op = "prune"
	group = make([]outcrop.Candidate, 0, 3*len(list))
	edits = make([]Edit, len(list))
	base := outcrop.Seq(s.Len())
	at := positions(m, list)
	for i, p := range list {
		if at[i] < 0 {
			return nil, nil, notOnSurface(op, s.ID(), s.Log(), p.node)
		}
		ev := s.Log().At(p.node)
		if m.Node(at[i]).Kind != meter.Result {
			return nil, nil, refuse(op, s.ID(), CodeNotResult, p.node, fmt.Sprintf("event %d is a %s, not a tool/result", p.node, ev.Type), "")
		}
		data := withContent(ev.Data, p.content)
		after, err := message.Parse(jsonwire.Get(data, "message"))
		if err != nil {
			return nil, nil, err
		}
		e := &edits[i]
		e.TokensBefore, e.TokensAfter = m.Node(at[i]).Tokens, rule.count(m, after)
		if rule.counted {
			before, err := message.Parse(jsonwire.Get(ev.Data, "message"))
			if err != nil {
				return nil, nil, err
			}
			e.TokensBefore = dsh.Price(before)
		}
		if e.TokensAfter >= e.TokensBefore {
			return nil, nil, refuse(op, s.ID(), CodeNotSmaller, p.node,
				fmt.Sprintf("the new content has %d tokens, the old %d", e.TokensAfter, e.TokensBefore), "")
		}
		e.CacheInvalidated = m.Cached(at[i])
		e.First = base + outcrop.Seq(2*i)
		e.Replacement = e.First + 1
		e.Shadowed = []outcrop.Seq{p.node}
		group = append(group,
			outcrop.LogCandidate(outcrop.CompactionPrune{Shadowed: e.Shadowed, ShadowedTokenCount: e.TokensBefore}),
			outcrop.RawCandidate(outcrop.Event{
				Type: outcrop.TypeToolResult, Data: data, Op: outcrop.Replace(p.node, p.node), Sources: outcrop.SourcesOf(p.node)}))
	}
	for i := range edits {
		e := &edits[i]
		e.Last = base + outcrop.Seq(len(group))
		group = append(group, outcrop.LogCandidate(outcrop.OutcropEdit{
			ReplaceSeq: e.Replacement, Kind: KindPrune, TokensBefore: e.TokensBefore, TokensAfter: e.TokensAfter, CacheInvalidated: e.CacheInvalidated}))
	}
	return edits, group, nil
}

// positions finds the nodes of a list on the surface, -1 for one that is not
// there.
func positions(m *meter.Meter, list []shorter) []int {
	want := make(map[outcrop.Seq][]int, len(list))
	at := make([]int, len(list))
	for i, p := range list {
		want[p.node] = append(want[p.node], i)
		at[i] = -1
	}
	for pos, seq := range m.Seqs() {
		for _, i := range want[seq] {
			at[i] = pos
		}
	}
	return at
}

// shorten makes the content that a result is left with by the rules of the
// policy layers. The marker says how much went and where the original is.
func shorten(log outcrop.Log, n *meter.Node) []message.Block {
	ev := log.At(n.Seq)
	blocks := resultContent(ev.Data)
	marker := fmt.Sprintf("\n\n[... %s of %s characters cut; the original is event %d: history_read(%d, %d, %d) ...]\n\n",
		llm.Thousands(int64(n.Points-kept)), llm.Thousands(int64(n.Points)), Original(log, n.Seq), Original(log, n.Seq), keptHead, n.Points-keptTail)
	return cut.Middle(blocks, keptHead, keptTail, marker)
}

// Original is the event whose content a node had before it was pruned: the
// first of the tool/result events that it comes from.
func Original(log outcrop.Log, seq outcrop.Seq) outcrop.Seq {
	for {
		ev := log.At(seq)
		if _, _, replace := ev.Op.Range(); !replace || ev.Type != outcrop.TypeToolResult {
			return seq
		}
		from := seq
		for src := range ev.Sources.All() {
			if src >= 0 && src < from && log.At(src).Type == outcrop.TypeToolResult {
				from = src
			}
		}
		if from == seq {
			return seq
		}
		seq = from
	}
}

func resultContent(data []byte) []message.Block {
	for block := range jsonwire.Elements(jsonwire.Get(jsonwire.Get(data, "message"), "content")) {
		blocks, err := message.ParseBlocks(jsonwire.Get(block, "content"))
		if err != nil {
			return nil
		}
		return blocks
	}
	return nil
}

// prunable reports whether the rules let a result be shortened: it is no
// error, holds no image and is at least twice what would be kept.
func prunable(n *meter.Node) bool {
	return n.Kind == meter.Result && !n.Failed && n.Media == 0 && n.Points >= 2*kept
}

// saved is about what shortening a result saves, as a price.
func saved(n *meter.Node) int64 {
	return n.Tokens - n.Tokens*kept/int64(n.Points)
}

// dshPrunes are the results that dsh's pruner would shorten: all over its
// threshold, wherever they stand, but for those in a pinned exchange.
func (o *op) dshPrunes() (list []shorter) {
	p := o.planning(0, 0)
	p.look()
	for i, e := range p.ex {
		if p.pinned(i) {
			continue
		}
		for at := e.From; at < e.To; at++ {
			n := o.m.meter.Node(at)
			if n.Kind != meter.Result || n.Points <= o.m.o.Pruner.Threshold {
				continue
			}
			ev := o.log.At(n.Seq)
			if short, ok := o.m.o.Pruner.Prune(resultContent(ev.Data)); ok {
				list = append(list, shorter{n.Seq, short})
			}
		}
	}
	return list
}

// withContent rewrites the data of a tool/result with new content in its one
// tool-result block; every other member keeps its bytes and its place.
func withContent(data []byte, content []message.Block) []byte {
	return replaceMember(data, "message", func(msg []byte) []byte {
		return replaceMember(msg, "content", func(list []byte) []byte {
			out := []byte{'['}
			for block := range jsonwire.Elements(list) {
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = append(out, replaceMember(block, "content", func([]byte) []byte {
					return message.AppendBlocks(nil, content)
				})...)
			}
			return append(out, ']')
		})
	})
}

// replaceMember copies an object with one member's value made anew.
func replaceMember(obj []byte, name string, f func(old []byte) []byte) []byte {
	out := []byte{'{'}
	for k, v := range jsonwire.Members(obj) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, k...)
		out = append(out, '"', ':')
		if jsonwire.KeyIs(k, name) {
			v = f(v)
		}
		out = append(out, v...)
	}
	return append(out, '}')
}

func textOf(data []byte, name string) string {
	s, _ := jsonwire.Text(jsonwire.Get(data, name))
	return s
}
