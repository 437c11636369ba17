// Package fold follows a log as far as what stands on its surface, in bounded
// memory.
package fold

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Fold follows a log by the rules of admission and keeps of it what stands on
// the surface, which is what a request is made of. What is covered and what is
// no message is not kept.
type Fold struct {
	*outcrop.Inspection
	missing func(outcrop.Seq) []byte // the data of a result that is not kept

	kept map[outcrop.Seq]kept // by node
	size int64                // bytes of what is kept
	Full bool                 // the surface is larger than maxKept, so nothing of it is kept any more

	Changed outcrop.Seq // the event that last changed what a request is made of, -1 before one
	header  []byte      // sha256 of the request header in force, nil before one
	chain   [][sha256.Size]byte
}

// kept is a message of the surface.
type kept struct {
	typ     outcrop.Type
	data    []byte   // of a tool/result, nil for others
	message []byte   // as logged; nil for one that derives to nothing
	calls   []string // of an assistant/message: the ids of its calls
	answers string   // of a tool/result: the id of the call
}

// maxKept is how much of a surface is kept, in bytes. No provider takes a
// request of that size.
const maxKept = 32 << 20

// keptCost stands for what a node costs beside its text.
const keptCost = 160

func (k *kept) cost() int64 {
	n := keptCost + len(k.message) + len(k.data) + len(k.answers)
	for _, id := range k.calls {
		n += 16 + len(id)
	}
	return int64(n)
}

// New begins to follow a log. missing gives the data of a tool/result that was
// not kept.
func New(h outcrop.Header, missing func(outcrop.Seq) []byte) (*Fold, error) {
	f := &Fold{missing: missing, kept: map[outcrop.Seq]kept{}, Changed: -1}
	var err error
	f.Inspection, err = outcrop.NewInspection(h, f.result)
	return f, err
}

func (f *Fold) result(seq outcrop.Seq) []byte {
	if k, ok := f.kept[seq]; ok {
		return k.data
	}
	return f.missing(seq)
}

// Next judges the next record. The error is why it was refused.
func (f *Fold) Next(rec *outcrop.Record) error {
	var gone []outcrop.Seq
	at := -1
	if start, end, ok := rec.Op.Range(); ok && rec.Run == nil {
		nodes := f.Nodes()
		at = slices.Index(nodes, start)
		if j := slices.Index(nodes, end); at >= 0 && j >= at {
			gone = slices.Clone(nodes[at : j+1])
		}
	}
	before := len(f.Nodes())
	if err := f.Add(*rec); err != nil || rec.Run != nil {
		return err
	}
	switch {
	case rec.Type == outcrop.TypeRequestHeader:
		sum := sha256.Sum256(jsonwire.Get(rec.Data, "header"))
		f.header, f.chain, f.Changed = sum[:], f.chain[:0], rec.Seq
	case gone != nil:
		for _, seq := range gone {
			f.drop(seq)
		}
		f.keep(rec)
		f.chain, f.Changed = f.chain[:min(len(f.chain), at+1)], rec.Seq
	case len(f.Nodes()) > before:
		f.keep(rec)
		f.Changed = rec.Seq
	}
	return nil
}

func (f *Fold) drop(seq outcrop.Seq) {
	k, ok := f.kept[seq]
	if ok {
		delete(f.kept, seq)
		f.size -= k.cost()
	}
}

// keep copies what counts of a message, so that the text around it is free.
func (f *Fold) keep(e *outcrop.Record) {
	if f.Full {
		return
	}
	k := kept{typ: e.Type, message: f.Message()}
	switch e.Type {
	case outcrop.TypeAssistantMessage:
		for id := range f.Calls(e) {
			k.calls = append(k.calls, id)
		}
	case outcrop.TypeToolResult:
		k.data, k.answers = e.Data, f.Answers(e)
	}
	if f.size += k.cost(); f.size > maxKept {
		f.Full, f.kept, f.chain, f.size = true, nil, nil, 0
		return
	}
	k.message, k.data = bytes.Clone(k.message), bytes.Clone(k.data)
	f.kept[e.Seq] = k
}

// Digest is the request digest of what was added so far, "" before there was a
// request header. The chain is kept up to the first node that was replaced, so
// a log full of requests costs little more than its messages. It means nothing
// when the fold is full.
func (f *Fold) Digest() string {
	if f.header == nil {
		return ""
	}
	if len(f.chain) == 0 {
		f.chain = append(f.chain, [sha256.Size]byte(f.header))
	}
	for _, seq := range f.Nodes()[len(f.chain)-1:] {
		block := f.chain[len(f.chain)-1]
		if m := f.kept[seq].message; m != nil {
			h := sha256.New()
			h.Write(block[:])
			h.Write(m)
			h.Sum(block[:0])
		}
		f.chain = append(f.chain, block)
	}
	last := f.chain[len(f.chain)-1]
	return "v1:" + hex.EncodeToString(last[:])
}

// Orphans are the results on the surface whose call does not stand before them:
// the call was covered alone, or another one took its result.
func (f *Fold) Orphans(report func(seq outcrop.Seq, id string) bool) {
	open := map[string]int{}
	for _, seq := range f.Nodes() {
		k, ok := f.kept[seq]
		switch {
		case !ok:
			return
		case k.typ == outcrop.TypeAssistantMessage:
			for _, id := range k.calls {
				open[id]++
			}
		case k.typ == outcrop.TypeToolResult:
			id := k.answers
			if open[id] == 0 && !report(seq, id) {
				return
			}
			open[id] = max(open[id]-1, 0)
		}
	}
}

// Unknown reports a type that no reader may pass over. An event without a
// type, and removed types, are refused by admission.
func Unknown(e *outcrop.Event) bool {
	named := e.Type != "" || jsonwire.Kind(jsonwire.Get(e.Line(), "type")) == '"'
	return named && !e.Type.Known() && !e.Ignorable && e.Type != "mode/set" && e.Type != "request/header-delta"
}
