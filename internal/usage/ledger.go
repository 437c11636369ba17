package usage

import "github.com/outcrop-dev/outcrop"

// Account is what one session took.
type Account struct {
	Own       Sum // its own calls
	Inherited Sum // those that it was forked with
}

// Add adds a call of the session.
func (a *Account) Add(c *Call) {
	if c.Inherited {
		a.Inherited.Add(c)
	} else {
		a.Own.Add(c)
	}
}

// Ledger adds up many sessions. A call that a session inherited is the same
// event as in the session that made it, with the same seq and time, so each is
// counted once: from who made it, or, when that session is not there any more,
// from one that inherited it. The order of adding does not count. The zero value
// is ready. Memory grows with the number of calls.
type Ledger struct {
	made      map[mark]bool
	inherited map[mark]Call
	own       Sum
}

// mark tells a call from every other one.
type mark struct {
	purpose             string
	turn, step, attempt int
	seq                 outcrop.Seq
	time                int64
	input, output       int64
}

func markOf(c *Call) mark {
	m := mark{purpose: c.Purpose, turn: c.Turn, step: c.Step, attempt: c.Attempt, seq: c.Seq, time: c.Time}
	if c.Usage != nil {
		m.input, m.output = c.Usage.InputTokens, c.Usage.OutputTokens
	}
	return m
}

// Add adds a call of any session.
func (l *Ledger) Add(c *Call) {
	if l.made == nil {
		l.made, l.inherited = map[mark]bool{}, map[mark]Call{}
	}
	if c.Inherited {
		l.inherited[markOf(c)] = *c
		return
	}
	l.made[markOf(c)] = true
	l.own.Add(c)
}

// Sum is the sum of all calls, each counted once.
func (l *Ledger) Sum() Sum {
	s := l.own
	for m, c := range l.inherited {
		if !l.made[m] {
			s.Add(&c)
		}
	}
	return s
}
