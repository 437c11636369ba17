package dsh

import (
	"errors"

	"github.com/outcrop-dev/outcrop/history/cut"
	"github.com/outcrop-dev/outcrop/message"
)

// Marker stands where the middle of a result was.
const Marker = "\n\n[... tool result middle pruned ...]\n\n"

const markerPoints = len(Marker)

// Pruner says which results are shortened and how. Numbers are code points of
// text blocks.
type Pruner struct {
	Threshold int // a result over it is shortened
	Head      int // kept at its beginning
	Tail      int // kept at its end
}

// DefaultPruner is what dsh uses when nothing is said.
var DefaultPruner = Pruner{Threshold: 8192, Head: 4096, Tail: 1024}

// Refusals of a pruner's numbers.
var (
	ErrThreshold = errors.New("the threshold of a pruner must be 1 or more")
	ErrBudget    = errors.New("head and tail of a pruner must be 0 or more")
	ErrSum       = errors.New("head, marker and tail of a pruner must fit under its threshold")
)

// Check refuses numbers with which a shortened result would not be short.
func (p Pruner) Check() error {
	switch {
	case p.Threshold < 1:
		return ErrThreshold
	case p.Head < 0 || p.Tail < 0:
		return ErrBudget
	case p.Head > p.Threshold || p.Tail > p.Threshold || p.Head+markerPoints+p.Tail > p.Threshold:
		return ErrSum
	}
	return nil
}

// Prune shortens content; ok is false when it is not over the threshold.
func (p Pruner) Prune(blocks []message.Block) (short []message.Block, ok bool) {
	if cut.Points(blocks) <= p.Threshold {
		return nil, false
	}
	return cut.Middle(blocks, p.Head, p.Tail, Marker), true
}
