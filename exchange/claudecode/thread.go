package claudecode

import (
	"encoding/hex"
	"slices"
)

// thread is one way through the tree.
type thread struct {
	source string
	parent *thread // nil: the conversation of the file
	side   bool    // a sidechain, that shares nothing with its parent
	shared int     // entries of the parent's order that it begins with
	order  []int32 // its own entries
	bare   bool    // it shares entries and begins without them
}

// entries are all entries of the way, in their order.
func (t *thread) entries() []int32 {
	if t.parent == nil || t.side || t.shared == 0 {
		return t.order
	}
	before := t.parent.entries()
	// Of a parent that is still being written the end may have been left out.
	return append(slices.Clip(before[:min(t.shared, len(before))]), t.order...)
}

// message reports whether a line holds a message.
func (e *entry) isMessage() bool {
	return e.kind == kindUser || e.kind == kindResult || e.kind == kindAssistant
}

func (e *entry) side() bool { return e.flags&flagSide != 0 }

// Each branch begins with a copy of what it shares. Beyond so many branches, or
// so many copies of the whole file, they begin with nothing.
const (
	maxBranches = 1000
	maxCopies   = 10
)

const (
	nobody = -1 // no thread has the entry yet
	gone   = -2 // none will
)

// threads finds the ways, parents before children.
func (x *index) threads() []*thread {
	n := len(x.entries)
	// A line of the conversation does not follow one of a sidechain.
	parent := func(i int32) int32 {
		if p := x.entries[i].parent; p >= 0 && x.entries[p].side() == x.entries[i].side() && x.entries[p].kind != kindTitle {
			return p
		}
		return -1
	}
	order := x.downwards(parent)
	lastMessage := make([]int32, n) // in the part of the tree below
	for i := range lastMessage {
		lastMessage[i] = -1
		if x.entries[i].isMessage() {
			lastMessage[i] = int32(i)
		}
	}
	for _, i := range slices.Backward(order) {
		if p := parent(i); p >= 0 {
			lastMessage[p] = max(lastMessage[p], lastMessage[i])
		}
	}

	owner := make([]int32, n)
	for i := range owner {
		owner[i] = nobody
	}
	var threads []*thread
	var starts []int32 // the entry that each follows, -1 none
	take := func(t *thread, leaf, after int32) {
		at := int32(len(threads))
		threads, starts = append(threads, t), append(starts, after)
		for i := leaf; i >= 0 && owner[i] == nobody; i = parent(i) {
			owner[i] = at
			t.order = append(t.order, i)
		}
		slices.Reverse(t.order)
	}

	main := &thread{source: x.source()}
	leaf := int32(-1)
	for i := n - 1; i >= 0 && leaf < 0; i-- {
		if e := &x.entries[i]; !e.side() && e.isMessage() {
			leaf = int32(i)
		}
	}
	take(main, leaf, -1)
	for _, i := range order {
		e := &x.entries[i]
		if owner[i] != nobody || e.kind == kindTitle {
			continue
		}
		p := parent(i)
		switch {
		case p >= 0 && owner[p] >= 0 && (x.belongs(i, p) || !e.isMessage() && lastMessage[i] < 0):
			owner[i] = owner[p]
			threads[owner[i]].order = append(threads[owner[i]].order, i)
		case lastMessage[i] < 0:
			owner[i] = gone
		case e.side() && (p < 0 || owner[p] < 0):
			take(&thread{source: main.source + "/sidechain-" + x.name(i), parent: main, side: true}, lastMessage[i], -1)
		default:
			from := main
			if p >= 0 && owner[p] >= 0 {
				from = threads[owner[p]]
			}
			take(&thread{source: main.source + "/branch-" + x.name(i), parent: from}, lastMessage[i], p)
		}
	}
	branches, copied := 0, 0
	for at, t := range threads {
		x.arrange(t)
		switch {
		case at == 0:
			x.addTitles(t)
		case t.side || starts[at] < 0:
		case branches >= maxBranches || copied > maxCopies*n+10_000:
			t.bare = true
		default:
			t.shared = x.sharedWith(t.parent, starts[at])
			branches, copied = branches+1, copied+t.shared
		}
	}
	if len(main.order) == 0 || leaf < 0 {
		threads = threads[1:] // nothing but titles
	}
	return threads
}

// belongs reports whether a line that lies beside the way is part of it: the
// result of a call that ran beside others, and the other blocks of a reply.
func (x *index) belongs(i, p int32) bool {
	e, above := &x.entries[i], &x.entries[p]
	switch e.kind {
	case kindResult:
		return above.kind == kindAssistant
	case kindAssistant:
		if e.message == (key{}) {
			return false
		}
		if above.kind == kindResult && above.parent >= 0 {
			above = &x.entries[above.parent]
		}
		return above.kind == kindAssistant && above.message == e.message
	}
	return false
}

