// Package pin keeps parts of the surface from being edited. A pin names a node;
// it protects the node's whole exchange (a call with its results) from
// compaction, pruning and merging. It does not protect from a rewind, which
// ends the pins of what it takes away.
//
// Pins are outcrop/pin events, so a fork inherits those below its cut. The last
// event about a node counts. A pin whose node another program has covered
// protects nothing any more: it is lost, and said to be.
package pin

import (
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Codes of the errors of this package; all wrap outcrop.ErrRefused.
const (
	CodeNotOnSurface outcrop.Code = "NODE_NOT_ON_SURFACE"
	CodeNotPinned    outcrop.Code = "NODE_NOT_PINNED"
)

// State is what is pinned at one moment.
type State struct {
	Held []outcrop.Seq // pinned nodes that are on the surface, in model order
	Lost []outcrop.Seq // pinned nodes that are not there any more, by seq
}

// Of reads the pins of a log whose surface has these nodes.
func Of(log outcrop.Log, nodes []outcrop.Seq) State {
	pinned := map[outcrop.Seq]bool{}
	for rec := range log.Records(0) {
		if rec.Type != outcrop.TypeOutcropPin {
			continue
		}
		node, ok := jsonwire.Int(jsonwire.Get(rec.Data, "node"))
		if !ok {
			continue
		}
		if string(jsonwire.Get(rec.Data, "pinned")) == "true" {
			pinned[outcrop.Seq(node)] = true
		} else {
			delete(pinned, outcrop.Seq(node))
		}
	}
	var st State
	for _, n := range nodes {
		if pinned[n] {
			st.Held = append(st.Held, n)
			delete(pinned, n)
		}
	}
	for n := range pinned {
		st.Lost = append(st.Lost, n)
	}
	slices.Sort(st.Lost)
	return st
}

// Would says what Set, or Unset when pinned is false, would come to, and changes
// nothing.
func Would(s *outcrop.Session, node outcrop.Seq, pinned bool) (changed bool, err error) {
	nodes := s.Surface().Nodes()
	st := Of(s.Log(), nodes)
	held := slices.Contains(st.Held, node)
	switch {
	case pinned && !slices.Contains(nodes, node):
		return false, notThere(s, node)
	case !pinned && !held && !slices.Contains(st.Lost, node):
		return false, refuse(s, CodeNotPinned, node, "it is not pinned", "")
	}
	return !pinned || !held, nil
}

// Set pins a node of the surface. Pinning what is pinned changes nothing;
// changed is false then.
func Set(s *outcrop.Session, node outcrop.Seq) (changed bool, err error) {
	if changed, err = Would(s, node, true); !changed || err != nil {
		return false, err
	}
	_, err = s.Append(outcrop.OutcropPin{Node: node, Pinned: true})
	return err == nil, err
}

// Unset ends the pin of a node, also one that is lost.
func Unset(s *outcrop.Session, node outcrop.Seq) error {
	if _, err := Would(s, node, false); err != nil {
		return err
	}
	_, err := s.Append(outcrop.OutcropPin{Node: node})
	return err
}

func notThere(s *outcrop.Session, node outcrop.Seq) error {
	log := s.Log()
	if node < 0 || int(node) >= log.Len() {
		return refuse(s, CodeNotOnSurface, -1, fmt.Sprintf("there is no event %d", node), "outcrop surface lists the nodes")
	}
	if by, ok := CoveredBy(log, node); ok {
		return refuse(s, CodeNotOnSurface, node, fmt.Sprintf("it is covered by %d", by), fmt.Sprintf("pin %d", by))
	}
	return refuse(s, CodeNotOnSurface, node, "it is no node of the surface", "outcrop surface lists the nodes")
}

func refuse(s *outcrop.Session, code outcrop.Code, seq outcrop.Seq, msg, hint string) error {
	return &outcrop.Error{Op: "pin", Session: s.ID(), Code: code, Seq: seq, Offset: -1, Err: outcrop.ErrRefused, Msg: msg, Hint: hint}
}

// CoveredBy is the node of the surface that stands for an event which is no
// longer there.
func CoveredBy(log outcrop.Log, seq outcrop.Seq) (by outcrop.Seq, ok bool) {
	fold, err := outcrop.FoldSurface(log.Records(0))
	if err != nil {
		return 0, false
	}
	by = seq
	for _, r := range fold.Replacements {
		if slices.Contains(r.Shadowed, by) {
			by, ok = r.Seq, true
		}
	}
	return by, ok
}
