package llm

import (
	"math/bits"

	"github.com/outcrop-dev/outcrop/message"
)

// Price is what a model costs, in micro-dollars per million tokens of each
// class; 1 dollar per million tokens is 1,000,000. A model that costs nothing
// has a zero Price; one whose price is unknown has none.
type Price struct {
	Input      int64
	CacheRead  int64
	CacheWrite int64
	Output     int64 // reasoning included
}

// Cost is what a call cost, in micro-dollars, the sum rounded half up. ok is
// false when it cannot be said: price or usage unknown, or figures that make
// no sense. It is never 0 in the place of unknown.
func Cost(u *message.Usage, p *Price) (microUSD int64, ok bool) {
	if u == nil || p == nil {
		return 0, false
	}
	var hi, lo uint64
	for _, class := range [...]struct{ tokens, price int64 }{
		{u.InputTokens, p.Input},
		{orZero(u.CacheReadTokens), p.CacheRead},
		{orZero(u.CacheWriteTokens), p.CacheWrite},
		{u.OutputTokens, p.Output},
	} {
		if class.tokens < 0 || class.price < 0 {
			return 0, false
		}
		h, l := bits.Mul64(uint64(class.tokens), uint64(class.price))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	const million = 1_000_000
	var carry uint64
	lo, carry = bits.Add64(lo, million/2, 0)
	hi += carry
	if hi >= million {
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, million)
	if q > 1<<63-1 {
		return 0, false
	}
	return int64(q), true
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
