package meter

import (
	"slices"

	"github.com/outcrop-dev/outcrop"
)

// surface brings the nodes up to date.
func (m *Meter) surface(log outcrop.Log, now []outcrop.Seq, generation int) {
	was := m.seqs
	same := len(was)
	if generation != m.generation || len(now) < same {
		same = sameStart(was, now)
	}
	if same == len(was) {
		m.seqs, m.generation = now, generation
		m.append(log, same)
		return
	}
	// Behind the last difference the nodes are the same again.
	back := 0
	for back < min(len(was), len(now))-same && was[len(was)-1-back] == now[len(now)-1-back] {
		back++
	}
	for i := len(was) - 1; i >= same; i-- {
		m.pairs.drop(i, m.nodes[i])
	}
	gone := make(map[outcrop.Seq]*Node)
	for _, n := range m.nodes[same : len(was)-back] {
		gone[n.Seq] = n
		m.count(n, -1)
	}
	nodes := make([]*Node, 0, len(now)-back-same)
	for _, seq := range now[same : len(now)-back] {
		n := gone[seq]
		if n == nil {
			n = m.read(log, seq)
		}
		m.count(n, 1)
		nodes = append(nodes, n)
	}
	m.nodes = slices.Replace(m.nodes, same, len(was)-back, nodes...)
	m.seqs, m.generation = now, generation
	m.sums = m.sums[:same+1]
	for _, n := range m.nodes[same:] {
		m.sums = append(m.sums, m.sums[len(m.sums)-1]+n.Tokens)
	}
	if same < m.anchor.nodes {
		m.anchor.at = -1
	}
	for i, n := range m.nodes[same:] {
		m.pairs.add(same+i, n)
	}
}

// sameStart is how many seqs two surfaces begin with alike. Most edits are near
// the end of a long one, so many are compared at once.
func sameStart(a, b []outcrop.Seq) (n int) {
	const many = 64
	for n+many <= min(len(a), len(b)) && *(*[many]outcrop.Seq)(a[n:]) == *(*[many]outcrop.Seq)(b[n:]) {
		n += many
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// append takes in the nodes from position from on.
func (m *Meter) append(log outcrop.Log, from int) {
	for i, seq := range m.seqs[from:] {
		n := m.read(log, seq)
		m.nodes = append(m.nodes, n)
		m.sums = append(m.sums, m.sums[len(m.sums)-1]+n.Tokens)
		m.count(n, 1)
		m.pairs.add(from+i, n)
	}
}

// count adds a node to the parts, or takes it out.
func (m *Meter) count(n *Node, sign int64) {
	m.media += sign * n.Media
	if n.Kind == Result {
		m.results += sign * (n.Tokens - n.Media)
	}
}

// pairing knows which result answers which call. A result belongs to the
// nearest earlier call of its id that has none yet. Nodes are added at the end
// and dropped from there, so that an edit costs what stands behind it.
type pairing struct {
	until   []int32            // the last position that belongs to the call at i; i itself when nothing does
	waiting []int32            // how many calls at i have no result
	open    map[string][]int32 // positions of calls without a result, by id
	answers []answer           // what the result at i answers
}

// answer is the call that a result took, and how far that reached before.
type answer struct{ call, until int32 }

func (p *pairing) add(i int, n *Node) {
	if p.open == nil {
		p.open = make(map[string][]int32)
	}
	p.until = append(p.until, int32(i))
	p.waiting = append(p.waiting, int32(len(n.Calls)))
	for _, id := range n.Calls {
		p.open[id] = append(p.open[id], int32(i))
	}
	took := answer{call: -1}
	if n.Kind == Result {
		if at, ok := p.take(n.Answers); ok {
			took = answer{at, p.until[at]}
			p.until[at] = int32(i)
			p.waiting[at]--
		}
	}
	p.answers = append(p.answers, took)
}

// drop takes back the last add.
func (p *pairing) drop(i int, n *Node) {
	if a := p.answers[i]; a.call >= 0 {
		p.open[n.Answers] = append(p.open[n.Answers], a.call)
		p.until[a.call] = a.until
		p.waiting[a.call]++
	}
	for _, id := range n.Calls {
		p.take(id)
	}
	p.until, p.waiting, p.answers = p.until[:i], p.waiting[:i], p.answers[:i]
}

// take removes the newest open call of an id.
func (p *pairing) take(id string) (at int32, ok bool) {
	calls := p.open[id]
	if len(calls) == 0 {
		return 0, false
	}
	at = calls[len(calls)-1]
	if len(calls) == 1 {
		delete(p.open, id)
	} else {
		p.open[id] = calls[:len(calls)-1]
	}
	return at, true
}

// Exchange is a part of the surface that is not cut: the nodes from From up to,
// not including, To.
type Exchange struct{ From, To int }

// Exchanges appends the exchanges of the nodes from position from on, which
// must be where one begins. A reply with calls makes one exchange with all
// results for its ids and what stands between them; every other node is one by
// itself. A call of the open step that has no result yet reaches to the end of
// the surface; one of a closed step never gets a result, and a result without
// a call is an exchange by itself.
func (m *Meter) Exchanges(dst []Exchange, from int) []Exchange {
	start, reach := from, from
	for i := from; i < len(m.nodes); i++ {
		if i > reach {
			dst = append(dst, Exchange{start, i})
			start, reach = i, i
		}
		reach = max(reach, int(m.pairs.until[i]))
		if m.pairs.waiting[i] > 0 && m.stepFrom >= 0 && m.seqs[i] >= m.stepFrom {
			reach = len(m.nodes)
		}
	}
	if start < len(m.nodes) {
		dst = append(dst, Exchange{start, len(m.nodes)})
	}
	return dst
}

// Open reports whether a call of the open step still waits for its result.
func (m *Meter) Open(e Exchange) bool {
	for i := e.From; i < e.To; i++ {
		if m.pairs.waiting[i] > 0 && m.stepFrom >= 0 && m.seqs[i] >= m.stepFrom {
			return true
		}
	}
	return false
}

// Cuts reports for each position of the surface whether a cut there splits no
// exchange: element i is the cut before node i, the last element the one behind
// the last node.
func (m *Meter) Cuts() []bool {
	cuts := make([]bool, len(m.nodes)+1)
	for _, e := range m.Exchanges(nil, 0) {
		cuts[e.From] = true
	}
	cuts[len(m.nodes)] = len(m.nodes) == 0 || !m.hangs()
	return cuts
}

// hangs reports whether a call waits at the end of the surface.
func (m *Meter) hangs() bool {
	if m.stepFrom < 0 {
		return false
	}
	for i := len(m.nodes) - 1; i >= 0 && m.seqs[i] >= m.stepFrom; i-- {
		if m.pairs.waiting[i] > 0 {
			return true
		}
	}
	return false
}
