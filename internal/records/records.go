// Package records passes on the records of a stored log: those up to some event,
// or the text of all, byte for byte as it is stored.
package records

import (
	"context"
	"iter"

	"github.com/outcrop-dev/outcrop"
)

// Through passes on the records that hold events up to the seq last, or all for
// a negative one, while ctx lasts.
func Through(ctx context.Context, recs iter.Seq2[outcrop.Record, error], last outcrop.Seq) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r, err := range recs {
			if ctxErr := ctx.Err(); ctxErr != nil {
				yield(outcrop.Record{}, ctxErr)
				return
			}
			if !yield(r, err) || last >= 0 && err == nil && r.Last() >= last {
				return
			}
		}
	}
}
