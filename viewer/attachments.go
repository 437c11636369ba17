package viewer

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/attach"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

// mostPicture is the largest picture that is taken, in bytes.
const mostPicture = 5 << 20

// sniff is the type of a picture by its content, "" for everything else. SVG is
// no picture here: it can hold programs.
func sniff(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "image/gif"
	case len(b) > 12 && bytes.HasPrefix(b, []byte("RIFF")) && string(b[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// attachment is the bytes of an attachment.
func (v *Viewer) attachment(a *answerer) error {
	objects := store.ObjectsOf(v.o.Store)
	id := a.r.PathValue("id")
	none := notFound("ATTACHMENT_NOT_FOUND", "no attachment has this id here")
	if objects == nil || blob.Valid(id) != nil {
		return none
	}
	b, err := objects.Get(a.r.Context(), id)
	switch {
	case errors.Is(err, outcrop.ErrNotFound), errors.Is(err, outcrop.ErrRefused), errors.Is(err, outcrop.ErrDamaged):
		return none
	case err != nil:
		return err
	}
	h := a.w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, max-age=31536000, immutable")
	kind := sniff(b)
	if kind == "" {
		kind = "application/octet-stream"
		h.Set("Content-Disposition", "attachment")
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	a.w.WriteHeader(http.StatusOK)
	if a.r.Method == http.MethodHead {
		return nil
	}
	_ = a.write(b) // an error is that nobody reads it
	return nil
}

// attach takes a picture for a prompt.
func (v *Viewer) attach(a *answerer) error {
	objects := store.ObjectsOf(v.o.Store)
	if objects == nil {
		return &problem{status: http.StatusConflict, code: "REFUSED", msg: "this store keeps no attachments"}
	}
	b, err := a.body(mostPicture)
	if err != nil {
		return err
	}
	if kind := sniff(b); kind == "" || kind != a.r.Header.Get("Content-Type") {
		return badRequest("the body must be a PNG, JPEG, GIF or WebP picture, and Content-Type must say which")
	}
	// What a model would refuse is refused now, and not stored.
	if _, err := attach.Bytes(a.r.Context(), objects, b, "picture"); err != nil {
		return err
	}
	return a.ok(struct {
		facts.Schema
		ID string `json:"id"`
	}{facts.V1, blob.ID(b)})
}
