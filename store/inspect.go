package store

import (
	"context"

	"github.com/outcrop-dev/outcrop"
)

// Inspect loads a log for reading, as it is stored: no lease, no closers,
// nothing written. With an error that was found behind the header the session
// is the good part before it.
func Inspect(ctx context.Context, st Store, id string, o outcrop.Options) (*outcrop.Session, Tail, error) {
	sd, err := st.Read(ctx, id)
	if err != nil {
		return nil, Tail{}, err
	}
	defer sd.Close()
	s, err := outcrop.Inspect(sd.Header(), cancellable(ctx, sd.Records()), o)
	return s, sd.Tail(), Located(err, sd)
}
