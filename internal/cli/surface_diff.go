package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// span is the A..B of --diff.
type span struct{ from, to outcrop.Seq }

// parseSpan reads A..B, two seqs in order.
func parseSpan(s string) (span, error) {
	left, right, ok := strings.Cut(s, "..")
	from, err1 := strconv.ParseInt(left, 10, 64)
	to, err2 := strconv.ParseInt(right, 10, 64)
	if !ok || err1 != nil || err2 != nil || from < 0 || to < from {
		return span{}, exit.Usagef("--diff %s: write A..B, two seqs, the earlier one first", term.Quote(s))
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
	if a.Flags.JSON {
		return a.Line(answer.New().Text("session", l.header.ID).Number("from", int64(s.from)).Number("to", int64(s.to)).
			Number("kept", int64(kept)).Raw("removed", answer.Seqs(removed)).Raw("added", answer.Seqs(added)).
			Number("edits", int64(l.fold.Generation-before.Generation)).End())
	}
	st := a.Style()
	a.Text(st.Bold("surface of "+term.Cut(l.id(), 40)) + fmt.Sprintf(" from event %d to %d\n", s.from, s.to))
	a.Text(fmt.Sprintf("%d removed, %d added\n", len(removed), len(added)))
	a.diffText(l, s.from, is, removed, st)
	return nil
}

// diffText prints the later surface, with what a node took the place of before
// it and kept nodes counted.
func (a *app) diffText(l *seen, from outcrop.Seq, is map[outcrop.Seq]bool, removed []outcrop.Seq, st term.Style) {
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
			a.Text(st.Dim("= "+term.Plural(kept, "node")) + "\n")
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
			a.Text(st.Red(term.Cut("- "+itoa(old)+" "+brief.Node(l.log.At(old)), term.Width)) + "\n")
		}
		a.Text(st.Green(term.Cut("+ "+itoa(n)+" "+brief.Node(l.log.At(n)), term.Width)) + "\n")
	}
	flush()
}
