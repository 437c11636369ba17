package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
)

// span is the A..B of --diff.
type span struct{ from, to outcrop.Seq }

// parseSpan reads A..B, two seqs in order.
func parseSpan(s string) (span, error) {
	left, right, ok := strings.Cut(s, "..")
	from, err1 := strconv.ParseInt(left, 10, 64)
	to, err2 := strconv.ParseInt(right, 10, 64)
	if !ok || err1 != nil || err2 != nil || from < 0 || to < from {
		return span{}, usagef("--diff %s: write A..B, two seqs, the earlier one first", quote(s))
	}
	return span{outcrop.Seq(from), outcrop.Seq(to)}, nil
}

// surfaceDiff compares the surface as it was after two events. A node never
// moves, so each one of either side was kept, removed or added.
func (a *app) surfaceDiff(l *seen, s span) error {
	before, err := outcrop.SurfaceAt(l.log, s.from)
	if err != nil {
		return err
	}
	was := map[outcrop.Seq]bool{}
	for _, n := range before.Nodes {
		was[n] = true
	}
	var added, removed []outcrop.Seq
	kept := 0
	is := map[outcrop.Seq]bool{}
	for _, n := range l.fold.Nodes {
		is[n] = true
		if was[n] {
			kept++
		} else {
			added = append(added, n)
		}
	}
	for _, n := range before.Nodes {
		if !is[n] {
			removed = append(removed, n)
		}
	}
	if a.flags.json {
		return a.line(newAnswer().text("session", l.header.ID).number("from", int64(s.from)).number("to", int64(s.to)).
			number("kept", int64(kept)).raw("removed", seqs(removed)).raw("added", seqs(added)).
			number("edits", int64(l.fold.Generation-before.Generation)).end())
	}
	st := a.style()
	a.text(st.bold("surface of "+cut(l.id(), 40)) + fmt.Sprintf(" from event %d to %d\n", s.from, s.to))
	a.text(fmt.Sprintf("%d removed, %d added\n", len(removed), len(added)))
	a.diffText(l, s.from, is, removed, st)
	return nil
}

// diffText prints the later surface, with what a node took the place of before
// it and kept nodes counted.
func (a *app) diffText(l *seen, from outcrop.Seq, is map[outcrop.Seq]bool, removed []outcrop.Seq, st style) {
	by := map[outcrop.Seq]outcrop.Seq{}
	for _, r := range l.fold.Replacements {
		for _, s := range r.Shadowed {
			by[s] = r.Seq
		}
	}
	under := map[outcrop.Seq][]outcrop.Seq{}
	for _, n := range removed {
		top := n
		for !is[top] {
			top = by[top]
		}
		under[top] = append(under[top], n)
	}
	kept := 0
	flush := func() {
		if kept > 0 {
			a.text(st.dim("= "+plural(kept, "node")) + "\n")
		}
		kept = 0
	}
	for _, n := range l.fold.Nodes {
		if n <= from {
			kept++
			continue
		}
		flush()
		for _, old := range under[n] {
			a.text(st.red(cut("- "+itoa(old)+" "+describe(l.log.At(old)), width)) + "\n")
		}
		a.text(st.green(cut("+ "+itoa(n)+" "+describe(l.log.At(n)), width)) + "\n")
	}
	flush()
}
