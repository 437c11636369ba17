package faultfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// PowerCut is the file system that a loss of power leaves: what was synced, and
// of everything else what r lets be there. Locks and open files are gone, and
// what is there is durable. The file system that lost its power goes on as if
// nothing had happened, so that it can lose it again a moment later.
func (m *Memory) PowerCut(r *rand.Rand) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := cutting{r: r, done: map[*node]*node{}}
	return &Memory{root: c.node(m.root), clock: m.clock}
}

type cutting struct {
	r    *rand.Rand
	done map[*node]*node // a file may have two names
}

// fate is what becomes of the changes of one file or folder.
type fate int

const (
	nothing fate = iota // none is kept
	all
	inOrder   // the first ones, the last of them torn
	scattered // some of them, each perhaps torn
	fates
)

func (c *cutting) node(n *node) *node {
	if done, ok := c.done[n]; ok {
		return done
	}
	out := newNode(n.mode)
	c.done[n] = out
	out.mod = n.mod
	kept := c.kept(n.since)
	if !n.mode.IsDir() {
		out.data = slices.Clone(n.keptData)
		for _, ch := range kept {
			out.data = written(out.data, ch)
		}
		out.keptData = slices.Clone(out.data)
		return out
	}
	kids := maps.Clone(n.keptKids)
	for _, ch := range kept {
		rename(kids, ch.names)
	}
	for _, name := range slices.Sorted(maps.Keys(kids)) {
		kid := c.node(kids[name])
		out.kids[name], out.keptKids[name] = kid, kid
	}
	return out
}

// kept is what is left of some changes.
func (c *cutting) kept(since []change) (kept []change) {
	if len(since) == 0 {
		return nil
	}
	f := fate(c.r.IntN(int(fates)))
	n := c.r.IntN(len(since)) // inOrder: the one that is torn
	for i, ch := range since {
		switch {
		case f == all || f == inOrder && i < n || f == scattered && c.r.IntN(2) == 0:
			kept = append(kept, ch)
		case (f == inOrder && i == n || f == scattered && c.r.IntN(2) == 0) && len(ch.data) > 0:
			kept = append(kept, c.torn(ch))
		}
	}
	return kept
}

// torn is a write of which the first bytes arrived. That the file became longer
// may be known all the same; then there are zero bytes.
func (c *cutting) torn(ch change) change {
	n := c.r.IntN(len(ch.data))
	if c.r.IntN(3) == 0 {
		data := make([]byte, n+c.r.IntN(len(ch.data)-n+1))
		copy(data, ch.data[:n])
		ch.data = data
		return ch
	}
	ch.data = ch.data[:n]
	return ch
}
