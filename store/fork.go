package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Child names the session that a fork makes.
type Child struct {
	ID        string
	CreatedAt int64 // Unix milliseconds; also the time of the events that the fork adds
}

// Cut says where a fork was made.
type Cut struct {
	Header   outcrop.Header // of the child
	Boundary outcrop.Seq    // last event taken from the parent; -1 when none was
	Turn     int            // the turn that was open at the seq asked for; 0 when none was
	Closed   bool           // a turn/end was added behind the boundary
}

// Fork makes a new session from the events of parent through the seq at, both
// stored in st; a negative at takes the whole log. The child holds them, then
// session/end-seed. The rule is strict; the codes of the error are, in the
// order in which they are looked for: SESSION_ALREADY_EXISTS (ErrExists),
// SESSION_NOT_FOUND (outcrop.ErrNotFound), INVALID_BOUNDARY and OPEN_TURN
// (outcrop.ErrRefused).
//
// The parent is not locked: what its writer has not stored yet is not there.
// Where the boundary is one of the stored bytes', those are copied as they are
// and not judged again; opening the child judges them.
func Fork(ctx context.Context, st Store, parent string, at outcrop.Seq, child Child) (outcrop.Header, error) {
	cut, err := fork(ctx, st, parent, at, child, false)
	return cut.Header, err
}

// ForkAt is Fork for a person who names any event. When a turn is open there
// the boundary moves down to the last step/end of that turn, and a turn/end
// that says interrupted is added behind it; when that turn has no step/end at
// or below at, or no usable number, or at is a user/message, it moves to before
// the turn's turn/start and nothing is added.
func ForkAt(ctx context.Context, st Store, parent string, at outcrop.Seq, child Child) (Cut, error) {
	return fork(ctx, st, parent, at, child, true)
}

func fork(ctx context.Context, st Store, parent string, at outcrop.Seq, child Child, moves bool) (Cut, error) {
	if sd, err := st.Read(ctx, child.ID); err == nil {
		return Cut{}, errors.Join(&outcrop.Error{Op: "fork", Session: child.ID, Code: outcrop.CodeSessionExists,
			Seq: -1, Offset: -1, Err: ErrExists, Hint: "choose another id"}, sd.Close())
	} else if !errors.Is(err, outcrop.ErrNotFound) {
		return Cut{}, err
	}
	f := forking{st: st, parent: parent, child: child}
	if c, ok := st.(PrefixCopier); ok {
		// A boundary without an open turn needs no look at the whole log.
		cut := Cut{Boundary: at}
		if copied, err := c.PutPrefix(ctx, parent, at, f.headerInto(&cut), f.finish); copied || err != nil {
			return cut, err
		}
	}
	s, err := f.survey(ctx, at)
	if err != nil {
		return Cut{}, err
	}
	if !s.open {
		return f.put(ctx, Cut{Boundary: s.length - 1}, nil)
	}
	if !moves {
		return Cut{}, f.openTurn(s.length-1, s.turn)
	}
	if s.stepEnd < 0 || s.userMessage || s.turn < 1 { // without a number no turn/end fits
		return f.put(ctx, Cut{Boundary: s.start - 1, Turn: s.turn}, nil)
	}
	end := outcrop.Event{Type: outcrop.TypeTurnEnd, Seq: s.stepEnd + 1, Time: s.stepTime,
		Data: fmt.Appendf(nil, `{"turn":%s,"reason":{"kind":"interrupted"}}`, s.turnText)}
	return f.put(ctx, Cut{Boundary: s.stepEnd, Turn: s.turn, Closed: true}, &end)
}

type forking struct {
	st     Store
	parent string
	child  Child
}

// headerInto makes the child's header and notes it, with the boundary.
func (f *forking) headerInto(cut *Cut) func(outcrop.Header, outcrop.Seq) outcrop.Header {
	return func(parent outcrop.Header, length outcrop.Seq) outcrop.Header {
		cut.Header = parent.Child(f.child.ID, f.child.CreatedAt, int64(length))
		cut.Boundary = length - 1
		return cut.Header
	}
}

// finish is what a constructor adds to a seed.
func (f *forking) finish(length outcrop.Seq, last outcrop.Type) []outcrop.Event {
	if last == outcrop.TypeEndSeed {
		return nil
	}
	return []outcrop.Event{f.endSeed(length)}
}

func (f *forking) endSeed(seq outcrop.Seq) outcrop.Event {
	return outcrop.Event{Type: outcrop.TypeEndSeed, Seq: seq, Time: f.child.CreatedAt, Data: []byte("{}")}
}

