package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// trigger is why an operation runs.
type trigger uint8

const (
	pressure trigger = iota
	overflow
	byHand
)

// op is one operation of a Manager, from look to report.
type op struct {
	m   *Manager
	ctx context.Context
	ed  Editor
	why trigger

	command   string
	modelFree bool
	dry       bool
	coming    int64 // price of what enters with the next step
	prompt    bool  // a prompt is among it
	calls     int   // of the summariser in this pass

	log   outcrop.Log
	pins  map[outcrop.Seq]bool
	dsh   bool      // the session must stay readable for dsh
	snap  *snapshot // what the requests of this pass are made from
	rep   Report
	fails error // of the summariser, where a digest took its place
}

// begin starts an operation; done ends it.
func (m *Manager) begin(ctx context.Context, ed Editor, why trigger) (o *op, done func(), err error) {
	if !m.mu.TryLock() {
		return nil, nil, refuse("history", m.session, CodeBusy, -1, "another history operation runs", "wait for it")
	}
	o = &op{m: m, ctx: ctx, ed: ed, why: why}
	if err := o.look(); err != nil {
		m.mu.Unlock()
		return nil, nil, err
	}
	o.rep.Before = m.meter.Used()
	return o, m.mu.Unlock, nil
}

// look brings what the manager knows of the session up to date.
func (o *op) look() error {
	return o.ed.Edit(o.ctx, func(s *outcrop.Session) error {
		update(o.m.meter, s)
		o.log = s.Log()
		o.dsh = s.Header().Compatible()
		o.m.session = s.ID()
		o.pins = o.m.meter.Pins()
		return nil
	})
}

// report ends an operation. A refusal is the session's good state and stays in
// the report; anything else is the caller's.
func (o *op) report(err error) (Report, error) {
	if cerr := o.ctx.Err(); cerr != nil {
		return o.rep, cerr
	}
	if lerr := o.look(); lerr != nil {
		return o.rep, lerr
	}
	o.rep.After = o.m.meter.Used()
	if o.dry {
		o.rep.After = o.afterPlanned()
	}
	o.rep.Calls = o.calls
	if err == nil {
		o.rep.Err = o.fails
		return o.rep, nil
	}
	o.rep.Err = err
	if o.why != byHand {
		o.m.brk.trip(o.m.meter)
		// By hand the error goes to who asked.
		level := slog.LevelWarn
		if o.fails != nil {
			level = slog.LevelInfo // a notice was given
		}
		o.m.log.Log(o.ctx, level, "history operation", "session", o.m.session, "code", string(outcrop.CodeOf(err)), "err", err)
	}
	if errors.Is(err, outcrop.ErrRefused) || errors.Is(err, outcrop.ErrVetoed) {
		return o.rep, nil
	}
	return o.rep, err
}

// planning makes the view of the policy layers. keep is in tokens.
func (o *op) planning(keep, least int64) *planning {
	mt := o.m.meter
	return &planning{m: mt, frame: framed(mt), limit: mt.Unscale(o.m.o.Limit()), keep: mt.Unscale(keep), least: mt.Unscale(least), pins: o.pins, comes: o.prompt}
}

func (o *op) keepTokens() int64 { return int64(o.m.o.Keep * float64(o.m.o.Window)) }

// over is how many tokens the next request has beyond the limit; negative when
// it has room.
func (o *op) over() int64 {
	return o.m.meter.Used() + o.m.meter.Scale(o.coming) - o.m.o.Limit()
}

// pressure is the pass of the policy layers before a step.
func (o *op) pressure() error {
	limit := o.m.o.Limit()
	if limit == 0 {
		return nil
	}
	over := o.over()
	if over < 0 {
		o.m.told = false
		return nil
	}
	if o.m.o.Off {
		o.tellFull(over + limit)
		return nil
	}
	if o.m.brk.holds(o.m.meter, o.m.meter.Unscale(limit), o.prompt) {
		return nil
	}
	p := o.planning(o.keepTokens(), limit/20)
	p.look()
	// Shortening results costs no call and leaves the prefix, but only when it
	// gives enough room for some steps.
	if list := p.prunes(o.m.meter.Unscale(max(over+limit/10, limit/50))); list != nil {
		return o.pruneNodes(list)
	}
	if err := o.reduce(p); err != nil {
		return err
	}
	if err := o.look(); err != nil {
		return err
	}
	if o.over() >= 0 {
		o.tellIrreducible(p)
		if len(o.rep.Edits) > 0 {
			o.m.brk.trip(o.m.meter)
		}
	}
	return nil
}

