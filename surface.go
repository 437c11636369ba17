package outcrop

import "slices"

// surface is the state that a session's one manager keeps: the seqs in model
// order, and the messages that were derived from them so far.
type surface struct {
	nodes      []Seq
	shared     bool // a view holds nodes; splice into a copy
	generation int

	// messages[i] belongs to nodes[i]: nil for a node that derives to nothing,
	// pending where a replace left a place to fill. It is filled from the head
	// and may be shorter than nodes. Without nils it is what callers get, so a
	// replace splices into a copy; with nils they get list, which has none.
	messages []*Message
	list     []*Message // nil when it must be built anew
	nils     int        // among messages
	open     int        // places to fill
	openAt   int        // where, when there is one
	slab     []Message  // room for the next messages
}

// apply commits a plan.
func (s *surface) apply(pl plan, seq Seq) {
	switch pl.kind {
	case opAppend:
		s.nodes = append(s.nodes, seq)
	case opReplace:
		if s.shared {
			old := s.nodes
			s.nodes = make([]Seq, 0, len(old)-pl.n+1+64)
			s.nodes = append(s.nodes, old[:pl.at]...)
			s.nodes = append(s.nodes, seq)
			s.nodes = append(s.nodes, old[pl.at+pl.n:]...)
			s.shared = false
		} else {
			s.nodes[pl.at] = seq
			s.nodes = slices.Delete(s.nodes, pl.at+1, pl.at+pl.n)
		}
		s.generation++
		s.spliceMessages(pl)
	}
}

// spliceMessages drops the messages of replaced nodes. What stands behind them
// keeps its messages; the place of the new node is filled at the next read.
func (s *surface) spliceMessages(pl plan) {
	if pl.at >= len(s.messages) {
		return
	}
	end := min(pl.at+pl.n, len(s.messages))
	for _, m := range s.messages[pl.at:end] {
		switch m {
		case nil:
			s.nils--
		case pending:
			s.open--
		}
	}
	s.list = nil
	if pl.at+pl.n > len(s.messages) {
		s.messages = s.messages[:pl.at:pl.at]
		return
	}
	old := s.messages
	s.messages = make([]*Message, 0, len(old)-pl.n+1+len(old)/16)
	s.messages = append(s.messages, old[:pl.at]...)
	s.messages = append(s.messages, pending)
	s.messages = append(s.messages, old[end:]...)
	s.open++
	s.openAt = pl.at
}

// pending marks the place of a message that is not derived yet.
var pending = &Message{Seq: -1}

// Surface is the read-only view of a session's surface. All methods see the
// committed state of the moment of the call, and are safe for many goroutines.
type Surface struct{ s *Session }

// View is the surface at one moment. It does not change.
type View struct {
	nodes      []Seq
	generation int
	len        Seq
}

// Len is the number of nodes.
func (f Surface) Len() int {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return len(f.s.surface.nodes)
}

// Generation is how many replaces were committed.
func (f Surface) Generation() int {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.s.surface.generation
}

// View returns an immutable snapshot in O(1).
func (f Surface) View() View {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.surface.shared = true
	return View{f.s.surface.nodes, f.s.surface.generation, f.s.log.len}
}

// Nodes returns the seqs in model order. The slice is shared: read it only.
func (f Surface) Nodes() []Seq { return f.View().Nodes() }

// Len is the number of nodes.
func (v View) Len() int { return len(v.nodes) }

// At returns the node at position i.
func (v View) At(i int) Seq { return v.nodes[i] }

// Nodes returns the seqs in model order. The slice is shared: read it only.
func (v View) Nodes() []Seq { return v.nodes[:len(v.nodes):len(v.nodes)] }

// Generation is how many replaces were committed.
func (v View) Generation() int { return v.generation }

// LogLen is the length of the log that the view belongs to.
func (v View) LogLen() int { return int(v.len) }

// Index returns the position of a node, or -1.
func (v View) Index(seq Seq) int { return slices.Index(v.nodes, seq) }
