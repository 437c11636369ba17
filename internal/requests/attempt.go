package requests

import (
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// Attempt is one model call that the log shows.
type Attempt struct {
	Turn, Step int
	N          int         // number of the attempt, from 1
	Prefix     outcrop.Seq // last event that the request was built from
	Recorded   string      // digest in outcrop/request, "" when there is none
	Encoder    string      // in outcrop/request, "" when there is none
	MaxOutput  int64       // in outcrop/request, 0 when there is none
	Images     bool        // images were sent as such
	OK         bool        // the step's assistant/message was made from it

	chunks outcrop.Seq // its first chunk, -1 when none was logged
	end    outcrop.Seq // its last chunk
}

// Next stands for the request that was not made yet: the one that a log gives
// after its last event.
func Next(last outcrop.Seq) Attempt { return Attempt{Prefix: last, chunks: -1, end: -1} }

// String names the attempt for a person.
func (at *Attempt) String() string {
	if at.Turn == 0 {
		return "the next request"
	}
	return fmt.Sprintf("turn %d step %d attempt %d", at.Turn, at.Step, at.N)
}

// Pick chooses among the attempts of a step: the one with number n, or, when n
// is 0, the one that succeeded, else the last. An error says what there is
// instead.
func Pick(all []Attempt, turn, step, n int) (index int, err error) {
	index = -1
	steps, tries := 0, 0
	for i, at := range all {
		if at.Turn != turn {
			continue
		}
		steps = max(steps, at.Step)
		if at.Step != step {
			continue
		}
		tries = max(tries, at.N)
		switch {
		case n > 0 && at.N == n:
			index = i
		case n == 0 && (index < 0 || at.OK || !all[index].OK):
			index = i
		}
	}
	switch {
	case index >= 0:
		return index, nil
	case tries > 0:
		return -1, fmt.Errorf("turn %d step %d has no attempt %d: it has %s", turn, step, n, term.Plural(tries, "attempt"))
	case steps > 0:
		return -1, fmt.Errorf("turn %d has no step %d: it has %s", turn, step, term.Plural(steps, "step"))
	}
	last := 0
	for _, at := range all {
		last = max(last, at.Turn)
	}
	if last == 0 {
		return -1, errors.New("the log has no model call")
	}
	return -1, fmt.Errorf("turn %d made no model call: the last turn that did is %d", turn, last)
}
