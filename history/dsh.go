package history

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/dsh"
)

// What the policy dsh does beside its window and ratios.
const (
	dshSummary = 8192 // tokens of a checkpoint, at most
	dshRetries = 1    // further passes while it is still over the threshold
)

// measureDSH measures as dsh does.
func (o *op) measureDSH() (dsh.Measurement, error) {
	if err := o.look(); err != nil {
		return dsh.Measurement{}, err
	}
	return o.m.dsh.Measure(o.log), nil
}

// pressureDSH prunes, then condenses the head, until the measure is under the
// threshold.
func (o *op) pressureDSH() error {
	opt := &o.m.o
	threshold := int64(float64(opt.Window) * opt.Ratio)
	got, err := o.measureDSH()
	if err != nil || threshold == 0 {
		return err
	}
	if got.Total < threshold {
		o.m.told = false
		return nil
	}
	if opt.Off {
		o.tellFull(got.Total)
		return nil
	}
	if o.m.brk.holds(o.m.meter, threshold, o.prompt) {
		return nil
	}
	if err := o.pruneDSH(); err != nil {
		return err
	}
	for range dshRetries + 1 {
		if got, err = o.measureDSH(); err != nil || got.Total < threshold {
			return err
		}
		did, err := o.headDSH(got, int64(float64(opt.Window)*opt.Keep))
		if err != nil || !did {
			return err
		}
	}
	if got, err = o.measureDSH(); err == nil && got.Total >= threshold {
		return refuse("compact", o.m.session, CodeNotSmaller, -1,
			fmt.Sprintf("still %d tokens after %d passes, the threshold is %d", got.Total, dshRetries+1, threshold), "")
	}
	return err
}

// headDSH condenses the head of the surface. did is false when there is
// nothing to condense.
func (o *op) headDSH(got dsh.Measurement, retain int64) (did bool, err error) {
	first, last, ok, err := dsh.Select(o.log, got.Nodes, retain)
	if err != nil {
		return false, refuse("compact", o.m.session, CodeSplitsPair, -1, err.Error(), "the policy layers pairs by id and can go on")
	}
	if ok {
		last, ok = o.beforePins(last)
	}
	if !ok {
		return false, nil
	}
	j := job{most: dshSummary}
	for _, n := range got.Nodes[first : last+1] {
		j.seqs = append(j.seqs, n.Seq)
	}
	return true, o.run(j)
}

// beforePins moves the end of a range that begins at the head of the surface so
// that no pinned exchange is in it. dsh has no pins; what a person pinned in
// this program holds for its policy too.
func (o *op) beforePins(last int) (int, bool) {
	if len(o.pins) == 0 {
		return last, true
	}
	p := o.planning(0, 0)
	p.look()
	for i, e := range p.ex {
		if e.From > last {
			break
		}
		if p.pinned(i) {
			last = e.From - 1
			break
		}
	}
	cuts, err := dsh.Cuts(o.log, o.m.meter.Seqs())
	if err != nil {
		return 0, false
	}
	for last >= 0 && !cuts[last+1] {
		last--
	}
	return last, last >= 0
}

func (o *op) pruneDSH() error { return o.prune(o.dshPrunes()) }

// overflowDSH prunes and condenses all but the last node.
func (o *op) overflowDSH() error {
	if err := o.pruneDSH(); err != nil {
		return err
	}
	return o.handDSH()
}

// handDSH condenses all but the last node.
func (o *op) handDSH() error {
	got, err := o.measureDSH()
	if err != nil {
		return err
	}
	_, err = o.headDSH(got, 0)
	return err
}

// changedSince reports whether the surface is not what a plan saw. dsh takes a
// summary made in a turn only when nothing came meanwhile.
func changedSince(was, now []outcrop.Seq) bool {
	if len(was) != len(now) {
		return true
	}
	for i := range was {
		if was[i] != now[i] {
			return true
		}
	}
	return false
}