// reduce merges a group, condenses the raw runs, and merges the oldest
// checkpoints while they take too much.
func (o *op) reduce(p *planning) error {
	plan := p.plan()
	if plan.group != nil {
		if err := o.run(*plan.group); err != nil {
			return err
		}
	}
	for _, j := range plan.runs {
		if err := o.run(j); err != nil {
			return err
		}
	}
	if o.dry { // what is merged then depends on what the summaries are
		return nil
	}
	for range maxCalls {
		if err := o.look(); err != nil {
			return err
		}
		p.look()
		pair := p.oldestPair()
		if pair == nil {
			return nil
		}
		if err := o.run(*pair); err != nil {
			return err
		}
	}
	return nil
}

// overflow is the pass of the policy layers after a request that was too long:
// the tail is the newest exchange alone. What the rules protect from pruning is
// shortened only when nothing else is left, and only results that are large.
func (o *op) overflow() error {
	p := o.planning(0, 0)
	p.look()
	if list := p.allPrunes(0, p.tail); list != nil {
		if err := o.pruneNodes(list); err != nil {
			return err
		}
		if err := o.look(); err != nil {
			return err
		}
		p.look()
	}
	if err := o.reduce(p); err != nil && len(o.rep.Edits) == 0 {
		return err
	}
	if len(o.rep.Edits) > 0 {
		return nil
	}
	if list := p.allPrunes(p.tail, len(p.ex)); list != nil {
		return o.pruneNodes(list)
	}
	o.tellIrreducible(p)
	return nil
}

// hand is a compaction by hand of the policy layers: all but the newest
// exchange and what is protected, small runs too.
func (o *op) hand() error { return o.reduce(o.planning(0, 0)) }

// explicit condenses a range that somebody named.
func (o *op) explicit(start, end outcrop.Seq) error {
	mt := o.m.meter
	from, to, err := ends(o.m.session, o.log, mt, start, end)
	if err != nil {
		return err
	}
	j := job{level: 1, most: o.planning(0, 0).summaryCap(), seqs: mt.Seqs()[from : to+1]}
	if o.m.o.Policy == DSH {
		j.level, j.most = 0, dshSummary
	}
	for i := from; i <= to; i++ {
		if o.pins[j.seqs[i-from]] {
			return refuse("compact", o.m.session, CodeProtected, j.seqs[i-from], "the node is pinned", "end the pin first")
		}
		if o.m.o.Policy == Layers {
			j.level = max(j.level, mt.Node(i).Level+1)
		}
	}
	return o.run(j)
}

// run carries out one bracket.
func (o *op) run(j job) error {
	if err := o.ctx.Err(); err != nil {
		return err
	}
	c := Compaction{CommandID: o.command, Start: j.seqs[0], End: j.seqs[len(j.seqs)-1], Level: j.level}
	rule := rules{counted: o.m.o.Policy == DSH}
	if j.merge {
		rule.shrink = mergeShrink
	}
	if o.dry {
		return o.planned(c, j, rule)
	}
	if o.m.o.NewID != nil {
		c.ID = o.m.o.NewID()
	}
	var (
		b   bracket
		r   span
		src source
		was []outcrop.Seq
	)
	err := o.ed.Edit(o.ctx, func(s *outcrop.Session) (err error) {
		update(o.m.meter, s)
		if err := o.closeOwn(s); err != nil {
			return err
		}
		if r, err = c.rangeOf(s, o.m.meter, rule); err != nil {
			return err
		}
		if !slices.Equal(r.seqs, j.seqs) {
			return o.changed(c.Start)
		}
		was = o.m.meter.Seqs()
		b = bracketFor(s, c.ID, c.CommandID)
		c.ID = b.id
		if src, err = o.sourceOf(s, j); err != nil {
			return err
		}
		c.Recall = !rule.counted && src.recalls()
		if err := c.worthwhile(s.ID(), o.m.meter, r, b, rule); err != nil {
			return err
		}
		_, err = s.Append(outcrop.CompactionStart{CompactionID: b.id, SourceCommandID: b.command, Turn: b.turn})
		if err == nil {
			o.m.own = &b
		}
		return err
	})
	if err != nil {
		return err
	}
	free, calls, err := o.fill(&c, b, r, src, j, rule)
	var e Edit
	if err == nil {
		err = o.ed.Edit(o.ctx, func(s *outcrop.Session) (err error) {
			update(o.m.meter, s)
			now := o.m.meter.Index(c.Start)
			if now < 0 || now+len(r.seqs) > o.m.meter.Len() || !slices.Equal(o.m.meter.Seqs()[now:now+len(r.seqs)], r.seqs) ||
				rule.counted && o.why != byHand && changedSince(was, o.m.meter.Seqs()) {
				return o.changed(c.Start)
			}
			if r, err = c.bordersOf(s, o.m.meter, rule, now, now+len(r.seqs)); err != nil {
				return err
			}
			if err := o.ctx.Err(); err != nil {
				return err
			}
			if e, err = c.commit(s, o.m.meter, r, b, rule, calls.uncounted(!free)...); err == nil {
				o.m.own = nil
			}
			return err
		})
	}
	if err != nil {
		return errors.Join(err, o.fail(b, err, calls))
	}
	e.ModelFree = free
	o.rep.Edits = append(o.rep.Edits, e)
	return nil
}

