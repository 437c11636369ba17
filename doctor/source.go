package doctor

import (
	"context"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// source is where the records of a log come from. A *wire.Reader is one.
type source interface {
	Header() outcrop.Header
	// Records yields the records; after an error that is no damage whoever goes
	// on ranging gets those behind it.
	Records() iter.Seq2[outcrop.Record, error]
	Pos() wire.Pos
	Warnings() ([]wire.Warning, int)
	Tail() wire.Tail
}

// open opens the target's log anew. The caller calls close in the end.
func (t *Target) open(ctx context.Context) (s source, close func() error, err error) {
	if t.Open == nil {
		r, err := wire.NewReader(t.R, t.Size, t.Encoding)
		if err != nil {
			return nil, nil, err
		}
		r.CheckContent()
		return r, func() error { return nil }, nil
	}
	sd, err := t.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	return inStore{sd}, sd.Close, nil
}

// inStore is a log that lies in no file: it has events and nothing else.
type inStore struct{ store.Stored }

func (inStore) Pos() wire.Pos                   { return wire.Pos{} }
func (inStore) Warnings() ([]wire.Warning, int) { return nil, 0 }

// Tail is the log's, which lies in no file: what stays is counted from the end,
// so that the difference to a size of 0 is what is torn.
func (s inStore) Tail() wire.Tail {
	t := s.Stored.Tail()
	return wire.Tail{Torn: t.Torn, Good: -t.Bytes, Recovered: t.Recovered, Reason: t.Reason}
}
