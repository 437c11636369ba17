package outcrop

import (
	"math"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Codes of a refused fork, those of dsh.
const (
	CodeInvalidBoundary Code = "INVALID_BOUNDARY"
	CodeOpenTurn        Code = "OPEN_TURN"
	CodeSessionExists   Code = "SESSION_ALREADY_EXISTS"
	CodeSessionNotFound Code = "SESSION_NOT_FOUND"
)

// Latest stands for the last event of a log as the boundary of a fork; of an
// empty log it takes nothing.
const Latest Seq = math.MinInt64

// Fork gives the header and the seed of a child that inherits a log's events
// up to and including boundary; Seed makes the session from them. With
// boundary Latest the child inherits the whole log.
//
// The inherited part must not end inside a turn (OPEN_TURN); any turn/end is
// a legal end, and so are events between turns. The child keeps cwd, depth,
// origin and preset, and names its parent and how much it inherits.
func Fork(parent Header, log Log, boundary Seq, childID string, createdAt int64) (Header, Log, error) {
	n := Seq(log.Len())
	fail := func(code Code, msg string) (Header, Log, error) {
		e := refuse(code, boundary, msg)
		e.Op, e.Session = "fork", parent.ID
		return Header{}, nil, e
	}
	if boundary == Latest {
		boundary = n - 1
	} else if boundary < 0 || boundary >= n {
		last := "the log is empty"
		if n > 0 {
			last = "the last event is " + itoa(int64(n-1))
		}
		return fail(CodeInvalidBoundary, "no such event: "+last)
	}
	seed := Prefix(log, int(boundary)+1)
	if turn, _, open := OpenTurn(seed); open {
		return fail(CodeOpenTurn, "turn "+itoa(int64(turn))+" is open there; a fork begins between turns")
	}
	return parent.Child(childID, createdAt, int64(boundary)+1), seed, nil
}

// ForkPoint finds where a fork at seq can be cut when seq lies inside a turn:
// it moves down to the last step/end of that turn at or below seq, and
// interrupted tells that the seed then needs a turn/end. Without such a
// step/end, when seq is a user message, and when the turn has no number that a
// turn/end could carry, the turn is left out altogether.
// length is how many events are inherited.
func ForkPoint(log Log, seq Seq) (length Seq, interrupted bool) {
	prefix := Prefix(log, int(seq)+1)
	start, turn := lastBoundary(prefix)
	if start < 0 {
		return Seq(prefix.Len()), false
	}
	if n, _ := jsonwire.Int(turn); n < 1 || prefix.At(seq).Type == TypeUserMessage {
		return start, false
	}
	cut := Seq(-1)
	for r := range prefix.Records(start) {
		if r.Run == nil && r.Type == TypeStepEnd {
			cut = r.Seq
		}
	}
	if cut < 0 {
		return start, false
	}
	return cut + 1, true
}