// sourceOf is what the requests about a range are made from: the snapshot of the
// pass, or a new one when the range was not on the surface then.
func (o *op) sourceOf(s *outcrop.Session, j job) (source, error) {
	if o.snap != nil {
		if src, ok := o.snap.source(j); ok {
			return src, nil
		}
	}
	snap, err := o.take(s)
	if err != nil {
		return source{}, err
	}
	o.snap = snap
	src, ok := snap.source(j)
	if !ok {
		return source{}, o.changed(j.seqs[0])
	}
	return src, nil
}

func (o *op) changed(seq outcrop.Seq) error {
	return refuse("compact", o.m.session, CodeChanged, seq, "the range is not what it was when the summary was asked for", "compact again")
}

// fail writes the end of a bracket that came to nothing, also when the caller
// was cancelled, with what its calls took.
func (o *op) fail(b bracket, why error, calls calls) error {
	return o.ed.Edit(context.WithoutCancel(o.ctx), func(s *outcrop.Session) error {
		if openBracket(s) != b.id {
			o.m.own = nil
			return nil
		}
		_, err := s.AppendAll(append(calls.uncounted(false), b.failed(reason(why)))...)
		if err == nil {
			o.m.own = nil
		}
		return err
	})
}

// closeOwn ends a bracket of ours whose end could not be written when it was
// due.
func (o *op) closeOwn(s *outcrop.Session) error {
	own := o.m.own
	if own == nil || openBracket(s) != own.id {
		o.m.own = nil
		return nil
	}
	if _, err := s.AppendAll(own.failed("abandoned")); err != nil {
		return err
	}
	o.m.own = nil
	return nil
}

// fill gets a summary: from the summariser, and in the policy layers, where
// that fails, from the digest. It gives back the calls that were made.
func (o *op) fill(c *Compaction, b bracket, r span, src source, j job, rule rules) (free bool, calls calls, err error) {
	digested := o.m.o.Policy == Layers
	if !o.modelFree && o.m.o.Provider != nil {
		if calls, err = o.summarize(c, b, src, j); err == nil {
			_, _, err = c.judge(o.m.session, o.m.meter, r, b, rule)
		}
		if err == nil {
			return false, calls, nil
		}
		if o.ctx.Err() != nil {
			return false, calls, o.ctx.Err()
		}
		var u *unrecorded
		if errors.As(err, &u) {
			return false, calls, err
		}
		if !digested {
			return false, calls, noSummary(o.m.session, err)
		}
		o.fails = errors.Join(o.fails, err)
		// A person hears it from the notice.
		o.m.log.Info("the summariser failed, a digest takes its place", "session", o.m.session, "err", err)
		o.m.notify(Degraded, "the summary was made without a model: "+reason(err))
	} else if !digested && !o.modelFree {
		return false, calls, refuse("compact", o.m.session, CodeSummarizer, -1, "no model can be asked", "")
	}
	c.RawOutput, c.Usage, c.MaxTokens = nil, nil, 0
	c.Provider, c.Model = DigestProvider, DigestModel
	// A code point is a quarter of a token by the heuristic, and up to a few
	// by other counters.
	for points := 4 * min(j.most, r.tokens/2); ; points /= 2 {
		c.Summary = []message.Block{message.Text(Digest(src.parsed[src.from:], points))}
		if _, _, err = c.judge(o.m.session, o.m.meter, r, b, rule); err == nil && o.within(j, c.Summary) || points < 64 {
			return true, calls, err
		}
	}
}

// noSummary is the refusal of a range for which there is no summary.
func noSummary(session string, err error) error {
	if errors.Is(err, outcrop.ErrRefused) {
		return err
	}
	return &outcrop.Error{Op: "compact", Session: session, Code: CodeSummarizer, Seq: -1, Offset: -1,
		Err: fmt.Errorf("%w: %w", outcrop.ErrRefused, err), Msg: err.Error()}
}

