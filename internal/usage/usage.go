// Package usage counts what model calls took: tokens in four classes, and cost
// in micro-dollars from the prices that are known.
//
// # Calls
//
// A call is one attempt at a request, found in a log in one pass. It begins with
// outcrop/request, or where a log has none with its first chunk, and ends with
// its assistant/message, with the next attempt, or with its step. Of the usage
// that an attempt reported the last one counts, once: that of its
// assistant/message, else that of its last usage chunk. A failed attempt counts
// what its provider reported.
//
// Calls for other purposes are counted too. The calls that a summary is made of
// are one entry, because the log has the sum of their usage
// (compaction/summary); a call whose usage is not in it is an entry by itself
// (outcrop/summarizer-usage). A call that the log only announces
// (outcrop/summarizer-call) has no usage.
//
// # Forks
//
// Events below the header's seedLength were inherited: their calls belong to the
// session that made them, and are marked. Nothing else is inherited, however
// often session/end-seed stands in the log. A Ledger adds up sessions and counts
// each call once, also when the session that made it is gone.
//
// # Cost
//
// A call costs what its usage times the price of its model gives. It is unknown,
// never 0, when either is; then the cost of a sum that holds it is unknown too.
// An attempt that failed before anything came back, without a word on usage,
// counts as free; a sum of nothing but such attempts is unknown all the same
// when the price of a model is.
package usage

import (
	"math"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Outcome is how a call ended.
type Outcome string

const (
	Answered    Outcome = "answered"
	Failed      Outcome = "failed"      // an error, or cut off
	Interrupted Outcome = "interrupted" // cancelled
	Open        Outcome = "open"        // the log ends before the call does
)

// Price says what a model costs, nil when that is not known.
type Price func(provider, model string) *llm.Price

// Call is one attempt, or the calls of one compaction.
type Call struct {
	Purpose  string      // turn, compaction, title, or what the log has
	Turn     int         // 0 outside a turn
	Step     int         // 0 for other purposes than turn
	Attempt  int         // from 1; 0 for other purposes than turn
	Calls    int         // model calls that the entry stands for
	Seq      outcrop.Seq // the event that ended the call
	Time     int64       // of that event, Unix milliseconds
	Provider string
	Model    string
	Outcome  Outcome
	// Usage is what the provider reported, nil when it did not, or nonsense.
	Usage *message.Usage
	// Cost is in micro-dollars, nil when unknown.
	Cost *int64
	// Unpriced says that the call had a cost, which is unknown.
	Unpriced bool
	// NoPrice says that it had no cost, and that the price of its model is not
	// known.
	NoPrice bool
	// CacheBreak is why the request cannot begin as the one before it did:
	// "header" or "edit", "" when it can.
	CacheBreak string
	// Inherited says that the call was made by the session that this one was
	// forked from.
	Inherited bool
}

// Sum is what calls took together. The counters stop at the largest number.
type Sum struct {
	Calls      int64
	Failed     int64 // of Calls: attempts that failed
	Known      int64 // entries with usage
	Unpriced   int64 // entries whose cost is unknown
	NoPrice    int64 // free entries whose model has no known price
	Input      int64 // tokens, without what came from or went to the cache
	CacheRead  int64
	CacheWrite int64
	Output     int64 // reasoning included
	Reasoning  int64
	Cost       int64 // micro-dollars, of the entries whose cost is known
}

// Add adds a call.
func (s *Sum) Add(c *Call) {
	s.Calls = plus(s.Calls, int64(c.Calls))
	if c.Outcome == Failed {
		s.Failed = plus(s.Failed, int64(c.Calls))
	}
	if u := c.Usage; u != nil {
		s.Known++
		s.Input = plus(s.Input, u.InputTokens)
		s.Output = plus(s.Output, u.OutputTokens)
		s.CacheRead = plus(s.CacheRead, orZero(u.CacheReadTokens))
		s.CacheWrite = plus(s.CacheWrite, orZero(u.CacheWriteTokens))
		s.Reasoning = plus(s.Reasoning, orZero(u.ReasoningTokens))
	}
	if c.Cost != nil {
		s.Cost = plus(s.Cost, *c.Cost)
	}
	if c.Unpriced {
		s.Unpriced++
	}
	if c.NoPrice {
		s.NoPrice++
	}
}

// AddSum adds what another sum holds.
func (s *Sum) AddSum(o Sum) {
	for _, p := range [...]struct {
		to   *int64
		from int64
	}{{&s.Calls, o.Calls}, {&s.Failed, o.Failed}, {&s.Known, o.Known}, {&s.Unpriced, o.Unpriced}, {&s.NoPrice, o.NoPrice}, {&s.Input, o.Input},
		{&s.CacheRead, o.CacheRead}, {&s.CacheWrite, o.CacheWrite}, {&s.Output, o.Output}, {&s.Reasoning, o.Reasoning}, {&s.Cost, o.Cost}} {
		*p.to = plus(*p.to, p.from)
	}
}

// Total is the cost of everything in the sum; ok is false when it is not known.
func (s *Sum) Total() (microUSD int64, ok bool) {
	return s.Cost, s.Unpriced == 0 && (s.Cost > 0 || s.NoPrice == 0)
}

func plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// sensible is a usage, or nil when a number of it is negative.
func sensible(u *message.Usage) *message.Usage {
	if u == nil || u.InputTokens < 0 || u.OutputTokens < 0 || orZero(u.CacheReadTokens) < 0 ||
		orZero(u.CacheWriteTokens) < 0 || orZero(u.ReasoningTokens) < 0 {
		return nil
	}
	return u
}
