package store

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"iter"

	"github.com/outcrop-dev/outcrop"
)

// Digest is outcrop.LogDigest for a log that passes by: sha256 over each
// event's JSON text and a newline, rows expanded. The zero value is ready.
type Digest struct {
	h   hash.Hash
	buf []byte
	n   outcrop.Seq
}

// Add takes one record.
func (d *Digest) Add(r outcrop.Record) {
	if d.h == nil {
		d.h = sha256.New()
	}
	if r.Run == nil {
		d.event(&r.Event)
	} else {
		for e := range r.Run.Events() {
			d.event(&e)
		}
	}
	if len(d.buf) > 32<<10 {
		d.h.Write(d.buf)
		d.buf = d.buf[:0]
	}
}

func (d *Digest) event(e *outcrop.Event) {
	d.buf = append(e.AppendJSON(d.buf), '\n')
	d.n++
}

// Sum is the digest of the events so far, in hexadecimal.
func (d *Digest) Sum() string {
	if d.h == nil {
		d.h = sha256.New()
	}
	d.h.Write(d.buf)
	d.buf = d.buf[:0]
	return hex.EncodeToString(d.h.Sum(nil))
}

// Len is the number of events so far.
func (d *Digest) Len() outcrop.Seq { return d.n }

// Through passes a stream on and adds what goes by.
func (d *Digest) Through(recs iter.Seq2[outcrop.Record, error]) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r, err := range recs {
			if err == nil {
				d.Add(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
