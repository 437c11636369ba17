package benchsuite

import (
	"context"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/message"
)

var memoryWorks = []Work{
	{Name: "append-typed", About: "append mixed events in memory, typed, with the clock", start: startAppendTyped},
	{Name: "append-raw", About: "append the same events in memory, given as JSON", start: startAppendRaw},
	{Name: "fold", About: "fold the surface of a log, from nothing", start: func(_ context.Context, e Env) (*trial, error) { return startFold(e) }},
	{Name: "replace", About: "replace a node of a large surface, then messages", start: startReplace},
}

func clock() int64 { return time.Now().UnixMilli() }

func fresh() (*outcrop.Session, error) {
	return outcrop.New(genlog.Header(1), outcrop.Options{Now: clock})
}

func startAppendTyped(_ context.Context, env Env) (*trial, error) {
	events := generated(env.Sizes.Append)
	payloads, err := typedOf(events)
	if err != nil {
		return nil, err
	}
	return appendTrial(events, "append typed", atLeast(2e6, "2M events/s"), func(s *outcrop.Session) error {
		for i := range payloads {
			if err := payloads[i].append(s); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

func startAppendRaw(_ context.Context, env Env) (*trial, error) {
	events := generated(env.Sizes.Append)
	return appendTrial(events, "append raw", atLeast(1e6, "1M events/s"), func(s *outcrop.Session) error {
		for _, ev := range events {
			if _, err := s.AppendRaw(ev); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// appendTrial: the floor copies each line to memory that is made for it in
// pieces of 1 MiB, and reads the clock once an event.
func appendTrial(events []outcrop.Event, name string, t target, all func(*outcrop.Session) error) *trial {
	sum := newSides()
	perEvent := 1e9
	return &trial{
		round: func() error {
			s, err := fresh()
			if err != nil {
				return err
			}
			var ours time.Duration
			n, err := allocations(func() error {
				ours, err = stopwatch(func() error { return all(s) })
				return err
			})
			if err != nil {
				return err
			}
			perEvent = min(perEvent, float64(n)/float64(len(events)))
			floor, _ := stopwatch(func() error { copyLines(events); return nil })
			sum.add(ours, floor)
			return nil
		},
		figures: func() []Figure {
			return []Figure{
				sum.rate(name, float64(len(events)), "events", "copy the lines, read the clock").judged(t),
				Figure{Name: name + ", allocations", Value: perEvent, Unit: "an event"}.judged(atMost(2, "at most 2")),
			}
		},
	}
}

func copyLines(events []outcrop.Event) {
	room := make([]byte, 0, 1<<20)
	for i := range events {
		line := events[i].Line()
		if cap(room)-len(room) < len(line) {
			Sink += len(room)
			room = make([]byte, 0, max(1<<20, len(line)))
		}
		room = append(room, line...)
		Sink += int(clock())
	}
	Sink += len(room)
}

func startFold(env Env) (*trial, error) {
	s, err := outcrop.SeedRecords(genlog.Header(1), withoutErrors(genlog.Records(1, env.Sizes.Fold)), outcrop.Options{})
	if err != nil {
		return nil, err
	}
	log := s.Log()
	n := float64(log.Len())
	sum, stream := newSides(), newSides()
	return &trial{
		round: func() error {
			ours, err := stopwatch(func() error {
				fold, err := outcrop.SurfaceAt(log, outcrop.Seq(log.Len()-1))
				Sink += len(fold.Nodes)
				return err
			})
			if err != nil {
				return err
			}
			streamed, err := stopwatch(func() error {
				fold, err := outcrop.FoldSurface(log.Records(0))
				Sink += len(fold.Nodes)
				return err
			})
			if err != nil {
				return err
			}
			floor, _ := stopwatch(func() error {
				for r := range log.Records(0) {
					if r.Type == outcrop.TypeUserMessage {
						Sink++
					}
				}
				return nil
			})
			sum.add(ours, floor)
			stream.add(streamed, floor)
			return nil
		},
		figures: func() []Figure {
			const floorIs = "read each record's type"
			return []Figure{
				sum.rate("fold", n, "events", floorIs).judged(atLeast(40e6, "40M events/s")),
				stream.rate("fold of a stream of records", n, "events", floorIs),
			}
		},
	}, nil
}

func startReplace(_ context.Context, env Env) (*trial, error) {
	s, err := fresh()
	if err != nil {
		return nil, err
	}
	said := func(text string) outcrop.UserMessage {
		return outcrop.UserMessage{Message: message.Message{Source: message.FromUser, Content: []message.Block{message.Text(text)}}}
	}
	for range env.Sizes.Nodes {
		if _, err := s.AppendSurface(said("one of many"), outcrop.Tail, outcrop.NoSources); err != nil {
			return nil, err
		}
	}
	s.Messages()
	n := s.Surface().Len()
	places := []struct {
		name string
		at   int
	}{{"replace head", 0}, {"replace middle", n / 2}, {"replace tail", n - 1}}
	sums := []sides{newSides(), newSides(), newSides()}
	return &trial{
		round: func() error {
			for i, p := range places {
				node := s.Surface().View().At(p.at)
				ours, err := stopwatch(func() error {
					_, err := s.AppendSurface(said("in its place"), outcrop.Replace(node, node), outcrop.SourcesOf(node))
					Sink += len(s.Messages())
					return err
				})
				if err != nil {
					return err
				}
				from, list := s.Surface().Nodes(), s.Messages()
				floor, _ := stopwatch(func() error {
					Sink += len(append([]outcrop.Seq(nil), from...))
					Sink += len(append([]*outcrop.Message(nil), list...))
					return nil
				})
				sums[i].add(ours, floor)
			}
			return nil
		},
		figures: func() []Figure {
			var all []Figure
			for i, p := range places {
				all = append(all, sums[i].took(p.name, "copy nodes and messages once").judged(atMost(1, "1 ms")))
			}
			return all
		},
	}, nil
}
