package benchsuite

import (
	"context"
	"iter"
	"time"

	"github.com/outcrop-dev/outcrop"
)

var readWorks = []Work{
	{Name: "idle-reads", About: "surface and messages with nothing new", start: startIdle},
	{Name: "messages-steps", About: "messages and log once a step, over many steps", start: startSteps},
}

func startIdle(_ context.Context, env Env) (*trial, error) {
	s, err := fresh()
	if err != nil {
		return nil, err
	}
	for _, ev := range generated(env.Sizes.Append / 10) {
		if _, err := s.AppendRaw(ev); err != nil {
			return nil, err
		}
	}
	const calls = 200_000
	reads := []struct {
		name string
		f    func()
	}{
		{"surface, nothing new", func() { Sink += s.Surface().View().Len() }},
		{"messages, nothing new", func() { Sink += len(s.Messages()) }},
	}
	type result struct {
		sides
		allocs float64
	}
	results := []result{{newSides(), 1e9}, {newSides(), 1e9}}
	return &trial{
		round: func() error {
			floor, _ := stopwatch(func() error {
				for range calls {
					Sink += touch(s)
				}
				return nil
			})
			for i, r := range reads {
				r.f()
				var ours time.Duration
				n, _ := allocations(func() error {
					ours, _ = stopwatch(func() error {
						for range calls {
							r.f()
						}
						return nil
					})
					return nil
				})
				results[i].add(ours, floor)
				results[i].allocs = min(results[i].allocs, float64(n/calls))
			}
			return nil
		},
		figures: func() []Figure {
			var all []Figure
			for i, r := range reads {
				f := results[i].took(r.name, "a call that answers at once")
				f.Unit, f.Value, f.Floor = "ns", f.Value*1e6/calls, f.Floor*1e6/calls
				all = append(all, f.judged(atMost(50, "50 ns")),
					Figure{Name: r.name + ", allocations", Value: results[i].allocs, Unit: "a call"}.judged(atMost(0, "none")))
			}
			return all
		},
	}, nil
}

//go:noinline
func touch(s *outcrop.Session) int { return len(s.ID()) }

// startSteps appends a long session and asks for the messages, and for the log,
// at the end of each step, as an agent does. Only the asking is timed. The
// floor makes the new messages and adds them to a list.
func startSteps(_ context.Context, env Env) (*trial, error) {
	events := generated(env.Sizes.Steps * 345 / 10)
	var messages, logs sides = newSides(), newSides()
	steps := 0
	return &trial{
		round: func() error {
			s, err := fresh()
			if err != nil {
				return err
			}
			var ours, floor, read time.Duration
			var list []*outcrop.Message
			steps = 0
			for _, ev := range events {
				if _, err := s.AppendRaw(ev); err != nil {
					return err
				}
				if ev.Type != outcrop.TypeStepEnd {
					continue
				}
				steps++
				start := time.Now()
				have := s.Messages()
				got := time.Now()
				for _, m := range have[len(list):] {
					c := *m
					list = append(list, &c)
				}
				done := time.Now()
				Sink += s.Log().Len()
				ours += got.Sub(start)
				floor += done.Sub(got)
				read += time.Since(done)
			}
			messages.add(ours, floor)
			logs.add(read, floor)
			return nil
		},
		figures: func() []Figure {
			most := float64(steps) / 1000 // 5 ms for 5,000 steps
			log := Figure{Name: "log once a step, all steps", Unit: "ms", Value: millis(logs.ours)}
			return []Figure{
				messages.took("messages once a step, all steps", "make the new messages").judged(atMost(most, "5 ms for 5,000 steps")),
				log.judged(atMost(most, "5 ms for 5,000 steps")),
			}
		},
	}, nil
}

func withoutErrors(recs iter.Seq[outcrop.Record]) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}
}
