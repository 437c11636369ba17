package history_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/message"
)

// long is a session of about n nodes in an open turn, with a checkpoint first.
func long(b *testing.B, n, size int) *builder {
	w := build(b, outcrop.Options{})
	w.openTurn(1)
	w.openStep(1, 1)
	w.user(strings.Repeat("word ", 400))
	if _, err := history.CommitCompaction(w.s, history.Compaction{Start: 2, End: 2, Summary: summary("s"), Provider: "p", Model: "m"}); err != nil {
		b.Fatal(err)
	}
	w.user("go on")
	text := strings.Repeat("word ", size/5)
	for i := 0; i < n; i += 2 {
		id := fmt.Sprintf("c%d", i)
		w.assistant(1, 1, message.Text("so"), w.call(id))
		w.result(1, 1, id, text)
	}
	w.closeStep(1, 1)
	w.closeTurn(1)
	return w
}

// Choosing what to condense must cost at most 1 ms on 16,000 nodes.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1_000, 16_000, 100_000} {
		w := long(b, n, 100)
		ed := history.Direct(w.s)
		m, err := history.NewManager(history.Options{Window: 100_000})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Measure(context.Background(), ed); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				rep, err := m.Compact(context.Background(), ed, history.Request{Start: -1, End: -1, DryRun: true})
				if err != nil || len(rep.Planned) != 1 {
					b.Fatal(err, rep)
				}
			}
		})
	}
}

// What the manager costs at each step that has room.
func BenchmarkPreStep(b *testing.B) {
	for _, n := range []int{1_000, 16_000, 100_000} {
		w := long(b, n, 100)
		ed := history.Direct(w.s)
		m, err := history.NewManager(history.Options{Window: 100_000_000})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Measure(context.Background(), ed); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := m.PreStep(context.Background(), ed, history.Input{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Pruning 1,000 large results is one pass; what it writes are the bytes kept.
func BenchmarkPrune(b *testing.B) {
	const results, size = 1000, 50_000
	b.SetBytes(results * size)
	for b.Loop() {
		b.StopTimer()
		w := long(b, 2*results, size)
		m, err := history.NewManager(history.Options{})
		if err != nil {
			b.Fatal(err)
		}
		ed := history.Direct(w.s)
		if _, err := m.Measure(context.Background(), ed); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		rep, err := m.Prune(context.Background(), ed, nil, false)
		if err != nil || len(rep.Edits) != results-1 {
			b.Fatal(err, len(rep.Edits))
		}
	}
}
