package files

import (
	"fmt"
	"strings"
)

// diffContext is how many equal lines stand around a change.
const diffContext = 3

// maxEdits bounds the search for the shortest edit; beyond it the middle that
// differs is shown as removed and added as a whole.
const maxEdits = 1000

// Diff is the unified diff from old to new: every changed line is in it. It is
// empty when the two are equal.
func Diff(name, old, new string) string {
	if old == new {
		return ""
	}
	a, b := splitLines(old), splitLines(new)
	edits := script(a, b)
	var out strings.Builder
	from := "a/" + name
	if old == "" {
		from = "/dev/null"
	}
	fmt.Fprintf(&out, "--- %s\n+++ b/%s\n", from, name)
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i++
			continue
		}
		start := max(0, i-diffContext)
		end := i
		for quiet := 0; end < len(edits) && quiet <= 2*diffContext; end++ {
			if edits[end].op == ' ' {
				quiet++
			} else {
				quiet = 0
			}
		}
		for end > i && edits[end-1].op == ' ' {
			end--
		}
		last := min(len(edits), end+diffContext)
		hunk(&out, edits[start:last])
		i = last
	}
	return out.String()
}

type edit struct {
	op   byte // ' ', '-' or '+'
	text string
	a, b int // lines of old and new before this edit
}

func hunk(out *strings.Builder, edits []edit) {
	na, nb := 0, 0
	for _, e := range edits {
		if e.op != '+' {
			na++
		}
		if e.op != '-' {
			nb++
		}
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(edits[0].a, na), span(edits[0].b, nb))
	for _, e := range edits {
		out.WriteByte(e.op)
		out.WriteString(e.text)
		if !strings.HasSuffix(e.text, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func span(before, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", before)
	}
	if n == 1 {
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// script is the list of edits that turns a into b, equal head and tail first.
func script(a, b []string) []edit {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	ops := make([]byte, 0, len(a)+len(b))
	ops = append(ops, strings.Repeat(" ", head)...)
	ops = append(ops, shortest(a[head:len(a)-tail], b[head:len(b)-tail])...)
	ops = append(ops, strings.Repeat(" ", tail)...)
	edits := make([]edit, 0, len(ops))
	i, j := 0, 0
	for _, op := range ops {
		e := edit{op: op, a: i, b: j}
		switch op {
		case '+':
			e.text = b[j]
			j++
		case '-':
			e.text = a[i]
			i++
		default:
			e.text = a[i]
			i++
			j++
		}
		edits = append(edits, e)
	}
	return edits
}

// shortest finds the edit script with the fewest edits (Myers' greedy search),
// removals before additions.
func shortest(a, b []string) []byte {
	n, m := len(a), len(b)
	whole := func() []byte {
		return append([]byte(strings.Repeat("-", n)), strings.Repeat("+", m)...)
	}
	if n == 0 || m == 0 {
		return whole()
	}
	most := min(n+m, maxEdits)
	v := make([]int, 2*most+3)
	at := func(k int) int { return k + most + 1 }
	var trace [][]int
	for d := 0; d <= most; d++ {
		// Only diagonals -d-1 to d+1 are read when the path is walked back.
		trace = append(trace, append([]int(nil), v[at(-d-1):at(d+1)+1]...))
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && v[at(k-1)] < v[at(k+1)] {
				x = v[at(k+1)]
			} else {
				x = v[at(k-1)] + 1
			}
			y := x - k
			for x < n && y < m && a[x] == b[y] {
				x, y = x+1, y+1
			}
			v[at(k)] = x
			if x >= n && y >= m {
				return walkBack(trace, n, m)
			}
		}
	}
	return whole()
}

func walkBack(trace [][]int, x, y int) []byte {
	var rev []byte
	for d := len(trace) - 1; d >= 0; d-- {
		v := func(k int) int { return trace[d][k+d+1] }
		k := x - y
		prev := k + 1
		if !(k == -d || k != d && v(k-1) < v(k+1)) {
			prev = k - 1
		}
		px := 0
		if d > 0 {
			px = v(prev)
		}
		py := px - prev
		if d == 0 {
			px, py = 0, 0
		}
		for x > px && y > py {
			rev = append(rev, ' ')
			x, y = x-1, y-1
		}
		if d == 0 {
			break
		}
		if x == px {
			rev = append(rev, '+')
			y--
		} else {
			rev = append(rev, '-')
			x--
		}
	}
	out := make([]byte, len(rev))
	for i, op := range rev {
		out[len(rev)-1-i] = op
	}
	return out
}
