package benchsuite

import (
	"math"
	"runtime"
	"time"
)

// target is what a figure has to reach.
type target struct {
	text string
	met  func(Figure) bool
}

func atLeast(v float64, text string) target {
	return target{text, func(f Figure) bool { return f.Value >= v }}
}

func atMost(v float64, text string) target {
	return target{text, func(f Figure) bool { return f.Value <= v }}
}

func shareOf(v float64, text string) target {
	return target{text, func(f Figure) bool { return f.Share >= v }}
}

func (f Figure) judged(t target) Figure {
	ok := t.met(f)
	f.Target, f.Reached = t.text, &ok
	return f
}

// sides keeps the fastest round of the work and of its floor.
type sides struct{ ours, floor time.Duration }

func newSides() sides { return sides{math.MaxInt64, math.MaxInt64} }

func (s *sides) add(ours, floor time.Duration) {
	s.ours, s.floor = min(s.ours, ours), min(s.floor, floor)
}

// rate is a figure of n units a second.
func (s *sides) rate(name string, n float64, unit, floorIs string) Figure {
	return Figure{Name: name, Unit: unit + "/s", Value: n / s.ours.Seconds(),
		Floor: n / s.floor.Seconds(), FloorIs: floorIs, Share: s.floor.Seconds() / s.ours.Seconds()}
}

// took is a figure of milliseconds.
func (s *sides) took(name, floorIs string) Figure {
	return Figure{Name: name, Unit: "ms", Value: millis(s.ours),
		Floor: millis(s.floor), FloorIs: floorIs, Share: s.floor.Seconds() / s.ours.Seconds()}
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }

// stopwatch times f.
func stopwatch(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

// allocations counts heap objects that f makes, other goroutines included.
func allocations(f func() error) (uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, err
}

// liveHeap is what is reachable now.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Sink takes results of what is measured, so that the compiler cannot drop what
// made them.
var Sink int