func (f *forking) openTurn(at outcrop.Seq, turn int) error {
	return &outcrop.Error{Op: "fork", Session: f.parent, Code: outcrop.CodeOpenTurn, Seq: at, Offset: -1, Err: outcrop.ErrRefused,
		Msg: fmt.Sprintf("turn %d is open here", turn), Hint: "fork at a turn/end or between turns"}
}

func (f *forking) invalid(at outcrop.Seq, msg string) error {
	return &outcrop.Error{Op: "fork", Session: f.parent, Code: outcrop.CodeInvalidBoundary, Seq: at, Offset: -1, Err: outcrop.ErrRefused, Msg: msg}
}

// survey is what one pass over a prefix tells.
type survey struct {
	length      outcrop.Seq
	open        bool
	turn        int         // the open turn
	turnText    string      // as its turn/start has it
	start       outcrop.Seq // its turn/start
	stepEnd     outcrop.Seq // its last step/end, -1 without one
	stepTime    int64
	userMessage bool // the last event of the prefix is a user/message
}

// survey reads the prefix through at in one pass, checks the surface in it, and
// says what is open at its end. Memory grows with the surface alone.
func (f *forking) survey(ctx context.Context, at outcrop.Seq) (survey, error) {
	sd, err := f.st.Read(ctx, f.parent)
	if err != nil {
		return survey{}, err
	}
	defer sd.Close()
	s := survey{stepEnd: -1}
	var failed error
	stream := cancellable(ctx, sd.Records())
	_, err = outcrop.FoldSurface(func(yield func(outcrop.Record) bool) {
		for r, err := range stream {
			if err != nil {
				failed = err
				return
			}
			if at >= 0 && r.Seq > at {
				return
			}
			if r.Run == nil {
				s.add(&r.Event)
			} else {
				s.userMessage = false
			}
			s.length = r.Last() + 1
			if at >= 0 && s.length > at {
				s.length = at + 1
			}
			if !yield(r) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return s, Problem("fork", f.parent, err, "", "fork before that event")
	case failed != nil && (at < 0 || s.length <= at):
		return s, Problem("fork", f.parent, failed, "", "fork before the damage")
	case s.length <= at:
		last := "the log is empty"
		if s.length > 0 {
			last = fmt.Sprintf("the last event is %d", s.length-1)
		}
		return s, f.invalid(at, last)
	}
	return s, nil
}

func (s *survey) add(e *outcrop.Event) {
	s.userMessage = e.Type == outcrop.TypeUserMessage
	switch e.Type {
	case outcrop.TypeTurnStart:
		text := jsonwire.Get(e.Data, "turn")
		n, _ := jsonwire.Int(text)
		s.open, s.turn, s.turnText, s.start, s.stepEnd = true, int(n), string(text), e.Seq, -1
	case outcrop.TypeTurnEnd:
		s.open = false
	case outcrop.TypeStepEnd:
		s.stepEnd, s.stepTime = e.Seq, e.Time
	}
}

// put publishes the child from decoded events: those through cut.Boundary, then
// extra, then session/end-seed.
func (f *forking) put(ctx context.Context, cut Cut, extra *outcrop.Event) (Cut, error) {
	sd, err := f.st.Read(ctx, f.parent)
	if err != nil {
		return Cut{}, err
	}
	defer sd.Close()
	length := cut.Boundary + 1
	cut.Header = sd.Header().Child(f.child.ID, f.child.CreatedAt, int64(length))
	err = f.st.Put(ctx, cut.Header, func(yield func(outcrop.Record, error) bool) {
		seq, last := outcrop.Seq(0), outcrop.Type("")
		for r, err := range head(cancellable(ctx, sd.Records()), length) {
			// A child has another id: what an old shape leaves out is made
			// from the parent's.
			r.Event = r.Event.Current()
			if !yield(r, err) || err != nil {
				return
			}
			seq, last = r.Last()+1, r.Type
		}
		if extra != nil {
			if !yield(outcrop.Record{Event: *extra}, nil) {
				return
			}
			seq, last = seq+1, extra.Type
		}
		for _, e := range f.finish(seq, last) {
			yield(outcrop.Record{Event: e}, nil)
		}
	})
	return cut, err
}

// head is the first n events of a stream; a run across the border is cut.
func head(recs iter.Seq2[outcrop.Record, error], n outcrop.Seq) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		if n <= 0 {
			return
		}
		for r, err := range recs {
			if err == nil && r.Run != nil && r.Last() >= n {
				run := r.Run.Head(int(n - r.Run.First))
				r = outcrop.RunRecord(&run)
			}
			if !yield(r, err) || err != nil || r.Last() >= n-1 {
				return
			}
		}
	}
}
