package store

import (
	"context"
)

// Copy puts a session of src into dst, which may keep it in another form or
// encoding: the same header, the same events, each line as it is; a log in a later
// format of dsh becomes one of format 0. dst compares
// what it stored with what it was given before the copy can be seen, so after
// an error nothing is left behind, except attachments. A torn tail is not
// copied, but what could be saved from it is; a damaged log is refused.
//
// Attachments that the log names are copied first, see WithObjects, when both
// stores keep some.
func Copy(ctx context.Context, dst, src Store, id string) error {
	sd, err := src.Read(ctx, id)
	if err != nil {
		return err
	}
	defer sd.Close()
	h := sd.Header()
	h.Format = 0 // what is stored there is format 0, whatever it was here
	if err := dst.Put(ctx, h, WithObjects(ctx, dst, src, cancellable(ctx, sd.Records()))); err != nil {
		return Problem("copy", id, err, "", "")
	}
	return nil
}
