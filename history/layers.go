package history

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/llm"
)

// The numbers of the policy layers.
const (
	maxRuns      = 3    // raw runs a pass condenses
	maxCalls     = 8    // calls of the summariser a pass makes
	mergeAt      = 4    // checkpoints of one level that are merged
	mergeShrink  = 0.6  // what a merge must shrink to
	maxSummary   = 8192 // tokens of a checkpoint, at most
	leastSummary = 256
	framePrice   = 160 // about what stands around a summary
)

// job is one bracket that a plan asks for.
type job struct {
	seqs  []outcrop.Seq // the range
	level int
	most  int64 // price of the summary
	merge bool  // of checkpoints; it must shrink to mergeShrink
}

// plan is what a pass of the policy layers does, in this order.
type plan struct {
	group *job  // the last group of checkpoints of one level, merged first
	runs  []job // raw text, oldest first
}

// planning is the surface as the policy layers sees it. All amounts are prices.
type planning struct {
	m     *meter.Meter
	frame int64 // of a checkpoint without its summary
	limit int64 // 0: unknown
	keep  int64 // of the tail
	least int64 // a run under it stays raw
	pins  map[outcrop.Seq]bool
	comes bool // a newer prompt enters with the next step

	ex        []meter.Exchange
	tail      int    // the first exchange of the tail
	protected []bool // by exchange; the tail is protected too
	newest    int    // the exchange of the newest checkpoint before the tail, -1
}

// look finds exchanges, tail and what is protected.
func (p *planning) look() {
	p.ex = p.m.Exchanges(p.ex[:0], 0)
	p.tail = len(p.ex)
	var sum int64
	for p.tail > 0 {
		e := p.ex[p.tail-1]
		sum += p.m.Sum(e.From, e.To)
		if sum > p.keep && p.tail < len(p.ex) {
			break
		}
		p.tail--
	}
	p.protected = make([]bool, len(p.ex))
	p.newest = -1
	contexts := map[string]bool{}
	prompt, current := -1, -1 // exchanges: the newest prompt, that of the open turn
	turn := p.m.OpenTurn()
	for i := len(p.ex) - 1; i >= 0; i-- {
		if i >= p.tail {
			p.protected[i] = true
		}
		for at := p.ex[i].To - 1; at >= p.ex[i].From; at-- {
			n := p.m.Node(at)
			switch n.Kind {
			case meter.Prompt:
				if prompt < 0 {
					prompt = i
				}
				if turn >= 0 && n.Seq > turn {
					current = i // the oldest of the turn is met last
				}
			case meter.Context:
				if n.Tokens > 0 && !contexts[n.Name] {
					contexts[n.Name] = true
					p.protected[i] = true
				}
			case meter.Checkpoint:
				if p.newest < 0 && i < p.tail {
					p.newest = i
				}
			}
			if p.pins[n.Seq] {
				p.protected[i] = true
			}
		}
	}
	if prompt >= 0 && !p.comes {
		p.protected[prompt] = true
	}
	if current >= 0 {
		p.protected[current] = true
	}
}

func (p *planning) price(from, to int) int64 { // of exchanges
	if from >= to {
		return 0
	}
	return p.m.Sum(p.ex[from].From, p.ex[to-1].To)
}

func (p *planning) level(i int) int {
	return p.m.Node(p.ex[i].From).Level
}

// summaryCap is the most that the summary of one checkpoint may have.
func (p *planning) summaryCap() int64 {
	if p.limit <= 0 {
		return maxSummary
	}
	return max(leastSummary, min(maxSummary, p.limit/16))
}

func (p *planning) job(from, to, level int, merge bool) job {
	j := job{level: level, merge: merge, most: p.summaryCap()}
	j.seqs = append(j.seqs, p.m.Seqs()[p.ex[from].From:p.ex[to-1].To]...)
	if merge {
		j.most = min(j.most, max(leastSummary/4, int64(float64(p.price(from, to))*mergeShrink)-framePrice))
	}
	return j
}

// plan chooses the runs and the group.
func (p *planning) plan() plan {
	p.look()
	var out plan
	out.group = p.lastGroup()
	for i := p.newest + 1; i < p.tail && len(out.runs) < maxRuns; {
		if p.protected[i] {
			i++
			continue
		}
		j := i
		for j < p.tail && !p.protected[j] {
			j++
		}
		if n := p.price(i, j); j-i >= 2 && n >= p.least && n > p.frame+1 {
			out.runs = append(out.runs, p.job(i, j, 1, false))
		}
		i = j
	}
	return out
}

