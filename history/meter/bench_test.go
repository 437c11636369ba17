package meter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/message"
)

var sizes = []int{1_000, 16_000, 100_000}

// surface is a session with about n nodes.
func surface(b *testing.B, n int) *writer {
	w := write(b)
	text := strings.Repeat("word ", 40)
	for i := 0; i < n; i += 3 {
		id := fmt.Sprintf("c%d", i)
		w.user(text)
		w.reply(nil, message.Text(text), message.ToolCall(id, "read", "{}"))
		w.result(id, text)
	}
	return w
}

// One measure must cost at most 10 µs on 16,000 nodes.
func BenchmarkMeasure(b *testing.B) {
	for _, n := range sizes {
		w := surface(b, n)
		m := meter.New(nil, 0)
		update(m, w.s)
		b.Run(fmt.Sprintf("nodes=%d/nothing new", n), func(b *testing.B) {
			for b.Loop() {
				update(m, w.s)
				m.Parts()
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/one new node", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w.user("new")
				b.StartTimer()
				update(m, w.s)
				m.Parts()
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/after a replace", n), func(b *testing.B) {
			// The half of the measures is told beside their mean: making a replace
			// leaves a surface behind, and the collector's work falls on some.
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				w.user("new")
				w.replace(w.s.Surface().Len()-20, w.s.Surface().Len()-19, "s")
				b.StartTimer()
				from := time.Now()
				update(m, w.s)
				m.Parts()
				took = append(took, time.Since(from))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
		})
	}
}

// 40,000 chunks with the meter on must cost at most 1.1 times what they cost
// without it.
func BenchmarkChunks(b *testing.B) {
	const chunks = 40_000
	chunk := message.Chunk{Type: message.TextDelta, Text: "some text"}
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("meter=%v", on), func(b *testing.B) {
			for b.Loop() {
				w := write(b)
				w.user("go")
				m := meter.New(nil, 0)
				for i := range chunks {
					w.log(outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: chunk})
					if on && i%400 == 0 { // far more often than at each step
						update(m, w.s)
						m.Parts()
					}
				}
				if on {
					update(m, w.s)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
		})
	}
}

// What a measure pays for each chunk that was streamed since the last one.
func BenchmarkScanChunks(b *testing.B) {
	const chunks = 40_000
	w := write(b)
	w.user("go")
	chunk := message.Chunk{Type: message.TextDelta, Text: "some text"}
	for range chunks {
		w.log(outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: chunk})
	}
	for b.Loop() {
		update(meter.New(nil, 0), w.s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
}
