package outcrop

import (
	"iter"
	"slices"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Sources is the list of earlier events that an event was made from
// (sourceEventSeqs). It has three states that mean different things: absent
// (nothing was recorded), known and empty (made from nothing: a stream without
// a chunk), and known with seqs. The zero value is absent.
//
// It holds the JSON text as the log has it; text that is not an array of seqs
// is kept too and is refused by admission.
type Sources struct {
	text []byte
}

var (
	// NoSources is the absent list.
	NoSources = Sources{}
	// EmptySources is the list that is known to be empty; only an
	// assistant/message may carry it.
	EmptySources = Sources{text: []byte("[]")}
)

// SourcesOf makes a known list in the order given; without arguments it is
// EmptySources.
func SourcesOf(seqs ...Seq) Sources {
	if len(seqs) == 0 {
		return EmptySources
	}
	b := make([]byte, 0, 8*len(seqs)+2)
	b = append(b, '[')
	for i, s := range seqs {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonwire.AppendInt(b, int64(s))
	}
	return Sources{text: append(b, ']')}
}

// SourceRange makes the known list first, first+1, ... last.
func SourceRange(first, last Seq) Sources {
	if last < first {
		return EmptySources
	}
	b := make([]byte, 0, 8*int(last-first+1)+2)
	b = append(b, '[')
	for s := first; s <= last; s++ {
		if s > first {
			b = append(b, ',')
		}
		b = jsonwire.AppendInt(b, int64(s))
	}
	return Sources{text: append(b, ']')}
}

// Known reports whether sources were recorded at all.
func (s Sources) Known() bool { return s.text != nil }

// Len is the number of seqs; 0 when absent or empty.
func (s Sources) Len() int {
	n := 0
	for range s.All() {
		n++
	}
	return n
}

// All yields the seqs in their order.
func (s Sources) All() iter.Seq[Seq] {
	return func(yield func(Seq) bool) {
		for v := range jsonwire.Elements(s.text) {
			n, ok := jsonwire.Int(v)
			if !ok || !yield(Seq(n)) {
				return
			}
		}
	}
}

// Seqs returns the seqs as a fresh slice: nil when absent, empty but not nil
// when known to be empty.
func (s Sources) Seqs() []Seq {
	if !s.Known() {
		return nil
	}
	return append([]Seq{}, slices.Collect(s.All())...)
}

// JSON is the list as the log has it, nil when absent.
func (s Sources) JSON() []byte { return s.text }
