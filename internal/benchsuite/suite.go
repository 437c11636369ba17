// Package benchsuite measures the engine beside its limits. The command bench
// and the Go benchmarks of the root package both run it, so no measurement
// stands twice.
//
// A Work is one thing that is measured. It is run in rounds; each round does
// the work once and, right after it, the same work at its floor: the least that
// any program would have to do for the same result on this machine (copy the
// bytes, read the file, write and sync it). A share of 1 means as fast as the
// floor. Seconds depend on the machine, shares hardly do, so targets are shares
// where there is a floor that means something.
//
// Of several rounds the fastest counts, for both sides: what other programs
// take away on a shared machine only ever adds time. Inputs come from genlog and
// are the same everywhere. Everything that is written goes into Env.Dir.
package benchsuite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sizes say how much is measured.
type Sizes struct {
	Append   int   // events appended in memory
	Fold     int   // events folded
	Steps    int   // steps with messages read after each
	Nodes    int   // nodes of the surface that replaces work on
	Text     int64 // bytes of text of a log that is loaded, before compression
	Fork     int64 // bytes of text of a log that is forked
	Sessions int   // sessions listed
	Batches  int   // durable batches of each length
	Growth   []int64
}

// Small is for a check that everything runs, in seconds.
var Small = Sizes{
	Append: 20_000, Fold: 50_000, Steps: 300, Nodes: 10_000, Text: 2 << 20, Fork: 4 << 20,
	Sessions: 100, Batches: 5, Growth: []int64{1 << 20, 4 << 20},
}

// Medium gives figures that can be compared, in about two minutes.
var Medium = Sizes{
	Append: 100_000, Fold: 1_000_000, Steps: 5_000, Nodes: 100_000, Text: 64 << 20, Fork: 256 << 20,
	Sessions: 2_000, Batches: 40, Growth: []int64{10 << 20, 100 << 20},
}

// Full is the whole table: logs of 200 MB, a fork and a load of 1 GB.
var Full = Sizes{
	Append: 100_000, Fold: 1_000_000, Steps: 5_000, Nodes: 100_000, Text: 200 << 20, Fork: 1 << 30,
	Sessions: 2_000, Batches: 100, Growth: []int64{10 << 20, 100 << 20, 1 << 30},
}

// Env is where the suite runs.
type Env struct {
	Sizes Sizes
	// Dir takes the files; it should lie on the disk that is to be measured.
	Dir string
	// Program is the built command, for what a whole process costs. Works that
	// need it are left out when it is empty.
	Program string
}

// Work is one thing that is measured.
type Work struct {
	Name    string
	About   string
	Process bool // needs Env.Program
	start   func(context.Context, Env) (*trial, error)
}

// trial is a work that was made ready.
type trial struct {
	round   func() error
	figures func() []Figure
	close   func() error
}

// Figure is what came out.
type Figure struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Floor   float64 `json:"floor,omitzero"` // in the same unit; absent without one
	FloorIs string  `json:"floorIs,omitzero"`
	Share   float64 `json:"share,omitzero"` // of the floor's speed that was reached
	Target  string  `json:"target,omitzero"`
	Reached *bool   `json:"reached,omitzero"` // absent without a target
}

// Works lists the suite in order.
func Works() []Work {
	return slices.Concat(memoryWorks, readWorks, loadWorks, diskWorks, processWorks)
}

// Find returns the works whose names contain one of the words, all of them
// without a word, and the first word that fits nothing.
func Find(words ...string) (found []Work, unknown string) {
	all := Works()
	if len(words) == 0 {
		return all, ""
	}
	for _, word := range words {
		if !slices.ContainsFunc(all, func(w Work) bool { return strings.Contains(w.Name, word) }) {
			return nil, word
		}
	}
	for _, w := range all {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(w.Name, word) }) {
			found = append(found, w)
		}
	}
	return found, ""
}

// Running is a work between Start and Close.
type Running struct{ t *trial }

// Start makes the inputs.
func (w Work) Start(ctx context.Context, env Env) (*Running, error) {
	if w.Process && env.Program == "" {
		return nil, fmt.Errorf("%s: needs the built program", w.Name)
	}
	t, err := w.start(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.Name, err)
	}
	return &Running{t}, nil
}

// Round does the work and its floor once.
func (r *Running) Round() error { return r.t.round() }

// Figures are the results of the rounds so far.
func (r *Running) Figures() []Figure { return r.t.figures() }

// Close removes what Start made.
func (r *Running) Close() error {
	if r.t.close == nil {
		return nil
	}
	return r.t.close()
}

// Measure runs a work for at least three rounds and until the time is over, 200
// rounds at most; with no time it does one round.
func Measure(ctx context.Context, w Work, env Env, least time.Duration) ([]Figure, error) {
	r, err := w.Start(ctx, env)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for n := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		if err := r.Round(); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", w.Name, err), r.Close())
		}
		n++
		if least <= 0 || n >= 200 || n >= 3 && time.Since(began) >= least {
			break
		}
	}
	return r.Figures(), r.Close()
}