// stretches yields the stretches between protected exchanges, up to the newest
// checkpoint.
func (p *planning) stretches(yield func(from, to int) bool) {
	for i := 0; i <= p.newest; {
		if p.protected[i] {
			i++
			continue
		}
		j := i
		for j <= p.newest && !p.protected[j] {
			j++
		}
		if !yield(i, j) {
			return
		}
		i = j
	}
}

// lastGroup is the last group of four or more checkpoints of one level between
// which nothing is protected. What no longer is (an old prompt) goes with them.
// The whole group is taken, so that levels never rise from head to tail.
func (p *planning) lastGroup() *job {
	var found *job
	p.stretches(func(from, to int) bool {
		first, last, n := -1, -1, 0
		flush := func() {
			if n >= mergeAt {
				j := p.job(first, last+1, p.level(first)+1, true)
				found = &j
			}
		}
		for i := from; i < to; i++ {
			switch l := p.level(i); {
			case l == 0:
			case n > 0 && l == p.level(first):
				last = i
				n++
			default:
				flush()
				first, last, n = i, i, 1
			}
		}
		flush()
		return true
	})
	return found
}

// oldestPair is what is merged when checkpoints, and what is left between
// them, take more than a quarter of the limit: the first two neighbours.
func (p *planning) oldestPair() *job {
	var total int64
	var found *job
	p.stretches(func(from, to int) bool {
		total += p.price(from, to)
		if found == nil && to-from >= 2 {
			a, b := p.level(from), p.level(from+1)
			level := max(a, b)
			if a == b {
				level++
			}
			j := p.job(from, from+2, max(level, 1), true)
			found = &j
		}
		return true
	})
	if p.limit <= 0 || total <= p.limit/4 {
		return nil
	}
	return found
}

// prunes are the results to shorten so that need is saved: from the newest
// before the tail backwards, so that most of the prefix stays. Nothing when
// that cannot be reached.
func (p *planning) prunes(need int64) (list []*meter.Node) {
	for i := p.tail - 1; i >= 0; i-- {
		if p.pinned(i) {
			continue
		}
		for at := p.ex[i].To - 1; at >= p.ex[i].From; at-- {
			n := p.m.Node(at)
			if !prunable(n) {
				continue
			}
			list = append(list, n)
			if need -= saved(n); need <= 0 {
				return list
			}
		}
	}
	return nil
}

// allPrunes are all results that may be shortened from exchange from on up to
// to.
func (p *planning) allPrunes(from, to int) (list []*meter.Node) {
	for i := from; i < to; i++ {
		if p.pinned(i) {
			continue
		}
		for at := p.ex[i].From; at < p.ex[i].To; at++ {
			if n := p.m.Node(at); prunable(n) {
				list = append(list, n)
			}
		}
	}
	return list
}

func (p *planning) pinned(i int) bool {
	if len(p.pins) == 0 {
		return false
	}
	for at := p.ex[i].From; at < p.ex[i].To; at++ {
		if p.pins[p.m.Node(at).Seq] {
			return true
		}
	}
	return false
}

// irreducible says what fills the window when nothing can be taken away.
func (p *planning) irreducible(window int64) string {
	system, tools := p.m.Before()
	var pinned, summaries, other int64
	for i := 0; i < p.tail; i++ {
		n := p.price(i, i+1)
		switch {
		case p.pinned(i):
			pinned += n
		case p.level(i) > 0:
			summaries += n
		default:
			other += n
		}
	}
	parts := []string{}
	for _, part := range []struct {
		name  string
		price int64
	}{
		{"system", system + tools}, {"pinned", pinned}, {"checkpoints", summaries}, {"prompt and contexts", other},
		{"newest step", p.price(p.tail, len(p.ex))},
	} {
		if part.price > 0 {
			parts = append(parts, part.name+" "+llm.Thousands(p.m.Scale(part.price)))
		}
	}
	msg := "context cannot be reduced further: " + strings.Join(parts, ", ")
	if window > 0 {
		msg += " of " + llm.Thousands(window)
	}
	return fmt.Sprintf("%s; prune a result by hand, end a pin, rewind, or fork from an earlier turn", msg)
}
