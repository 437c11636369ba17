package history

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// planned notes a compaction that is only told. What the deed would refuse
// before a model is asked is refused here too.
func (o *op) planned(c Compaction, j job, rule rules) error {
	return o.ed.Edit(o.ctx, func(s *outcrop.Session) error {
		mt := o.m.meter
		r, err := c.rangeOf(s, mt, rule)
		if err != nil {
			return err
		}
		src, err := o.sourceOf(s, j)
		if err != nil {
			return err
		}
		b := bracketFor(s, c.ID, c.CommandID)
		c.Recall = !rule.counted && src.recalls()
		if err := c.worthwhile(s.ID(), mt, r, b, rule); err != nil {
			return err
		}
		most := rule.most(r.tokens)
		if !rule.counted {
			most = min(most, rule.count(mt, c.checkpoint(b, r.seqs))+o.longest(j))
		}
		o.rep.Planned = append(o.rep.Planned, Planned{
			Kind: KindCompaction, Nodes: j.seqs, Level: j.level,
			Tokens: r.tokens, AtMost: most, Invalidates: mt.Cached(r.from),
		})
		return nil
	})
}

// longest is the price of the longest summary that is taken: twice what was
// asked for.
func (o *op) longest(j job) int64 {
	return o.m.meter.Unscale(2 * min(o.m.meter.Scale(j.most), maxSummary))
}

// within reports whether a summary is no longer than longest.
func (o *op) within(j job, summary []message.Block) bool {
	return o.m.meter.Count(message.Message{Content: summary}) <= o.longest(j)
}

// plannedPrunes notes results that would be shortened, and by how much.
func (o *op) plannedPrunes(list []shorter) error {
	return o.ed.Edit(o.ctx, func(s *outcrop.Session) error {
		mt := o.m.meter
		edits, _, err := planPrunes(s, mt, list, rules{counted: o.m.o.Policy == DSH})
		for _, e := range edits {
			o.rep.Planned = append(o.rep.Planned, Planned{
				Kind: KindPrune, Nodes: e.Shadowed, Tokens: e.TokensBefore, AtMost: e.TokensAfter, Invalidates: e.CacheInvalidated})
		}
		return err
	})
}

// afterPlanned is how many tokens the next request would have, at most.
func (o *op) afterPlanned() int64 {
	mt := o.m.meter
	first, saved := mt.Len(), int64(0)
	for _, p := range o.rep.Planned {
		first = min(first, mt.Index(p.Nodes[0]))
		saved += p.Tokens - p.AtMost
	}
	if saved == 0 {
		return mt.Used()
	}
	return mt.UsedWithout(first, saved)
}
