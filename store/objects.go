package store

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Objects keeps attachments. An object is known by the SHA-256 of its bytes:
// sha256: and 64 lower-case hexadecimal digits. All methods may be called from
// any goroutine.
type Objects interface {
	// Get returns the bytes of an object, checked against the id. The errors
	// wrap outcrop.ErrNotFound, outcrop.ErrDamaged for bytes that are not those
	// of the id, and outcrop.ErrRefused for a text that is no id.
	Get(ctx context.Context, id string) ([]byte, error)

	// Put stores bytes and returns their id; they are durable on return. The
	// same bytes twice are one object.
	Put(ctx context.Context, b []byte) (id string, err error)
}

// Attachments is a store that keeps attachments beside its logs. They belong to
// the store, not to a session: several sessions may name one.
type Attachments interface {
	Objects() Objects
}

// ObjectsOf are the attachments of a store, nil when it keeps none.
func ObjectsOf(st Store) Objects {
	if a, ok := st.(Attachments); ok {
		return a.Objects()
	}
	return nil
}

// AttachmentIDs yields the attachments that the data of an event names, as often
// as it does: the string members called attachmentId, at any depth. The data is
// valid JSON.
func AttachmentIDs(data []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		const name = `"attachmentId"`
		for {
			// Inside a string the quotes would be escaped, so this is a name or
			// a whole string.
			i := bytes.Index(data, []byte(name))
			if i < 0 {
				return
			}
			data = data[i+len(name):]
			at := jsonwire.Space(data, 0)
			if at >= len(data) || data[at] != ':' {
				continue
			}
			id, ok := jsonwire.Text(data[jsonwire.Space(data, at+1):])
			if ok && !yield(id) {
				return
			}
		}
	}
}

// WithObjects passes on the records of a log that is copied from src to dst, and
// copies what they name: before an event is passed on, its attachments are
// durable in dst. What src does not have, or has with other bytes than its id
// says, is left out, as it was missing before. Where one of the stores keeps no
// attachments, nothing is copied. An error of dst ends the stream.
func WithObjects(ctx context.Context, dst, src Store, recs iter.Seq2[outcrop.Record, error]) iter.Seq2[outcrop.Record, error] {
	to, from := ObjectsOf(dst), ObjectsOf(src)
	if to == nil || from == nil {
		return recs
	}
	return func(yield func(outcrop.Record, error) bool) {
		done := map[string]bool{}
		for r, err := range recs {
			if err == nil && r.Run == nil {
				for id := range AttachmentIDs(r.Data) {
					if len(id) > maxID || done[id] {
						continue
					}
					done[id] = true
					if err := copyObject(ctx, to, from, id); err != nil {
						yield(outcrop.Record{}, err)
						return
					}
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// maxID is longer than any id.
const maxID = 128

func copyObject(ctx context.Context, to, from Objects, id string) error {
	b, err := from.Get(ctx, id)
	switch {
	case errors.Is(err, outcrop.ErrNotFound), errors.Is(err, outcrop.ErrDamaged), errors.Is(err, outcrop.ErrRefused):
		return nil
	case err != nil:
		return err
	}
	_, err = to.Put(ctx, b)
	return err
}
