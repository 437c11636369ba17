// Package redact takes the content of events out of a log, in the one rewrite
// of a log that there is: for what should never have been logged.
//
// # What becomes of an event
//
// It keeps its type, seq, time, marker and sources, and everything by which
// other events find it: ids, turn and step, names of tools, source, usage. Its
// text becomes
//
//	[redacted sha256:HEX]
//
// HEX being the SHA-256 of the event's data as it was logged; arguments of a
// call become {"redacted":"sha256:HEX"}, an image becomes the text. Opaque data
// (replay state of a provider, meta of a result) is removed. So the log stays
// one that admission and dsh accept, and each call keeps its result.
//
// A digest shows later that a copy of the event is the one that was here. It
// also lets somebody who guesses the text find that the guess is right: for a
// short secret it is no protection, and the secret has to be changed anyway.
//
// # What goes with it
//
// Copies of the same message go together: the event of the surface, its splices
// of the inbox, its rewrites with shorter content, the chunks that it was put
// together from, the tool/call events of its calls; a summary and the
// checkpoint that it became. An event that was made from a redacted one and is
// no copy (a checkpoint over it), and one that has the same text or a key that
// stood in it, is listed and stays: Left. What other places hold is not this
// package's business.
//
// # Afterwards
//
// outcrop/redacted {seqs, reason} is appended. A request digest that was
// recorded before does not fit any more when a redacted event was part of it;
// see Explains.
package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Plan is what a redaction would change.
type Plan struct {
	Seqs    []outcrop.Seq // events that lose content, chunks of replies left out; rising
	Chunks  int           // chunks of replies that lose content
	Left    []Left        // events that may still hold some of it
	Objects []string      // attachments that no event names any more

	log     outcrop.Log
	changed map[outcrop.Seq][]byte // new data
	needles []string               // what was taken out
}

// Left is an event that may still hold what was taken out of another one.
type Left struct {
	Seq  outcrop.Seq
	Type outcrop.Type
	Why  string
}

// Make plans the redaction of some events of a log that ends between turns. An
// event that is not there, or that holds no text, is refused.
func Make(log outcrop.Log, seqs []outcrop.Seq) (*Plan, error) {
	if turn, _, open := outcrop.OpenTurn(log); open {
		return nil, refuse(outcrop.Seq(log.Len()-1), "OPEN_TURN", fmt.Sprintf("turn %d is open", turn), "end the turn first: outcrop run --session, or let a resume close it")
	}
	ix := indexOf(log)
	p := &Plan{log: log, changed: map[outcrop.Seq][]byte{}}
	g := group{ix: ix, in: map[outcrop.Seq]bool{}}
	for _, seq := range seqs {
		if seq < 0 || seq >= outcrop.Seq(log.Len()) {
			return nil, refuse(seq, outcrop.CodeInvalidBoundary, fmt.Sprintf("there is no such event, the last one is %d", log.Len()-1), "")
		}
		g.add(seq)
		if err := p.take(&g, seq); err != nil {
			return nil, err
		}
	}
	p.Seqs = slices.Sorted(slices.Values(p.Seqs))
	p.look(ix)
	return p, nil
}

func refuse(seq outcrop.Seq, code outcrop.Code, msg, hint string) error {
	return &outcrop.Error{Op: "redact", Seq: seq, Offset: -1, Code: code, Err: outcrop.ErrRefused, Msg: msg, Hint: hint}
}

// take makes the new data of what came into the group for the event named.
func (p *Plan) take(g *group, named outcrop.Seq) error {
	fresh := g.fresh
	g.fresh = nil
	// The tombstone of a message is the same wherever it stands.
	digest := map[string]string{}
	for _, seq := range fresh {
		if e := p.log.At(seq); e.Type.Surface() {
			if id := messageID(&e); id != "" && digest[id] == "" {
				digest[id] = sum(e.Data)
			}
		}
	}
	firsts := map[string]bool{} // blocks of replies whose first delta was seen
	took := false
	for _, seq := range fresh {
		e := p.log.At(seq)
		d := digest[g.ix.owner(&e)]
		if d == "" {
			d = sum(e.Data)
		}
		r := rewriter{tomb: "[redacted sha256:" + d + "]", args: `{"redacted":"sha256:` + d + `"}`, ids: g.ids, whole: seq == named, digests: digest, firsts: firsts, chunk: g.ix.reply[seq]}
		data := r.event(&e)
		if r.texts == nil && !r.changed {
			continue
		}
		took = true
		p.changed[seq] = data
		p.needles = append(p.needles, r.texts...)
		if e.Type == outcrop.TypeAssistantChunk {
			p.Chunks++
		} else {
			p.Seqs = append(p.Seqs, seq)
		}
	}
	if !took && p.changed[named] == nil {
		e := p.log.At(named)
		return refuse(named, "NOTHING_TO_REDACT", "a "+string(e.Type)+" holds no text", "outcrop show --log shows the events")
	}
	return nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// Named are the seqs that an outcrop/redacted names; ok is false for another
// event.
func Named(e *outcrop.Event) (seqs []outcrop.Seq, ok bool) {
	if e.Type != outcrop.TypeOutcropRedacted {
		return nil, false
	}
	for v := range jsonwire.Elements(jsonwire.Get(e.Data, "seqs")) {
		if n, ok := jsonwire.Int(v); ok && n >= 0 {
			seqs = append(seqs, outcrop.Seq(n))
		}
	}
	return seqs, true
}

// Explains reports whether the redaction at the seq at, which names seqs,
// explains that the digest of an outcrop/request does not fit the log any more:
// it was recorded before, and what it was built from, the events up to prefix,
// holds a redacted one.
func Explains(at outcrop.Seq, seqs []outcrop.Seq, request, prefix outcrop.Seq) bool {
	return request < at && len(seqs) > 0 && slices.Min(seqs) <= prefix
}
