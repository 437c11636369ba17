package message_test

import (
	"strconv"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

// Many blocks, whose pieces come mixed, are put together in the order in which
// they began.
func TestManyBlocksArePutTogether(t *testing.T) {
	var a message.Assembler
	const n = 500
	for round := range 3 {
		for i := range n {
			a.Add(message.Chunk{Type: message.TextDelta, Index: 7 * i, Text: strconv.Itoa(round)})
		}
	}
	blocks := a.Blocks()
	if len(blocks) != n {
		t.Fatalf("%d blocks", len(blocks))
	}
	for i, b := range blocks {
		if b.Text != "012" {
			t.Fatalf("block %d is %q", i, b.Text)
		}
	}
}

// The time of a piece must not grow with the blocks that there are.
func BenchmarkAssembleBlocks(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				var a message.Assembler
				for i := range n {
					a.Add(message.Chunk{Type: message.TextDelta, Index: i, Text: "x"})
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/block")
		})
	}
}