// pruneNodes shortens results, each as the policy does it.
func (o *op) pruneNodes(nodes []*meter.Node) error {
	list := make([]shorter, 0, len(nodes))
	for _, n := range nodes {
		p := shorter{n.Seq, nil}
		if o.m.o.Policy == DSH {
			ev := o.log.At(n.Seq)
			p.content, _ = o.m.o.Pruner.Prune(resultContent(ev.Data))
		} else {
			p.content = shorten(o.log, n)
		}
		list = append(list, p)
	}
	return o.prune(list)
}

// prune commits shorter results as one group.
func (o *op) prune(list []shorter) error {
	if len(list) == 0 {
		return nil
	}
	if o.dry {
		return o.plannedPrunes(list)
	}
	return o.ed.Edit(o.ctx, func(s *outcrop.Session) error {
		update(o.m.meter, s)
		edits, err := commitPrunes(s, o.m.meter, list, rules{counted: o.m.o.Policy == DSH})
		o.rep.Edits = append(o.rep.Edits, edits...)
		return err
	})
}

// pruneHand shortens the given results, or all that the rules let go.
func (o *op) pruneHand(nodes []outcrop.Seq) error {
	mt := o.m.meter
	var list []*meter.Node
	switch {
	case len(nodes) == 0 && o.m.o.Policy == DSH:
		short := o.dshPrunes()
		if !o.dsh || mt.OpenTurn() >= 0 {
			return o.prune(short)
		}
		for _, p := range short {
			list = append(list, mt.Node(mt.Index(p.node)))
		}
	case len(nodes) == 0:
		p := o.planning(o.keepTokens(), 0)
		p.look()
		list = p.allPrunes(0, p.tail)
	}
	p := o.planning(0, 0)
	p.look()
	for _, seq := range nodes {
		at := mt.Index(seq)
		if at < 0 {
			return notOnSurface("prune", o.m.session, o.log, seq)
		}
		n := mt.Node(at)
		if n.Kind != meter.Result {
			return refuse("prune", o.m.session, CodeNotResult, seq, "the node is no tool result", "")
		}
		if i := slices.IndexFunc(p.ex, func(e meter.Exchange) bool { return at < e.To }); p.pinned(i) {
			return refuse("prune", o.m.session, CodeProtected, seq, "the node is pinned", "end the pin first")
		}
		least := kept + 200 // with the marker
		if o.m.o.Policy == DSH {
			least = o.m.o.Pruner.Threshold
		}
		if n.Points <= least {
			return refuse("prune", o.m.session, CodeNotSmaller, seq,
				"the result has "+llm.Thousands(int64(n.Points))+" characters, one of more than "+llm.Thousands(int64(least))+" can be shortened", "")
		}
		list = append(list, n)
	}
	if len(list) == 0 {
		return nil
	}
	if o.dsh && mt.OpenTurn() < 0 {
		for _, n := range list {
			o.rep.Queued = append(o.rep.Queued, n.Seq)
		}
		if !o.dry {
			o.m.queued = append(o.m.queued, o.rep.Queued...)
			return nil
		}
	}
	return o.pruneNodes(list)
}

// pruneQueued shortens what was queued and is still there.
func (o *op) pruneQueued() error {
	var list []*meter.Node
	for _, seq := range o.m.queued {
		if at := o.m.meter.Index(seq); at >= 0 {
			list = append(list, o.m.meter.Node(at))
		}
	}
	o.m.queued = nil
	if len(list) == 0 {
		return nil
	}
	if err := o.pruneNodes(list); err != nil {
		return err
	}
	return o.look()
}

// tellFull tells once that the context is full and that nothing is done.
func (o *op) tellFull(used int64) {
	o.rep.Notice = "context " + llm.Thousands(used) + " of " + llm.Thousands(o.m.o.Window) + ": compaction is off; compact or prune by hand"
	if !o.m.told {
		o.m.told = true
		o.m.notify(Full, o.rep.Notice)
	}
}

func (o *op) tellIrreducible(p *planning) {
	if err := o.look(); err != nil {
		return
	}
	p.look()
	o.rep.Notice = p.irreducible(o.m.o.Window)
	if !o.m.told {
		o.m.told = true
		o.m.notify(Full, o.rep.Notice)
	}
}

// reason is an error as the end of a bracket records it: without what a hint
// would add, and not long.
func reason(err error) string {
	text := err.Error()
	var oe *outcrop.Error
	if errors.As(err, &oe) && oe.Msg != "" {
		text = oe.Msg
	}
	return clip(llm.Clean(text), 500)
}

func sourceKind(data []byte) string { return textOf(jsonwire.Get(data, "source"), "kind") }
