package memory

import (
	"bytes"
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
)

var _ store.Attachments = (*Store)(nil)

// Objects are the store's attachments. A crash leaves them: they are durable
// when they were put.
func (s *Store) Objects() store.Objects { return objects{s} }

type objects struct{ s *Store }

// Get is store.Objects's.
func (o objects) Get(ctx context.Context, id string) ([]byte, error) {
	if err := blob.Valid(id); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	b, ok := o.s.objects[id]
	if !ok {
		return nil, problem("read attachment", "", "", outcrop.ErrNotFound, id+" is missing")
	}
	return bytes.Clone(b), nil
}

// Put is store.Objects's.
func (o objects) Put(ctx context.Context, b []byte) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	id := blob.ID(b)
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if _, ok := o.s.objects[id]; !ok {
		o.s.objects[id] = bytes.Clone(b)
	}
	return id, nil
}
