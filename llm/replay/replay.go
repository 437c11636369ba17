// Package replay is a provider that plays a recorded session again: for turn T,
// step S and attempt A it yields the chunks that the log holds for that attempt,
// and ends as that attempt ended. It is made for bug reports, where the log is
// what there is, and for tests of the loop.
//
// # What is played
//
// Chunks as they stand in the log, in order. Then
//
//	the attempt succeeded                nothing more
//	it failed                            its failure, the finish chunk that told of it
//	                                     left out, as every provider gives a failure
//	it was cancelled, or a crash cut it  nothing until the call is cancelled: then
//	                                     ABORTED
//
// Which chunks belong to which attempt shows in the log: an outcrop/request
// begins one. In a log without these, a finish chunk or an llm/retry ends one. So
// an attempt that failed before its first chunk is known by its llm/retry, or by
// the turn's end when it was the last.
//
// # What is refused
//
// A call that the log does not show fails with REPLAY_NONE, and so do calls of
// another purpose than turn, whose chunks no log holds. With Options.Strict a
// request that is not the recorded one fails with REPLAY_DIFFERS. Both name turn,
// step and attempt, and no retry policy repeats them.
//
// Two requests are the same when header (config, system prompt, tools) and
// messages are, to the byte; ids of calls count by the order in which they
// appear, since one that cannot be sent is replaced by one that depends on the
// seq of its event.
//
// The name of the provider is replay. A loop that is to give the same requests
// again must put the recorded provider and model into its config.
package replay

import (
	"context"
	"fmt"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Name is the provider's name.
const Name = "replay"

// Failure codes of this provider's own.
const (
	CodeNone    = "REPLAY_NONE"    // the log does not show this call
	CodeDiffers = "REPLAY_DIFFERS" // the request is not the recorded one
)

// Options of a replay.
type Options struct {
	// Strict refuses a request that is not the one that the log gives for the
	// attempt.
	Strict bool
}

// Model plays a log. It is safe for use by several goroutines.
type Model struct {
	o        Options
	log      outcrop.Log
	attempts map[place]*Attempt
	order    []place
}

type place struct{ turn, step, n int }

// Attempt is one recorded model call.
type Attempt struct {
	Turn, Step int
	N          int         // number of the attempt, from 1
	Prefix     outcrop.Seq // last event that its request was built from
	Chunks     int         // how many are played
	// Failure is what it ended in, nil when it succeeded or was cut.
	Failure *message.Failure
	// Cut says that it was cancelled, or that a crash cut it.
	Cut bool

	spans []span
}

// span is a range of chunk events.
type span struct{ first, last outcrop.Seq }

var _ llm.Provider = (*Model)(nil)

// New reads a log once and keeps it. The log may be of any session, damaged or
// not: what it shows of attempts is played.
func New(log outcrop.Log, o Options) *Model {
	m := &Model{o: o, log: log, attempts: make(map[place]*Attempt)}
	for _, a := range find(log) {
		p := place{a.Turn, a.Step, a.N}
		if m.attempts[p] == nil { // numbers that a log repeats: the first one counts
			m.order = append(m.order, p)
			m.attempts[p] = a
		}
	}
	return m
}

// Name implements llm.Provider.
func (m *Model) Name() string { return Name }

// Attempts yields what is recorded, in the order of the log.
func (m *Model) Attempts() iter.Seq[Attempt] {
	return func(yield func(Attempt) bool) {
		for _, p := range m.order {
			if !yield(*m.attempts[p]) {
				return
			}
		}
	}
}

// Stream implements llm.Provider.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	return func(yield func(message.Chunk, error) bool) {
		a, err := m.recorded(req)
		if err != nil {
			yield(message.Chunk{}, err)
			return
		}
		for c, err := range m.chunks(a) {
			if err == nil && ctx.Err() != nil {
				err = aborted(a)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
		switch {
		case a.Cut:
			<-ctx.Done()
			yield(message.Chunk{}, aborted(a))
		case a.Failure != nil:
			yield(message.Chunk{}, a.Failure)
		}
	}
}

// recorded finds the attempt for a request.
func (m *Model) recorded(req llm.Request) (*Attempt, error) {
	if req.Purpose != "" && req.Purpose != llm.Turn {
		return nil, fail(CodeNone, "a call of the purpose %s cannot be replayed: no log holds its chunks", req.Purpose)
	}
	a := m.attempts[place{req.Turn, req.Step, req.Attempt}]
	if a == nil {
		return nil, fail(CodeNone, "turn %d step %d attempt %d is not in the recorded log, which shows %d attempts", req.Turn, req.Step, req.Attempt, len(m.order))
	}
	if m.o.Strict {
		if err := m.compare(a, req); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// chunks decodes the chunks of an attempt.
func (m *Model) chunks(a *Attempt) iter.Seq2[message.Chunk, error] {
	return func(yield func(message.Chunk, error) bool) {
		for _, s := range a.spans {
			for ev := range outcrop.Events(m.log, s.first) {
				if ev.Seq > s.last {
					break
				}
				c, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk"))
				if err != nil {
					yield(c, fail(CodeNone, "turn %d step %d attempt %d: the chunk of event %d cannot be read: %v", a.Turn, a.Step, a.N, ev.Seq, err))
					return
				}
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

func fail(code, format string, args ...any) *message.Failure {
	return &message.Failure{Code: code, Message: Name + ": " + fmt.Sprintf(format, args...)}
}

func aborted(a *Attempt) *message.Failure {
	return fail(message.CodeAborted, "turn %d step %d attempt %d was cancelled", a.Turn, a.Step, a.N)
}
