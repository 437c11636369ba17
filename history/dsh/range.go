package dsh

import (
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// ErrUnmatched: a result stands on the surface with no open call before it.
// dsh compacts nothing on such a surface.
var ErrUnmatched = errors.New("a tool result stands on the surface without an open call before it")

// Cuts reports for each position of the surface whether a cut there leaves no
// call open: element i is the cut before node i, the last element the one
// behind the last node. Calls and results are counted; ids are not compared.
func Cuts(log outcrop.Log, nodes []outcrop.Seq) ([]bool, error) {
	cuts := make([]bool, len(nodes)+1)
	open := 0
	cuts[0] = true
	for i, seq := range nodes {
		ev := log.At(seq)
		switch ev.Type {
		case outcrop.TypeAssistantMessage:
			for _, b := range contentOf(&ev) {
				if b.Type == message.ToolCallBlock {
					open++
				}
			}
		case outcrop.TypeToolResult:
			open--
		}
		if open < 0 {
			return nil, ErrUnmatched
		}
		cuts[i+1] = open == 0
	}
	return cuts, nil
}

// Select chooses what to compact: from the head of the surface up to a tail
// that holds at least retain tokens, at least one node, and begins at a
// balanced cut. ok is false when nothing is left; the error is that of Cuts.
func Select(log outcrop.Log, nodes []Node, retain int64) (first, last int, ok bool, err error) {
	keep, sum := len(nodes), int64(0)
	for keep > 0 && (sum < retain || keep == len(nodes)) {
		keep--
		sum += nodes[keep].Tokens
	}
	if keep == 0 || sum < retain {
		return 0, 0, false, nil
	}
	seqs := make([]outcrop.Seq, len(nodes))
	for i := range nodes {
		seqs[i] = nodes[i].Seq
	}
	cuts, err := Cuts(log, seqs)
	if err != nil {
		return 0, 0, false, err
	}
	for keep > 0 && !cuts[keep] {
		keep--
	}
	return 0, keep - 1, keep > 0, nil
}
