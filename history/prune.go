package history

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// CommitPrune gives the tool result that stands at a node other, smaller
// content. Everything else of it stays byte for byte: turn, step, error, meta,
// the message's id, source and role, the call id and whether it is an error.
func CommitPrune(s *outcrop.Session, node outcrop.Seq, content []message.Block) (Edit, error) {
	const op = "prune"
	n := nodesOf(s)
	at := n.index(node)
	if at < 0 {
		return Edit{}, notOnSurface(op, s, node)
	}
	ev := s.Log().At(node)
	if ev.Type != outcrop.TypeToolResult || n.msgs[at] == nil {
		return Edit{}, refuse(op, s, CodeNotResult, node, fmt.Sprintf("event %d is a %s, not a tool/result", node, ev.Type), "")
	}
	data := withContent(ev.Data, content)
	before := estimate(n.msgs[at])
	pruned, err := message.Parse(jsonwire.Get(data, "message"))
	if err != nil {
		return Edit{}, err
	}
	after := llm.EstimateTokens(pruned)
	if after >= before {
		return Edit{}, refuse(op, s, CodeNotSmaller, node,
			fmt.Sprintf("the new content has %d tokens, the old %d", after, before), "")
	}
	lost := invalidated(s, n, at)
	first := outcrop.Seq(s.Len())
	shadowed := []outcrop.Seq{node}
	events, err := s.AppendAll(
		outcrop.LogCandidate(outcrop.CompactionPrune{Shadowed: shadowed, ShadowedTokenCount: before}),
		outcrop.RawCandidate(outcrop.Event{
			Type: outcrop.TypeToolResult, Data: data, Op: outcrop.Replace(node, node), Sources: outcrop.SourcesOf(node)}),
		outcrop.LogCandidate(outcrop.OutcropEdit{
			ReplaceSeq: first + 1, Kind: "prune", TokensBefore: before, TokensAfter: after, CacheInvalidated: lost}))
	if err != nil {
		return Edit{}, err
	}
	return Edit{
		First: first, Last: events[len(events)-1].Seq, Replacement: first + 1, Shadowed: shadowed,
		TokensBefore: before, TokensAfter: after, CacheInvalidated: lost,
	}, nil
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