// downwards orders the entries so that each comes behind its parent, and else
// as in the file.
func (x *index) downwards(parent func(int32) int32) []int32 {
	n := int32(len(x.entries))
	order := make([]int32, 0, n)
	inOrder := true
	for i := range n {
		inOrder = inOrder && parent(i) < i
		order = append(order, i)
	}
	if inOrder {
		return order
	}
	first, next := make([]int32, n), make([]int32, n)
	for i := range first {
		first[i] = -1
	}
	order = order[:0]
	for i := n - 1; i >= 0; i-- {
		if p := parent(i); p >= 0 {
			next[i], first[p] = first[p], i
		}
	}
	for i := range n {
		if parent(i) < 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for c := first[order[at]]; c >= 0; c = next[c] {
			order = append(order, c)
		}
	}
	return order
}

// arrange puts the entries of a way into their order: that of the file when the
// way itself keeps to it, with the blocks of one reply together.
func (x *index) arrange(t *thread) {
	sorted := true
	for k := 1; k < len(t.order); k++ {
		// The way itself comes first in the list; what was added lies behind it.
		p := x.entries[t.order[k]].parent
		sorted = sorted && p < t.order[k]
	}
	if sorted {
		slices.Sort(t.order)
	} else {
		t.order = x.behindParents(t.order)
	}
	groups := map[key][]int32{}
	again := false
	for _, i := range t.order {
		if e := &x.entries[i]; e.kind == kindAssistant && e.message != (key{}) {
			groups[e.message] = append(groups[e.message], i)
			again = again || len(groups[e.message]) > 1
		}
	}
	if !again {
		return
	}
	out := make([]int32, 0, len(t.order))
	for _, i := range t.order {
		e := &x.entries[i]
		if e.kind != kindAssistant || e.message == (key{}) {
			out = append(out, i)
			continue
		}
		out = append(out, groups[e.message]...)
		groups[e.message] = nil
	}
	t.order = out
}

// behindParents orders entries so that each comes directly behind its parent
// and what is already there.
func (x *index) behindParents(list []int32) []int32 {
	in := map[int32]bool{}
	for _, i := range list {
		in[i] = true
	}
	below := map[int32][]int32{}
	var stack []int32
	for _, i := range slices.Backward(list) {
		if p := x.entries[i].parent; p >= 0 && in[p] {
			below[p] = append(below[p], i)
		} else {
			stack = append(stack, i)
		}
	}
	out := make([]int32, 0, len(list))
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		out = append(out, i)
		stack = append(stack, below[i]...)
	}
	return out
}

// addTitles puts the titles where they stand in the file.
func (x *index) addTitles(t *thread) {
	var titles []int32
	for i := range x.entries {
		if e := &x.entries[i]; e.kind == kindTitle && e.flags&flagGone == 0 {
			titles = append(titles, int32(i))
		}
	}
	if len(titles) == 0 {
		return
	}
	out := make([]int32, 0, len(t.order)+len(titles))
	for _, i := range t.order {
		for len(titles) > 0 && titles[0] < i {
			out, titles = append(out, titles[0]), titles[1:]
		}
		out = append(out, i)
	}
	t.order = append(out, titles...)
}

// leaveLast takes the last reply of a way out of it, with the results that
// follow it, and reports whether there was one. A reply that a prompt follows is
// complete.
func (x *index) leaveLast(t *thread) bool {
	for k := len(t.order) - 1; k >= 0; k-- {
		switch e := &x.entries[t.order[k]]; e.kind {
		case kindUser:
			return false
		case kindAssistant:
			for k > 0 {
				before := &x.entries[t.order[k-1]]
				if before.kind != kindAssistant || before.message != e.message || e.message == (key{}) {
					break
				}
				k--
			}
			t.order = t.order[:k]
			return true
		}
	}
	return false
}

// sharedWith is how many entries of a way one shares with it that leaves it
// behind the entry from: through the whole reply, and the results that follow.
func (x *index) sharedWith(t *thread, from int32) int {
	all := t.entries()
	at := slices.Index(all, from)
	if at < 0 {
		return 0
	}
	for at+1 < len(all) {
		e, next := &x.entries[all[at]], &x.entries[all[at+1]]
		if next.kind == kindResult && (e.kind == kindResult || e.kind == kindAssistant) ||
			next.kind == kindAssistant && e.kind == kindAssistant && e.message == next.message && e.message != (key{}) {
			at++
			continue
		}
		break
	}
	return at + 1
}

// source is what the program calls the session of the file.
func (x *index) source() string {
	if x.agent != "" {
		return x.session + "/agent-" + x.agent
	}
	return x.session
}

// name is a short name of a line.
func (x *index) name(i int32) string { return hex.EncodeToString(x.entries[i].uuid[:]) }
