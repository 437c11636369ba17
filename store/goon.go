package store

import (
	"context"

	"github.com/outcrop-dev/outcrop"
)

// GoOn makes a new session in dst that goes on from a session of src which is
// never written itself, such as one in a later format of dsh: all of its events,
// then the closers of an open turn, then session/end-seed. The header names the
// parent and its format. Attachments come along. src is not written. What could
// not be opened, were it written, is refused, and nothing is made; so is what a
// later log has overtaken, see Overtaken: Fork takes that.
func GoOn(ctx context.Context, dst, src Store, id string, child Child) (outcrop.Header, error) {
	if err := Overtaken(ctx, src, id); err != nil {
		return outcrop.Header{}, Problem("go on", id, err, "", "")
	}
	sd, err := src.Read(ctx, id)
	if err != nil {
		return outcrop.Header{}, err
	}
	defer sd.Close()
	s, err := outcrop.Restore(sd.Header(), cancellable(ctx, sd.Records()), outcrop.Options{Now: func() int64 { return child.CreatedAt }})
	if err != nil {
		return outcrop.Header{}, Located(err, sd)
	}
	h := s.Header().Child(child.ID, child.CreatedAt, int64(s.Stored()))
	records := func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			// What an old shape leaves out is made from the parent's id.
			if r.Event = r.Event.Current(); !yield(r, nil) {
				return
			}
		}
	}
	return h, dst.Put(ctx, h, WithObjects(ctx, dst, src, cancellable(ctx, records)))
}
