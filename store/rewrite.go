package store

import (
	"context"
	"iter"

	"github.com/outcrop-dev/outcrop"
)

// Rewriter is a store that can put another log in the place of a stored one.
// Nothing but a redaction asks for it.
type Rewriter interface {
	// Rewrite takes the lock of a session, gives change its header and its
	// records, which change reads to the end, and puts what the returned stream
	// yields in their place: all of it or nothing, durable on return, under the
	// same header. It is read back and compared before it is published. The old
	// log is removed; that its bytes are overwritten is not promised. An error of
	// change, or one that the stream yields, ends it, and nothing is changed.
	//
	// The errors are those of Acquire; besides, ErrDamaged for a log with a torn
	// tail, whose bytes nobody looked at.
	Rewrite(ctx context.Context, id string, change func(h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error)) error
}
