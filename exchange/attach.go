package exchange

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"  // the kinds of images
	_ "image/jpeg" // that models
	_ "image/png"  // take
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Attach keeps bytes that a message holds and returns the block that names
// them: an image block for an image that models take, else one of type file,
// which a request shows as a note. They are durable when Attach returns. name
// may be empty. Where attachments are not kept, a note stands in their place.
func (b *Builder) Attach(data []byte, mediaType, name string) (message.Block, error) {
	if b.err != nil {
		return message.Block{}, b.err
	}
	kind, width, height := picture(data)
	what := "image"
	if kind == "" {
		if what = "file"; mediaType == "" {
			mediaType = "application/octet-stream"
		}
		kind = mediaType
	}
	if b.objects == nil {
		b.Dropped(what, "this store keeps no attachments; a note stands in its place")
		return note(what, kind, name, fmt.Sprintf("%d bytes", len(data)), "not kept"), nil
	}
	id, err := b.objects.Put(b.ctx, data)
	if err != nil {
		b.err = fmt.Errorf("keep an attachment of %d bytes: %w", len(data), err)
		return message.Block{}, b.err
	}
	ref := jsonwire.AppendStringMember([]byte{'{'}, "attachmentId", id)
	ref = jsonwire.AppendStringMember(ref, "mediaType", kind)
	if width > 0 && height > 0 {
		ref = jsonwire.AppendIntMember(ref, "width", int64(width))
		ref = jsonwire.AppendIntMember(ref, "height", int64(height))
	}
	ref = jsonwire.AppendIntMember(ref, "bytes", int64(len(data)))
	if name != "" {
		ref = jsonwire.AppendStringMember(ref, "name", name)
	}
	ref = append(ref, '}')
	b.report.Kept(what)
	if what == "image" {
		return message.Block{Type: message.ImageBlock, Attachment: ref}, nil
	}
	raw := jsonwire.AppendRawMember([]byte(`{"type":"file"`), "attachment", ref)
	return message.Block{Type: "file", Attachment: ref, Raw: append(raw, '}')}, nil
}

// AttachBase64 is Attach for bytes in base64, or for a data: URL. Text that is
// neither becomes a note.
func (b *Builder) AttachBase64(text, mediaType, name string) (message.Block, error) {
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		head, body, _ := strings.Cut(rest, ",")
		text = body
		if kind, _, _ := strings.Cut(head, ";"); kind != "" {
			mediaType = kind
		}
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(text), "="))
	}
	if err != nil || len(data) == 0 {
		b.Dropped("image", "its bytes are no base64; a note stands in its place")
		return note("image", mediaType, name, "unreadable"), b.err
	}
	return b.Attach(data, mediaType, name)
}

// Missing is the block for content that the source only names: a link, a file
// that is not there.
func (b *Builder) Missing(kind, where string) message.Block {
	b.Mapped(kind, "a note that names it")
	return note(kind, where)
}

// note stands for content that is not here.
func note(parts ...string) message.Block {
	var said []string
	for _, p := range parts {
		if p = strings.Join(strings.Fields(p), " "); p != "" {
			said = append(said, p)
		}
	}
	return message.Text("[" + strings.Join(said, ", ") + "]")
}

// Raw is a block of a kind that this version does not know, kept as the JSON
// object that it is. Other text becomes a text block.
func (b *Builder) Raw(kind string, raw []byte) message.Block {
	if jsonwire.Kind(raw) == '{' && jsonwire.Strict(raw) == nil {
		if t, ok := jsonwire.Text(jsonwire.Get(raw, "type")); ok && !known(t) {
			b.report.Kept(kind)
			return message.Block{Type: message.BlockType(t), Raw: json.RawMessage(jsonwire.Compact(raw))}
		}
	}
	b.Mapped(kind, "its JSON as text")
	return message.Text(string(raw))
}

// known reports the block types that have a meaning in a log: a foreign block
// of that name is not taken for one.
func known(t string) bool {
	switch message.BlockType(t) {
	case message.TextBlock, message.ReasoningBlock, message.ImageBlock, message.ToolCallBlock, message.ToolResultBlock, "file":
		return true
	}
	return false
}

// picture says what an image is; "" when it is none that models take.
func picture(b []byte) (mediaType string, width, height int) {
	if len(b) >= 30 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP" {
		width, height = webp(b)
		return "image/webp", width, height
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return "", 0, 0
	}
	return "image/" + format, c.Width, c.Height
}

// webp reads the size of a WebP image from its first chunk; 0 when it cannot.
func webp(b []byte) (w, h int) {
	le := binary.LittleEndian
	switch string(b[12:16]) {
	case "VP8 ":
		return int(le.Uint16(b[26:]) & 0x3fff), int(le.Uint16(b[28:]) & 0x3fff)
	case "VP8L":
		bits := le.Uint32(b[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		return int(le.Uint32(b[24:])&0xffffff) + 1, int(le.Uint32(b[26:])>>8)&0xffffff + 1
	}
	return 0, 0
}

// Measure names attachments by their digest and keeps nothing: for a run that
// only says what it would do.
var Measure store.Objects = measure{}

type measure struct{}

func (measure) Put(_ context.Context, b []byte) (string, error) {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func (measure) Get(_ context.Context, id string) ([]byte, error) {
	return nil, fmt.Errorf("attachment %s: %w", id, outcrop.ErrNotFound)
}
