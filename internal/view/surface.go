package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// Node prints a node of the surface in one line; w is the width of its seq.
func (p Printer) Node(log outcrop.Log, n outcrop.Seq, w int) {
	ev := log.At(n)
	who, what := brief.Parts(ev)
	left := term.PadLeft(strconv.FormatInt(int64(n), 10), w) + " "
	rest := term.Width - term.Columns(left) - term.Columns(who) - 1
	p.text(left + p.Style.Cyan(who) + " " + term.Cut(what, max(rest, 10)) + "\n")
}

// Covered draws what lies under a node, in model order. A node that was covered
// may itself cover others; each stratum is one step deeper.
func (p Printer) Covered(log outcrop.Log, under map[outcrop.Seq]outcrop.Replacement, top outcrop.Seq, w int) {
	type line struct {
		seq   outcrop.Seq
		depth int
		more  int // instead of a node: so many are left out
	}
	stack := []line{}
	push := func(of outcrop.Seq, depth int) {
		r, ok := under[of]
		if !ok {
			return
		}
		// Of a long stratum both ends are shown.
		const head, tail = 6, 3
		from := len(r.Shadowed)
		if n := from; n > head+tail+1 {
			for _, s := range slices.Backward(r.Shadowed[n-tail:]) {
				stack = append(stack, line{s, depth, 0})
			}
			stack = append(stack, line{-1, depth, n - head - tail})
			from = head
		}
		for _, s := range slices.Backward(r.Shadowed[:from]) {
			stack = append(stack, line{s, depth, 0})
		}
	}
	push(top, 1)
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		text := strings.Repeat("  ", min(next.depth, 12)) + "└ "
		if next.more > 0 {
			text += term.PadLeft("…", w) + " " + term.Plural(next.more, "more node")
		} else {
			text += term.PadLeft(strconv.FormatInt(int64(next.seq), 10), w) + " " + brief.Node(log.At(next.seq))
		}
		p.text(p.Style.Dim(term.Cut(text, term.Width)) + "\n")
		if next.more == 0 {
			push(next.seq, next.depth+1)
		}
	}
}
