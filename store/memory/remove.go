package memory

import (
	"context"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
)

var _ store.ObjectRemover = objects{}

// RemoveObject is store.ObjectRemover's.
func (o objects) RemoveObject(ctx context.Context, id string) error {
	if err := blob.Valid(id); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	delete(o.s.objects, id)
	return nil
}
