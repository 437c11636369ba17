package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/outcrop-dev/outcrop"
)

// wrongDigest is a request whose recorded digest is not that of the log.
type wrongDigest struct {
	request
	got string
}

// wrongDigests finds the recorded digests that the log does not give, in the
// order of their events. A log full of requests costs one pass: the digest is
// a chain over the messages, so each prefix adds to the one before it.
func wrongDigests(log outcrop.Log, requests []request) (wrong []wrongDigest) {
	if len(requests) == 0 {
		return nil
	}
	byPrefix := slices.Clone(requests)
	slices.SortStableFunc(byPrefix, func(a, b request) int { return int(a.prefix - b.prefix) })
	f := digestFold{log: log}
	for rec := range log.Records(0) {
		f.add(&rec)
		for len(byPrefix) > 0 && byPrefix[0].prefix <= rec.Last() {
			if got := f.digest(); got != byPrefix[0].digest {
				wrong = append(wrong, wrongDigest{byPrefix[0], got})
			}
			byPrefix = byPrefix[1:]
		}
		if len(byPrefix) == 0 {
			break
		}
	}
	slices.SortFunc(wrong, func(a, b wrongDigest) int { return int(a.seq - b.seq) })
	return wrong
}

// digestFold follows a log that admission has passed.
type digestFold struct {
	log    outcrop.Log
	header outcrop.Seq // the request/header in force, when has is true
	has    bool
	nodes  []outcrop.Seq
	chain  [][sha256.Size]byte // [0] is of the header, [i] behind the first i nodes; ends where it is not known yet
}

func (f *digestFold) add(rec *outcrop.Record) {
	if rec.Run != nil {
		return
	}
	if rec.Type == outcrop.TypeRequestHeader {
		f.header, f.has, f.chain = rec.Seq, true, f.chain[:0]
	}
	if start, end, ok := rec.Op.Range(); ok {
		i, j := slices.Index(f.nodes, start), slices.Index(f.nodes, end)
		f.nodes = slices.Replace(f.nodes, i, j+1, rec.Seq)
		f.chain = f.chain[:min(len(f.chain), i+1)]
	} else if rec.Op.IsAppend() {
		f.nodes = append(f.nodes, rec.Seq)
	}
}

// digest is the request digest of what was added so far.
func (f *digestFold) digest() string {
	if !f.has {
		return ""
	}
	if len(f.chain) == 0 {
		h, _ := outcrop.RequestHeaderAt(f.log, f.header)
		f.chain = append(f.chain, sha256.Sum256(h.Raw))
	}
	for _, seq := range f.nodes[len(f.chain)-1:] {
		block := f.chain[len(f.chain)-1]
		for _, m := range outcrop.DeriveMessages(f.log, []outcrop.Seq{seq}) {
			h := sha256.New()
			h.Write(block[:])
			h.Write(m.Raw)
			h.Sum(block[:0])
		}
		f.chain = append(f.chain, block)
	}
	last := f.chain[len(f.chain)-1]
	return "v1:" + hex.EncodeToString(last[:])
}
